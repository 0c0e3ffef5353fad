//===- Console.h - What a run prints ----------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_CONSOLE_H
#define FSDP_RUNTIME_REPORT_CONSOLE_H

#include <string>

namespace fsdp {

/// Writes to standard output at once. A run goes on when that fails, since its
/// files are worth more than its lines; the first reason is kept.
void print(const std::string &text);

/// errno of the first write to standard output that failed, after all that is
/// left was written; 0: none did.
int outputError();

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_CONSOLE_H
