//===- Emit.h - exec to C++ source ------------------------------*- C++ -*-===//
//
// Prints a module of the exec dialect as one C++ or CUDA C++ file. Nothing is
// decided here: offsets, order, events and repeated blocks are all in the IR,
// and the text has one statement per op. Emission is linear in the size of the
// IR.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMIT_EMIT_H
#define FSDP_EMIT_EMIT_H

#include "fsdp/Emit/Backend.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace fsdp {

/// What the source says about itself.
struct SourceInfo {
  const Backend *backend = nullptr;
  /// Lines of the comment at the top: how the file was made. No paths, no
  /// time, so that the same input gives the same text.
  std::string madeBy;
  /// The manifest's text, kept in the shared object too.
  std::string manifest;
};

/// Prints `module` as `info.backend` spells it. Emits a diagnostic and fails on
/// an op that has no spelling and on a module whose memory is not planned.
mlir::LogicalResult emitSource(mlir::ModuleOp module, const SourceInfo &info,
                               llvm::raw_ostream &os);

} // namespace fsdp

#endif // FSDP_EMIT_EMIT_H
