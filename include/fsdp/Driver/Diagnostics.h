//===- Diagnostics.h - Prints what passes say -------------------*- C++ -*-===//
#ifndef FSDP_DRIVER_DIAGNOSTICS_H
#define FSDP_DRIVER_DIAGNOSTICS_H

#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/SourceMgr.h"

namespace fsdp {

/// The error of a function whose diagnostics have been printed: it has no text.
inline llvm::Error alreadyPrinted() { return llvm::createStringError(""); }

/// Begins a message of `tool` on stderr; `kind` is "error", "note" and the
/// like.
llvm::raw_ostream &startMessage(const char *tool, llvm::StringRef kind);

/// Prints diagnostics and their notes to stderr, each with its place: a line
/// of the input, the module of the model, or both. What has no line begins with
/// the name of `tool`.
class DiagnosticPrinter {
public:
  DiagnosticPrinter(const char *tool, llvm::SourceMgr &sources,
                    mlir::MLIRContext *context);

private:
  /// `parent` is the diagnostic that this one is a note of, if any: what it
  /// has said of the place is not said again.
  void print(mlir::Diagnostic &diagnostic, mlir::Diagnostic *parent);

  const char *tool;
  mlir::SourceMgrDiagnosticHandler inFile;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace fsdp

#endif // FSDP_DRIVER_DIAGNOSTICS_H
