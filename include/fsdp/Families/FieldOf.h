//===- FieldOf.h - A size or setting of a model, by its key -----*- C++ -*-===//
#ifndef FSDP_FAMILIES_FIELDOF_H
#define FSDP_FAMILIES_FIELDOF_H

#include "fsdp/Support/CheckedSize.h"
#include <string>
#include <variant>
#include <vector>

namespace fsdp {

/// A field of a model's configuration, by the key that sets it.
template <typename Config> struct FieldOf {
  const char *key, *description;
  std::variant<int64_t Config::*, double Config::*, bool Config::*,
               std::string Config::*, std::vector<double> Config::*>
      member;
  int64_t max = kMaxDimension; // of an integer
  int64_t min = 1;             // of an integer; 0 stands for a default
  /// Stated only where it is not what the family has otherwise.
  bool isRare = false;
};

// The text of a value, as manifests and --set have it. Numbers have the fewest
// digits that give them back, lists a space between numbers.
std::string valueText(int64_t value);
std::string valueText(double value);
std::string valueText(bool value);
std::string valueText(const std::string &value);
std::string valueText(const std::vector<double> &value);

// Each says whether `text` was a value of the type.
bool parseValue(const std::string &text, int64_t &value);
bool parseValue(const std::string &text, double &value);
bool parseValue(const std::string &text, bool &value);
bool parseValue(const std::string &text, std::string &value);
bool parseValue(const std::string &text, std::vector<double> &value);

} // namespace fsdp

#endif // FSDP_FAMILIES_FIELDOF_H
