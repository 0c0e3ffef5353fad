//===- Json.cpp - JSON that means one thing -------------------------------===//
//
// nlohmann's parser, which checks UTF-8 and does not recurse, calls the watch
// for every key, value and bracket; that finds what the parser accepts and we
// do not, and knows the path to it.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <iterator>
#include <set>

using namespace fsdp;
using nlohmann::json;

namespace {

/// A pointer into a text that says how far a parser has come.
class Reader {
public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char *;
  using reference = const char &;

  Reader(const char *at, const char *&furthest) : at(at), furthest(&furthest) {}

  const char &operator*() const { return *at; }
  Reader &operator++() {
    *furthest = ++at;
    return *this;
  }
  bool operator==(const Reader &other) const { return at == other.at; }
  bool operator!=(const Reader &other) const { return at != other.at; }

private:
  const char *at;
  const char **furthest;
};

class Watch {
public:
  Watch(std::string_view text, const std::string &place)
      : text(text), place(place), furthest(text.data()) {}

  json parse();

private:
  /// An object or array that is open where the parser is.
  struct Level {
    bool isObject;
    std::set<std::string> keys;
    std::string key;    // of the present member
    int64_t index = -1; // of the present element
  };

  void see(json::parse_event_t event, const json &value);
  void open(bool isObject);
  void readKey(const std::string &key);
  /// An element of an array begins.
  void beginElement() {
    if (!levels.empty() && !levels.back().isObject)
      ++levels.back().index;
  }

  /// `what` after the place, and where the last character is that was read.
  [[noreturn]] void fail(const std::string &what) const;
  /// The path to a value of the innermost level, or to that level itself.
  std::string path(bool isToLevel) const;

  std::string_view text;
  const std::string &place;
  const char *furthest; // after the last character that was read
  std::vector<Level> levels;
};

} // namespace

void Watch::fail(const std::string &what) const {
  auto read = static_cast<size_t>(furthest - text.data());
  std::string_view before = text.substr(0, std::max<size_t>(read, 1) - 1);
  auto line = 1 + std::count(before.begin(), before.end(), '\n');
  size_t column = before.size() - (before.rfind('\n') + 1) + 1;
  throw Error((place.empty() ? "" : place + ": ") + "line " +
              std::to_string(line) + ", column " + std::to_string(column) +
              ": " + what);
}

std::string Watch::path(bool isToLevel) const {
  std::string result;
  for (size_t i = 0; i + size_t(isToLevel) < levels.size(); ++i)
    result += !levels[i].isObject
                  ? "[" + std::to_string(levels[i].index) + "]"
                  : (i == 0 ? "" : ": ") + printableLine(levels[i].key);
  return result.empty() ? "" : result + ": ";
}

void Watch::open(bool isObject) {
  beginElement();
  if (levels.size() == kMaxJsonDepth)
    fail("nested deeper than " + std::to_string(kMaxJsonDepth) + " levels");
  levels.emplace_back();
  levels.back().isObject = isObject;
}

/// Keys are compared as what they mean: "a" and "\u0061" are the same.
void Watch::readKey(const std::string &key) {
  levels.back().key = key;
  if (!levels.back().keys.insert(key).second)
    fail(path(/*isToLevel=*/true) + "'" + printableLine(key) +
         "' appears twice");
}

void Watch::see(json::parse_event_t event, const json &value) {
  switch (event) {
  case json::parse_event_t::object_start:
    return open(/*isObject=*/true);
  case json::parse_event_t::array_start:
    return open(/*isObject=*/false);
  case json::parse_event_t::object_end:
  case json::parse_event_t::array_end:
    return levels.pop_back();
  case json::parse_event_t::key:
    return readKey(value.get_ref<const std::string &>());
  case json::parse_event_t::value:
    return beginElement();
  }
}

/// What the parser complains of, without what our messages say themselves and
/// without the text that it read last, which may be long.
static std::string reasonOf(const json::parse_error &error) {
  std::string reason = error.what();
  size_t begin = reason.find(" - ");
  reason.erase(0, begin == std::string::npos ? 0 : begin + 3);
  reason.resize(std::min(reason.find("; last read"), reason.size()));
  return printableLine(reason);
}

/// The number that is too large for a double, which may be long.
static std::string numberOf(const json::out_of_range &error) {
  std::string text = error.what(); // "… parsing '1e999'"
  text.erase(0, text.find('\'') + 1);
  text.resize(std::min(text.find('\''), text.size()));
  return text.size() > 32 ? text.substr(0, 32) + "…" : text;
}

json Watch::parse() {
  const char *end = text.data() + text.size();
  json document;
  try {
    document = json::parse(Reader(text.data(), furthest), Reader(end, furthest),
                           [this](int, json::parse_event_t event, json &value) {
                             see(event, value);
                             return true;
                           });
  } catch (const json::parse_error &error) {
    fail("this is not JSON: " + reasonOf(error));
  } catch (const json::out_of_range &error) {
    beginElement();
    fail(path(/*isToLevel=*/false) + numberOf(error) +
         " is not a finite number");
  }
  // The parser takes a zero byte for the end.
  if (std::any_of(furthest, end, [](char c) { return c != '\0'; }))
    fail("this is not JSON: there is text after a zero byte");
  return document;
}

json fsdp::parseJson(std::string_view text, const std::string &place) {
  return Watch(text, place).parse();
}

json fsdp::parseJsonOrNull(std::string_view text) {
  try {
    return parseJson(text, "");
  } catch (const Error &) {
    return {};
  }
}
