//===- JsonField.cpp - A JSON value and where it stands -------------------===//
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>

using namespace fsdp;

/// No model comes near; boxes are visited dimension by dimension.
static constexpr size_t kMaxDims = 64;

void JsonField::fail(const std::string &what) const {
  throw Error(place + ": " + what);
}

JsonField JsonField::at(const std::string &key) const {
  if (!value.is_object())
    fail("expected an object");
  auto found = value.find(key);
  if (found == value.end())
    fail("the field '" + key + "' is missing");
  return JsonField(*found, place + ": " + key);
}

bool JsonField::has(const std::string &key) const {
  return value.is_object() && value.contains(key);
}

std::optional<JsonField> JsonField::find(const std::string &key) const {
  if (!has(key) || value[key].is_null())
    return std::nullopt;
  return at(key);
}

std::vector<JsonField> JsonField::items() const {
  if (!value.is_array())
    fail("expected an array");
  std::vector<JsonField> fields;
  for (size_t i = 0; i < value.size(); ++i)
    fields.emplace_back(value[i], place + "[" + std::to_string(i) + "]");
  return fields;
}

void JsonField::allowKeys(const std::vector<std::string> &known) const {
  for (const auto &[key, field] : fields())
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail("unknown key '" + printableLine(key) + "'" + didYouMean(key, known));
}

std::string JsonField::anyString() const {
  if (!value.is_string())
    fail("expected a string");
  return value.get<std::string>();
}

std::string JsonField::string() const {
  std::string text = anyString();
  if (!isPlainLine(text))
    fail("expected one line of text without control characters, got '" +
         printableLine(text) + "'");
  return text;
}

bool JsonField::boolean() const {
  if (!value.is_boolean())
    fail("expected true or false");
  return value.get<bool>();
}

double JsonField::number() const {
  if (!value.is_number())
    fail("expected a number");
  return value.get<double>();
}

int64_t JsonField::integer(int64_t min) const {
  bool fits = value.is_number_integer() &&
              !(value.is_number_unsigned() &&
                value.get<uint64_t>() > static_cast<uint64_t>(kMaxArenaBytes));
  if (!fits || value.get<int64_t>() < min ||
      value.get<int64_t>() > kMaxArenaBytes)
    fail("expected an integer from " + std::to_string(min) + " to 2^62");
  return value.get<int64_t>();
}

uint64_t JsonField::word() const {
  if (!value.is_number_unsigned())
    fail("expected an integer from 0 to 2^64 - 1");
  return value.get<uint64_t>();
}

std::vector<int64_t> JsonField::integers() const {
  std::vector<int64_t> result;
  for (const JsonField &item : items())
    result.push_back(item.integer());
  return result;
}

std::vector<std::string> JsonField::strings() const {
  std::vector<std::string> result;
  for (const JsonField &item : items())
    result.push_back(item.string());
  return result;
}

std::vector<int64_t> JsonField::shape() const {
  std::vector<int64_t> result = integers();
  if (result.size() > kMaxDims)
    fail("the shape has more than " + std::to_string(kMaxDims) + " dimensions");
  CheckedSize elements = 1;
  // Counting no element as one, so that no product on the way overflows.
  for (int64_t size : result)
    elements *= std::max<int64_t>(size, 1);
  if (!elements.fits(kMaxTensorBytes))
    fail("the shape has more than 2^56 elements");
  return result;
}

std::vector<std::pair<std::string, JsonField>> JsonField::fields() const {
  if (!value.is_object())
    fail("expected an object");
  std::vector<std::pair<std::string, JsonField>> result;
  for (const auto &[key, item] : value.items())
    result.emplace_back(key,
                        JsonField(item, place + ": " + printableLine(key)));
  return result;
}

std::map<std::string, std::string> JsonField::texts() const {
  if (!value.is_object())
    fail("expected an object");
  std::map<std::string, std::string> result;
  for (const auto &[key, item] : value.items())
    result[key] = item.is_string() ? item.get<std::string>() : item.dump();
  return result;
}

std::string JsonField::scalarText() const {
  if (value.is_string())
    return string();
  if (!value.is_number() && !value.is_boolean())
    fail("expected a string, a number or a boolean");
  return value.dump();
}
