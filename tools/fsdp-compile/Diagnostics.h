//===- Diagnostics.h - Prints what passes say -------------------*- C++ -*-===//
#ifndef FSDP_TOOLS_FSDP_COMPILE_DIAGNOSTICS_H
#define FSDP_TOOLS_FSDP_COMPILE_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/SourceMgr.h"

namespace fsdp {

/// Prints diagnostics and their notes to stderr, each with its place: a line
/// of the input, the module of the model, or both.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(llvm::SourceMgr &sources, mlir::MLIRContext *context);

private:
  /// `parent` is the module that the line above has named.
  void print(mlir::Diagnostic &diagnostic, llvm::StringRef parent);

  mlir::SourceMgrDiagnosticHandler inFile;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace fsdp

#endif // FSDP_TOOLS_FSDP_COMPILE_DIAGNOSTICS_H
