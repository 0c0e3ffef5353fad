//===- fsdp-lsp-server.cpp - Language server for our textual IR -----------===//
#include "dialects/Exec/Exec.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  fsdp::registerFsdpDialects(registry);
  return mlir::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
