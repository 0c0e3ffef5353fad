//===- Message.h - What programs say on standard error ----------*- C++ -*-===//
#ifndef FSDP_SUPPORT_MESSAGE_H
#define FSDP_SUPPORT_MESSAGE_H

#include <string_view>

namespace fsdp {

/// "fsdp-run: warning", before what a run says and goes on.
inline constexpr const char *kRunWarning = "fsdp-run: warning";

/// Prints the line "WHO: TEXT" on standard error. The text may name what stands
/// in files: it is escaped for a terminal (printable(), Text.h).
void printMessage(std::string_view who, std::string_view text);

} // namespace fsdp

#endif // FSDP_SUPPORT_MESSAGE_H
