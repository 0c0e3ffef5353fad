//===- Json.h - JSON that means one thing, and its fields -------*- C++ -*-===//
//
// All JSON that is read comes through here, in the compiler and in what runs:
// one place says what is accepted, and messages have one form, which begins
// with the place: "m.json: line 7, column 12: ranges[0]: 'offset' appears
// twice", "m.json: ranges[0]: offset: expected an integer …".
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_JSON_H
#define FSDP_SUPPORT_JSON_H

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fsdp {

/// Brackets within brackets: more than any text of ours has, and far below what
/// the stack of a printer holds.
inline constexpr int kMaxJsonDepth = 64;

/// Parses UTF-8 text that is one value, in which no object has a key twice, of
/// which readers would take the first or the last, every number is finite and
/// nothing is nested deeper than kMaxJsonDepth. Otherwise throws fsdp::Error;
/// its message begins with `place`, unless that is empty, line and column.
nlohmann::json parseJson(std::string_view text, const std::string &place);

/// The same, but null for what parseJson() refuses.
nlohmann::json parseJsonOrNull(std::string_view text);

/// A value and where it stands, for readers that believe nothing: each question
/// checks the value. The document must outlive the object. All throw
/// fsdp::Error.
class JsonField {
public:
  JsonField(const nlohmann::json &value, std::string place)
      : value(value), place(std::move(place)) {}

  [[noreturn]] void fail(const std::string &what) const;

  JsonField at(const std::string &key) const;
  /// Whether the key is there, be it with null.
  bool has(const std::string &key) const;
  /// Absent and null are the same.
  std::optional<JsonField> find(const std::string &key) const;
  std::vector<JsonField> items() const;
  /// Refuses keys that are not `known`: they would be dropped.
  void allowKeys(const std::vector<std::string> &known) const;

  bool isString() const { return value.is_string(); }
  /// One line without control characters, which a message may show.
  std::string string() const;
  std::string anyString() const;
  bool boolean() const;
  double number() const;
  /// An integer in [min, 2^62]: two of them can be added.
  int64_t integer(int64_t min = 0) const;
  /// Any integer of 64 bits without a sign.
  uint64_t word() const;
  std::vector<int64_t> integers() const;
  std::vector<std::string> strings() const;
  /// A shape whose bytes of any type stay far from overflow.
  std::vector<int64_t> shape() const;
  /// The fields of an object by name.
  std::vector<std::pair<std::string, JsonField>> fields() const;
  /// An object as text by name; values that are no strings as JSON text.
  std::map<std::string, std::string> texts() const;
  /// A string, a number or a boolean as text.
  std::string scalarText() const;

private:
  const nlohmann::json &value;
  std::string place;
};

} // namespace fsdp

#endif // FSDP_SUPPORT_JSON_H
