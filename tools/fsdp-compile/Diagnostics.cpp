//===- Diagnostics.cpp - Prints what passes say ---------------------------===//
#include "Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsdp;
using namespace mlir;

/// The module of the model that a location names, or nothing.
static StringRef moduleOf(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

DiagnosticPrinter::DiagnosticPrinter(llvm::SourceMgr &sources,
                                     MLIRContext *context)
    : inFile(sources, context),
      handler(context, [this](Diagnostic &diagnostic) {
        print(diagnostic, /*parent=*/{});
      }) {}

void DiagnosticPrinter::print(Diagnostic &diagnostic, StringRef parent) {
  Location location = diagnostic.getLocation();
  StringRef module = moduleOf(location);
  std::string text = diagnostic.str();
  if (!module.empty() && module != parent)
    text = (module + ": " + text).str();
  if (location->findInstanceOf<FileLineColLoc>())
    inFile.emitDiagnostic(location, text, diagnostic.getSeverity());
  else if (diagnostic.getSeverity() == DiagnosticSeverity::Note)
    llvm::errs() << "  " << text << '\n';
  else
    llvm::errs() << "fsdp-compile: "
                 << (diagnostic.getSeverity() == DiagnosticSeverity::Error
                         ? "error: "
                         : "")
                 << text << '\n';
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, module);
}
