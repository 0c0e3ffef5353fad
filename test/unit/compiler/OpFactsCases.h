//===- OpFactsCases.h - Every nn op in one form, and its facts ---*- C++
//-*-===//
#ifndef FSDP_TEST_UNIT_COMPILER_OPFACTSCASES_H
#define FSDP_TEST_UNIT_COMPILER_OPFACTSCASES_H

#include "dialects/NN/NN.h"
#include <vector>

namespace fsdp {

/// An op without state, and what its record says of it in this form.
struct FactsCase {
  const char *arguments;
  const char *op;
  const char *rule;
  int64_t flops;
  nn::PrecisionRule precision;
  /// The numbers of the operands in which it is linear.
  std::vector<unsigned> linear;
};

extern const std::vector<FactsCase> kFactsCases;

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_OPFACTSCASES_H
