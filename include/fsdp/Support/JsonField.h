//===- JsonField.h - A JSON value and where it stands -----------*- C++ -*-===//
//
// For readers that believe nothing: each question checks the value, and a
// message begins with the path to it, "m.json: ranges[0]: offset: …".
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_JSONFIELD_H
#define FSDP_SUPPORT_JSONFIELD_H

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// The document must outlive the object. All throw fsdp::Error.
class JsonField {
public:
  JsonField(const nlohmann::json &value, std::string place)
      : value(value), place(std::move(place)) {}

  [[noreturn]] void fail(const std::string &what) const;

  JsonField at(const char *key) const;
  /// Absent and null are the same.
  std::optional<JsonField> find(const char *key) const;
  std::vector<JsonField> items() const;

  bool isString() const { return value.is_string(); }
  /// One line without control characters, which a message may show.
  std::string string() const;
  std::string anyString() const;
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

} // namespace fsdp::rt

#endif // FSDP_SUPPORT_JSONFIELD_H
