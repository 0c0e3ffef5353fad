//===- EscapedDiagnostics.h - Diagnostics for a terminal --------*- C++ -*-===//
#ifndef FSDP_TOOLS_ESCAPEDDIAGNOSTICS_H
#define FSDP_TOOLS_ESCAPEDDIAGNOSTICS_H

#include "mlir/IR/DialectRegistry.h"

namespace fsdp {

/// What is said of programs in a context with this registry is escaped
/// (printable(), Text.h), whoever prints it: names in a program may hold what
/// moves a terminal's cursor.
void escapeDiagnostics(mlir::DialectRegistry &registry);

} // namespace fsdp

#endif // FSDP_TOOLS_ESCAPEDDIAGNOSTICS_H
