//===- Diagnostics.cpp - Prints what passes say ---------------------------===//
#include "fsdp/Driver/Diagnostics.h"
#include "fsdp/Support/Text.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsdp;
using namespace mlir;

llvm::raw_ostream &fsdp::startMessage(const char *tool, StringRef kind) {
  return llvm::errs() << tool << ": " << kind << ": ";
}

/// The module of the model that a location names, or nothing.
static StringRef moduleOf(Location location) {
  auto name = location->findInstanceOf<NameLoc>();
  return name ? name.getName().getValue() : StringRef();
}

DiagnosticPrinter::DiagnosticPrinter(const char *tool, llvm::SourceMgr &sources,
                                     MLIRContext *context)
    : tool(tool), inFile(sources, context),
      handler(context, [this](Diagnostic &diagnostic) {
        print(diagnostic, /*parent=*/nullptr);
      }) {}

void DiagnosticPrinter::print(Diagnostic &diagnostic, Diagnostic *parent) {
  Location location = diagnostic.getLocation();
  StringRef module = moduleOf(location);
  std::string text = diagnostic.str();
  if (!module.empty() && !(parent && module == moduleOf(parent->getLocation())))
    text = (module + ": " + text).str();
  text = printable(text);
  bool isInFile = location->findInstanceOf<FileLineColLoc>() &&
                  !(parent && location == parent->getLocation());
  if (isInFile)
    inFile.emitDiagnostic(location, text, diagnostic.getSeverity());
  else if (parent)
    llvm::errs() << "  " << text << '\n';
  else if (diagnostic.getSeverity() == DiagnosticSeverity::Error)
    startMessage(tool, "error") << text << '\n';
  else
    llvm::errs() << tool << ": " << text << '\n';
  for (Diagnostic &note : diagnostic.getNotes())
    print(note, &diagnostic);
}
