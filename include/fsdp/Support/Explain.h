//===- Explain.h - What an exception means to a user ------------*- C++ -*-===//
#ifndef FSDP_SUPPORT_EXPLAIN_H
#define FSDP_SUPPORT_EXPLAIN_H

#include <exception>
#include <string>

namespace fsdp {

/// The message for a user: that of an fsdp::Error as it is. Of exceptions that
/// the standard library throws (no memory, no thread, a path that cannot be
/// used) what was wanted, why it failed, and a remedy.
std::string explain(const std::exception &error);

} // namespace fsdp

#endif // FSDP_SUPPORT_EXPLAIN_H
