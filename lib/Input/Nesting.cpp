//===- Nesting.cpp - A bound on the depth of a text -----------------------===//
#include "fsdp/Input/Nesting.h"
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

llvm::Error fsdp::checkNesting(llvm::MemoryBufferRef buffer) {
  StringRef text = buffer.getBuffer();
  // What MLIR's bytecode begins with.
  if (text.starts_with("ML\xefR"))
    return llvm::Error::success();
  Scanner scanner(text);
  if (!scanner.findTooDeep())
    return llvm::Error::success();
  StringRef before = text.take_front(scanner.position());
  return llvm::createStringError(
      buffer.getBufferIdentifier() + ":" + llvm::Twine(before.count('\n') + 1) +
      ":" + llvm::Twine(before.size() - before.rfind('\n')) + ": more than " +
      llvm::Twine(kMaxNesting) + " brackets or signs are inside one another");
}
