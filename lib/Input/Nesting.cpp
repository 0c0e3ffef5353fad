//===- Nesting.cpp - A bound on the depth of a text -----------------------===//
#include "fsdp/Input/Nesting.h"
#include "fsdp/Support/Text.h"
#include "llvm/ADT/StringRef.h"

using namespace fsdp;
using llvm::StringRef;

namespace {

class Scanner {
public:
  explicit Scanner(StringRef text) : text(text) {}

  /// Moves to the first character that is too deep; false if there is none.
  bool findTooDeep() {
    for (; at < text.size(); ++at) {
      step();
      if (depth + signs > kMaxNesting)
        return true;
    }
    return false;
  }

  size_t position() const { return at; }

private:
  bool isNext(char c) const {
    return at + 1 < text.size() && text[at + 1] == c;
  }
  void skipString();
  void step();

  StringRef text;
  size_t at = 0;
  int64_t depth = 0;
  /// Minus signs in a row: each is an expression in the one before.
  int64_t signs = 0;
};

} // namespace

/// From the opening quote to the closing one, or to the end of the line, at
/// which the parser gives up.
void Scanner::skipString() {
  for (++at; at < text.size() && text[at] != '"' && text[at] != '\n'; ++at)
    if (text[at] == '\\')
      ++at;
}

void Scanner::step() {
  switch (text[at]) {
  case ' ':
  case '\t':
  case '\n':
  case '\r':
    return;
  case '"':
    skipString();
    break;
  case '/':
    if (isNext('/'))
      at = std::min(text.find('\n', at), text.size());
    break;
  case '(':
  case '[':
  case '{':
    ++depth;
    break;
  case '<':
    depth += !isNext('=');
    break;
  case ')':
  case ']':
  case '}':
    --depth;
    break;
  case '>':
    depth -= !isNext('=');
    break;
  case '-':
    if (!isNext('>')) {
      ++signs;
      return;
    }
    ++at; // An arrow.
    break;
  }
  depth = std::max<int64_t>(depth, 0);
  signs = 0;
}

/// By what MLIR's bytecode begins with.
static bool isBytecode(StringRef text) { return text.starts_with("ML\xefR"); }

/// An error about the character at `position`.
static llvm::Error errorAt(llvm::MemoryBufferRef buffer, size_t position,
                           const llvm::Twine &what) {
  StringRef before = buffer.getBuffer().take_front(position);
  return llvm::createStringError(
      buffer.getBufferIdentifier() + ":" + llvm::Twine(before.count('\n') + 1) +
      ":" + llvm::Twine(before.size() - before.rfind('\n')) + ": " + what);
}

llvm::Error fsdp::checkNesting(llvm::MemoryBufferRef buffer) {
  StringRef text = buffer.getBuffer();
  if (isBytecode(text))
    return llvm::Error::success();
  Scanner scanner(text);
  if (!scanner.findTooDeep())
    return llvm::Error::success();
  return errorAt(buffer, scanner.position(),
                 "more than " + llvm::Twine(kMaxNesting) +
                     " brackets or signs are inside one another");
}

/// The place of a control character, of one byte or of two in UTF-8; npos if
/// there is none.
static size_t findControl(StringRef text) {
  for (size_t at = 0; at < text.size(); ++at) {
    auto byte = static_cast<unsigned char>(text[at]);
    auto next =
        static_cast<unsigned char>(at + 1 < text.size() ? text[at + 1] : 0);
    bool isSpace = byte == '\t' || byte == '\n' || byte == '\r';
    if ((byte < 0x20 && !isSpace) || byte == 0x7f ||
        (byte == 0xc2 && next >= 0x80 && next < 0xa0))
      return at;
  }
  return StringRef::npos;
}

llvm::Error fsdp::checkText(llvm::MemoryBufferRef buffer) {
  StringRef text = buffer.getBuffer();
  size_t control = isBytecode(text) ? StringRef::npos : findControl(text);
  if (control != StringRef::npos) {
    bool isLong = text[control] == '\xc2';
    return errorAt(
        buffer, control,
        "the control character " +
            printableLine(text.substr(control, isLong ? 2 : 1).str()) +
            " in what should be text; a string has it as an escape "
            "(\\1B)");
  }
  return checkNesting(buffer);
}
