//===- FsdpTypes.td - Futures ---------------------------------*- tablegen -*-===//
#ifndef FSDP_FSDP_TYPES
#define FSDP_FSDP_TYPES

include "dialects/Fsdp/FsdpDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Fsdp_FutureType : TypeDef<Fsdp_Dialect, "Future"> {
  let mnemonic = "future";
  let summary = "Tensors that an operation in flight will produce";
  let description = "Example: `!fsdp.future<tensor<8x4xf32>, tensor<4xf32>>`";
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$types);
  let assemblyFormat = "`<` $types `>`";
  let genVerifyDecl = 1;
}

#endif // FSDP_FSDP_TYPES
