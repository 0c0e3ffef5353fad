//===- DataErrors.h - What may be wrong with a program's data ---*- C++ -*-===//
#ifndef FSDP_RUNTIME_CORE_DATAERRORS_H
#define FSDP_RUNTIME_CORE_DATAERRORS_H

#include <string>

namespace fsdp::rt {

/// Data errors that a program meets on its way; reported when it has ended,
/// because the step path neither throws nor returns.
enum DataError : unsigned {
  kTokenOutOfRange = 1,
  kTargetOutOfRange = 2,
};

/// What a set of errors means; empty for none.
inline std::string describeDataErrors(unsigned errors) {
  if (errors & kTokenOutOfRange)
    return "a token is outside the vocabulary";
  if (errors & kTargetOutOfRange)
    return "a target is outside the classes";
  return {};
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CORE_DATAERRORS_H
