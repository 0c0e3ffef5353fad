//===- FieldText.cpp - Values of fields as text ---------------------------===//
#include "fsdp/Families/FieldOf.h"
#include <charconv>
#include <cmath>
#include <sstream>

namespace fsdp {

std::string valueText(int64_t value) { return std::to_string(value); }

std::string valueText(double value) {
  char digits[32];
  auto [end, error] =
      std::to_chars(std::begin(digits), std::end(digits), value);
  return std::string(digits, end);
}

std::string valueText(bool value) { return value ? "true" : "false"; }

std::string valueText(const std::string &value) { return value; }

std::string valueText(const std::vector<double> &value) {
  std::string text;
  for (double number : value)
    text += (text.empty() ? "" : " ") + valueText(number);
  return text;
}

/// Parses the whole of `text`.
template <typename Number>
static bool parseWhole(const std::string &text, Number &value) {
  const char *end = text.data() + text.size();
  auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end;
}

bool parseValue(const std::string &text, int64_t &value) {
  return parseWhole(text, value);
}

bool parseValue(const std::string &text, double &value) {
  return parseWhole(text, value) && std::isfinite(value);
}

bool parseValue(const std::string &text, bool &value) {
  value = text == "true";
  return value || text == "false";
}

bool parseValue(const std::string &text, std::string &value) {
  value = text;
  return true;
}

bool parseValue(const std::string &text, std::vector<double> &value) {
  value.clear();
  std::istringstream words(text);
  for (std::string word; words >> word;)
    if (!parseValue(word, value.emplace_back()))
      return false;
  return true;
}

} // namespace fsdp
