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

} // namespace fsdp

#endif // FSDP_FAMILIES_FIELDOF_H
