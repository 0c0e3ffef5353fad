//===- HostList.cpp - Slurm's lists of machines ---------------------------===//
#include "HostList.h"
#include "fsdp/Support/Error.h"
#include <string_view>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// Reads a list from its beginning to the end of its first entry.
class HostReader {
public:
  HostReader(const std::string &text, const std::string &variable)
      : text(text), variable(variable) {}

  HostList read();

private:
  [[noreturn]] void fail() const {
    throw Error("environment: " + variable + " = '" + text +
                "' is no list of hosts");
  }
  void readBracket();
  std::string readNumber();
  bool isAt(char c) const { return at < text.size() && text[at] == c; }

  const std::string &text;
  const std::string &variable;
  size_t at = 0;
  HostList list{"", false};
};

} // namespace

std::string HostReader::readNumber() {
  size_t begin = at;
  while (at < text.size() && text[at] >= '0' && text[at] <= '9')
    ++at;
  if (at == begin)
    fail();
  return text.substr(begin, at - begin);
}

/// "[01-04,7]": the first number as it is written, with its zeros.
void HostReader::readBracket() {
  bool isFirst = true;
  do {
    ++at; // '[' or ','
    std::string low = readNumber(), high = low;
    if (isAt('-')) {
      ++at;
      high = readNumber();
    }
    if (isFirst)
      list.first += low;
    list.hasOthers |= !isFirst || high != low;
    isFirst = false;
  } while (isAt(','));
  if (!isAt(']'))
    fail();
  ++at;
}

HostList HostReader::read() {
  while (at < text.size() && text[at] != ',') {
    char c = text[at];
    if (c == '[') {
      readBracket();
      continue;
    }
    if (c == ']' || static_cast<unsigned char>(c) <= ' ')
      fail();
    list.first += c;
    ++at;
  }
  if (list.first.empty())
    fail();
  list.hasOthers |= at < text.size();
  return list;
}

HostList rt::parseHostList(const std::string &text,
                           const std::string &variable) {
  return HostReader(text, variable).read();
}
