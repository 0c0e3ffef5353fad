//===- Text.cpp - Making and checking text --------------------------------===//
#include "fsdp/Support/Text.h"
#include <cstdarg>
#include <cstdint>
#include <cstdio>

using namespace fsdp;

static void appendArguments(std::string &text, const char *pattern,
                            va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = std::vsnprintf(nullptr, 0, pattern, arguments);
  size_t start = text.size();
  // vsnprintf ends with a zero, for which a string has room.
  text.resize(start + static_cast<size_t>(length));
  std::vsnprintf(text.data() + start, static_cast<size_t>(length) + 1, pattern,
                 again);
  va_end(again);
}

std::string fsdp::format(const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  std::string text;
  appendArguments(text, pattern, arguments);
  va_end(arguments);
  return text;
}

void fsdp::appendFormat(std::string &text, const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  appendArguments(text, pattern, arguments);
  va_end(arguments);
}

/// Takes the first character off a text; 0 if it is not UTF-8. A character in
/// more bytes than it needs is none.
static uint32_t takeCharacter(std::string_view &text) {
  auto first = static_cast<unsigned char>(text.front());
  size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  if (length > text.size() || (first >= 0x80 && first < 0xc0) || first >= 0xf8)
    return 0;
  uint32_t value = length == 1 ? first : first & (0x7fu >> length);
  for (size_t i = 1; i < length; ++i) {
    auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80)
      return 0;
    value = value << 6 | (byte & 0x3f);
  }
  text.remove_prefix(length);
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  return value < kLeast[length] || value > 0x10ffff ? 0 : value;
}

bool fsdp::endsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() &&
         text.substr(text.size() - end.size()) == end;
}

bool fsdp::isPlainLine(std::string_view text) {
  while (!text.empty()) {
    uint32_t c = takeCharacter(text);
    bool isControl = c < 0x20 || (c >= 0x7f && c < 0xa0);
    bool isSurrogate = c >= 0xd800 && c < 0xe000;
    // XML has no surrogates and neither of the last two.
    if (isControl || isSurrogate || c == 0xfffe || c == 0xffff)
      return false;
  }
  return true;
}

/// Whether a terminal shows the character where it stands.
static bool isShown(uint32_t c) {
  bool isControl = c < 0x20 || (c >= 0x7f && c < 0xa0);
  bool isSurrogate = c >= 0xd800 && c < 0xe000;
  bool breaksLine = c == 0x2028 || c == 0x2029;
  bool turnsText = c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                   (c >= 0x2066 && c <= 0x2069);
  bool isNone = c == 0xfffe || c == 0xffff;
  return !isControl && !isSurrogate && !breaksLine && !turnsText && !isNone;
}

static std::string escaped(uint32_t c) {
  switch (c) {
  case '\n':
    return "\\n";
  case '\r':
    return "\\r";
  case '\t':
    return "\\t";
  default:
    return format(c < 0x100 ? "\\x%02x" : "\\u%04x", c);
  }
}

static std::string escapedText(std::string_view text, bool keepsLines) {
  std::string result;
  while (!text.empty()) {
    std::string_view rest = text;
    uint32_t c = takeCharacter(rest);
    // 0 stands for what is no character too.
    bool isCharacter = c != 0 || text.front() == '\0';
    size_t length = isCharacter ? text.size() - rest.size() : 1;
    if (!isCharacter) // one byte of what is no UTF-8
      result += escaped(static_cast<unsigned char>(text.front()));
    else if (isShown(c) || (keepsLines && c == '\n'))
      result += text.substr(0, length);
    else
      result += escaped(c);
    text.remove_prefix(length);
  }
  return result;
}

std::string fsdp::printableLine(std::string_view text) {
  return escapedText(text, /*keepsLines=*/false);
}

std::string fsdp::printable(std::string_view text) {
  return escapedText(text, /*keepsLines=*/true);
}

std::string fsdp::joinedText(const std::vector<std::string> &parts,
                             std::string_view separator) {
  std::string text;
  for (const std::string &part : parts) {
    if (!text.empty())
      text += separator;
    text += part;
  }
  return text;
}
