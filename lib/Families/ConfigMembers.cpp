//===- ConfigMembers.cpp - Reading config.json ----------------------------===//
#include "ConfigMembers.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;

Members::Members(const json &object, std::string place)
    : object(object), place(std::move(place)) {
  if (!object.is_object())
    throw Error("expected object at " + this->place);
}

const json *Members::find(const char *key) const {
  auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

const json &Members::at(const char *key) const {
  if (const json *value = find(key))
    return *value;
  throw Error("missing value at " + path(key));
}

int64_t Members::integer(const char *key, int64_t max) const {
  const json &value = at(key);
  if (!value.is_number() ||
      std::trunc(value.get<double>()) != value.get<double>())
    throw Error("expected integer at " + path(key));
  double number = value.get<double>();
  if (number < 1 || number > static_cast<double>(max))
    throw Error("expected 1 to " + std::to_string(max) + " at " + path(key) +
                ", got " + value.dump());
  return static_cast<int64_t>(number);
}

double Members::number(const char *key) const {
  const json &value = at(key);
  if (!value.is_number())
    throw Error("expected number at " + path(key));
  return value.get<double>();
}

double Members::positiveOf(const json &value, const std::string &at) const {
  if (!value.is_number())
    throw Error("expected number at " + at);
  if (!(value.get<double>() > 0))
    throw Error("expected a positive number at " + at + ", got " +
                value.dump());
  return value.get<double>();
}

double Members::positive(const char *key) const {
  return positiveOf(at(key), path(key));
}

double Members::notNegative(const char *key) const {
  return number(key) == 0 ? 0 : positive(key);
}

std::vector<double> Members::positives(const char *key, size_t count) const {
  const json &list = at(key);
  if (!list.is_array() || list.size() != count)
    throw Error(
        "expected " + std::to_string(count) +
        " numbers, one for each rotary pair, at " + path(key) +
        (list.is_array() ? ", got " + std::to_string(list.size()) : ""));
  std::vector<double> numbers;
  for (size_t i = 0; i < count; ++i)
    numbers.push_back(
        positiveOf(list[i], path(key) + "[" + std::to_string(i) + "]"));
  return numbers;
}

bool Members::boolean(const char *key) const {
  const json &value = at(key);
  if (!value.is_boolean())
    throw Error("expected boolean at " + path(key));
  return value.get<bool>();
}

std::string Members::string(const char *key) const {
  const json &value = at(key);
  if (!value.is_string())
    throw Error("expected string at " + path(key));
  return value.get<std::string>();
}

void Members::check(const std::vector<ConfigKey> &keys,
                    std::vector<std::string> &warnings) const {
  std::vector<std::string> known;
  for (const ConfigKey &key : keys) {
    known.emplace_back(key.name);
    auto value = object.find(key.name);
    if (value == object.end())
      continue;
    if (key.role == KeyRole::Dropout && !value->is_null() &&
        notNegative(key.name) != 0)
      warnings.push_back(path(key.name) + " is " + value->dump() +
                         ", and training goes without dropout");
    if (key.role != KeyRole::Fixed)
      continue;
    auto isValue = [&](const char *good) {
      return *value == json::parse(good);
    };
    if (std::none_of(key.values.begin(), key.values.end(), isValue))
      throw Error("expected " + std::string(key.values.front()) + " (" +
                  key.why + ") at " + path(key.name) + ", got " +
                  printableLine(value->dump()));
  }
  for (const auto &[key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      warnings.push_back("unknown key '" + printableLine(key) + "' at " +
                         place + " is ignored" + didYouMean(key, known));
}

std::string checkpoint::numberText(double value) {
  bool isWhole = std::trunc(value) == value && std::abs(value) < 1e15;
  return isWhole ? std::to_string(static_cast<int64_t>(value))
                 : json(value).dump();
}
