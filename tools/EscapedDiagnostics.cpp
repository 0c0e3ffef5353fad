//===- EscapedDiagnostics.cpp - Diagnostics for a terminal ----------------===//
#include "EscapedDiagnostics.h"
#include "fsdp/Support/Text.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"

using namespace fsdp;
using namespace mlir;

static void escape(Diagnostic &diagnostic) {
  std::string text = diagnostic.str(), shown = printable(text);
  if (shown != text) {
    for (DiagnosticArgument &argument : diagnostic.getArguments())
      argument = DiagnosticArgument(StringRef());
    diagnostic << llvm::Twine(shown);
  }
  for (Diagnostic &note : diagnostic.getNotes())
    escape(note);
}

/// A handler that is added when the parser loads a dialect comes before the one
/// that prints, which was there already.
void fsdp::escapeDiagnostics(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, func::FuncDialect *) {
    context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      escape(diagnostic);
      return failure(); // the next one prints it
    });
  });
}
