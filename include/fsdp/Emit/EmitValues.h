//===- EmitValues.h - What the calls of an artifact produce -----*- C++ -*-===//
//
// The table of values is JSON beside the manifest: for every program, which
// call of the runtime writes which values of floating point into which bytes of
// the arena, and what people call them. No program needs it; a run that meets a
// value that is not finite names it by this table. The reader is
// runtime/train/ValueTable.h.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMIT_EMITVALUES_H
#define FSDP_EMIT_EMITVALUES_H

#include "mlir/IR/BuiltinOps.h"
#include <string>

namespace fsdp {

/// The text of the table of a planned exec module whose manifest is `manifest`.
/// Emits a diagnostic and fails if memory is not planned, or if a call does not
/// name the work of its function one by one.
mlir::FailureOr<std::string> makeValueTable(mlir::ModuleOp module,
                                            llvm::StringRef manifest);

} // namespace fsdp

#endif // FSDP_EMIT_EMITVALUES_H
