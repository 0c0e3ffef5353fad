//===- HostList.cpp - What Slurm lists by machine -------------------------===//
#include "HostList.h"
#include "fsdp/Support/Error.h"
#include <charconv>
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

/// Reads a count above 0 at the beginning of `text` and takes it away.
static int takeCount(std::string_view &text) {
  int count = 0;
  const char *end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, count);
  if (result.ec != std::errc() || count < 1)
    return 0;
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return count;
}

static bool take(std::string_view &text, std::string_view expected) {
  bool isThere = text.substr(0, expected.size()) == expected;
  if (isThere)
    text.remove_prefix(expected.size());
  return isThere;
}

int rt::parseTasksOfHost(const std::string &text, const std::string &variable,
                         int host, const std::string &hostVariable) {
  std::string_view rest = text;
  int64_t first = 0;
  int found = 0;
  do {
    int tasks = takeCount(rest), hosts = 1;
    if (take(rest, "(x")) {
      hosts = takeCount(rest);
      if (!take(rest, ")"))
        hosts = 0;
    }
    if (tasks == 0 || hosts == 0)
      throw Error("environment: " + variable + " = '" + text +
                  "' is no list of tasks by machine, like 8(x2),4");
    if (host >= first && host < first + hosts)
      found = tasks;
    first += hosts;
  } while (take(rest, ","));
  if (!rest.empty())
    throw Error("environment: " + variable + " = '" + text +
                "' is no list of tasks by machine, like 8(x2),4");
  if (found == 0)
    throw Error("environment: " + hostVariable + " = " + std::to_string(host) +
                ", but " + variable + " = '" + text + "' has " +
                std::to_string(first) + " machines");
  return found;
}
