//===- EmitNames.cpp - Identifiers, literals and comments -----------------===//
#include "Emitter.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir;
using namespace fsdp;

std::string emit::words(StringRef text) {
  std::string name;
  for (char c : text)
    if (llvm::isAlnum(c))
      name += c;
    else if (!name.empty() && name.back() != '_')
      name += '_';
  while (!name.empty() && name.back() == '_')
    name.pop_back();
  return name.empty() ? "x" : name;
}

std::string emit::identifier(StringRef text) {
  std::string name = words(text) + '_';
  return llvm::isDigit(name[0]) ? "x" + name : name;
}

bool emit::NameScope::isTaken(StringRef name) const {
  return used.contains(name) || (outer && outer->isTaken(name));
}

std::string emit::NameScope::unique(StringRef wanted) {
  // What ends in an underscore still does with a number.
  StringRef stem = wanted, end;
  if (stem.consume_back("_"))
    end = "_";
  std::string name = wanted.str();
  // The counter makes this linear even when thousands of values want a name.
  while (isTaken(name)) {
    int &count = used.try_emplace(wanted, 1).first->second;
    name = llvm::formatv("{0}_{1}{2}", stem, ++count, end).str();
  }
  used.try_emplace(name, 1);
  return name;
}

std::string emit::quoted(StringRef text) {
  std::string result;
  llvm::raw_string_ostream os(result);
  os << '"';
  for (StringRef rest = text; !rest.empty();) {
    // `wrap` would break a line after this comma.
    size_t comma = rest.find(", ");
    os.write_escaped(rest.take_front(comma), /*UseHexEscapes=*/false);
    bool found = comma != StringRef::npos;
    os << (found ? ",\\040" : "");
    rest = found ? rest.drop_front(comma + 2) : StringRef();
  }
  os << '"';
  return result;
}

std::string emit::inComment(StringRef text) {
  std::string result = text.str();
  for (char &c : result)
    if (c == '\\' || (llvm::isASCII(c) && !llvm::isPrint(c)))
      c = '?';
  return result;
}

std::string emit::literal(double value) {
  if (std::isnan(value))
    return "__builtin_nan(\"\")";
  if (std::isinf(value))
    return value < 0 ? "-__builtin_inf()" : "__builtin_inf()";
  // The shorter of the two decimal forms if it reads back exactly.
  std::string text;
  for (int digits : {15, 17}) {
    char buffer[40];
    snprintf(buffer, sizeof(buffer), "%.*g", digits, value);
    text = buffer;
    if (strtod(buffer, nullptr) == value)
      break;
  }
  if (StringRef(text).find_first_of(".e") == StringRef::npos)
    text += ".0";
  return text;
}

std::string emit::floatLiteral(float value) {
  if (std::isnan(value))
    return "__builtin_nanf(\"\")";
  if (std::isinf(value))
    return value < 0 ? "-__builtin_inff()" : "__builtin_inff()";
  std::string text;
  for (int digits : {6, 9}) {
    char buffer[40];
    snprintf(buffer, sizeof(buffer), "%.*g", digits, double(value));
    text = buffer;
    if (strtof(buffer, nullptr) == value)
      break;
  }
  if (StringRef(text).find_first_of(".e") == StringRef::npos)
    text += ".0";
  return text + "f";
}

StringRef emit::dtypeName(rt::DType type) {
  switch (type) {
  case rt::DType::F32:
    return "F32";
  case rt::DType::BF16:
    return "BF16";
  case rt::DType::F64:
    return "F64";
  case rt::DType::I8:
    return "I8";
  case rt::DType::I32:
    return "I32";
  case rt::DType::I64:
    return "I64";
  case rt::DType::F16:
    return "F16";
  }
  llvm_unreachable("an element type");
}

std::string emit::shapeText(MemRefType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(type.getShape(), os, "x");
  if (type.getRank() != 0)
    os << ' ';
  os << type.getElementType();
  return text;
}

std::string emit::streamName(exec::Stream stream) {
  switch (stream) {
  case exec::Stream::Compute:
    return "Stream::Compute";
  case exec::Stream::Gather:
    return "Stream::Gather";
  case exec::Stream::Reduce:
    return "Stream::Reduce";
  case exec::Stream::Copy:
    return "Stream::Copy";
  }
  llvm_unreachable("a stream");
}

void emit::wrap(llvm::raw_ostream &os, StringRef text, unsigned indent) {
  os.indent(indent);
  unsigned column = indent;
  while (!text.empty()) {
    StringRef piece = text.take_front(text.find(", ")); // all, if there is none
    bool last = piece.size() == text.size();
    unsigned width = piece.size() + (last ? 0 : 1);
    if (column != indent && column + 1 + width > 80) {
      os << '\n';
      os.indent(indent + 4);
      column = indent + 4;
    } else if (column != indent) {
      os << ' ';
      ++column;
    }
    os << piece << (last ? "" : ",");
    column += width;
    text = last ? StringRef() : text.drop_front(piece.size() + 2);
  }
  os << '\n';
}

StringRef emit::locationName(Location loc) {
  StringRef name;
  loc->walk([&](Location inner) {
    if (auto named = dyn_cast<NameLoc>(inner)) {
      name = named.getName();
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return name;
}
