//===- FsdpInterfaces.td - What moves, and what can be in flight --*- tablegen -*-===//
#ifndef FSDP_FSDP_INTERFACES
#define FSDP_FSDP_INTERFACES

include "mlir/IR/OpBase.td"

def Fsdp_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::fsdp::dist";
  let description = [{
    An exchange among all ranks along some axes of a mesh. Operand i belongs to result i. Passes that plan,
    merge, move and check collectives know them only by this interface, so a new kind needs no change there.
  }];
  let methods = [
    InterfaceMethod<"The kind; layoutOf says what it does to the operands.",
      "::fsdp::dist::CollectiveKind", "getCollectiveKind", (ins)>,
    InterfaceMethod<"How the operands are combined over the ranks; none if they are not.",
      "::std::optional<::fsdp::dist::CollectiveReduce>", "getReduction", (ins)>,
    InterfaceMethod<[{
      The dimension along which the operands of all ranks are joined, of which padding after the result's size
      is dropped; none if they are not joined.
    }], "::std::optional<int64_t>", "getJoinedDim", (ins)>,
    InterfaceMethod<"The dimension of which each rank keeps its shard; none if it keeps all.",
      "::std::optional<int64_t>", "getSplitDim", (ins)>,
    InterfaceMethod<"Name of the mesh.",
      "::mlir::FlatSymbolRefAttr", "getMeshAttr", (ins)>,
    InterfaceMethod<"The mesh axes whose ranks take part.", "::mlir::ArrayAttr", "getAxes", (ins)>,
    InterfaceMethod<[{What it is for: the phase of the program and the module,
      parameter or bucket, "fwd layers.3"; null if unknown.}],
      "::fsdp::dist::OriginAttr", "getServesAttr", (ins)>,
    InterfaceMethod<"", "void", "setServesAttr", (ins "::fsdp::dist::OriginAttr":$serves)>,
    InterfaceMethod<[{
      Bytes that one of `ranks` ranks sends to others, in the wire type; INT64_MAX if there are more.
    }], "int64_t", "getWireBytes", (ins "int64_t":$ranks), [{}], [{
      return ::fsdp::dist::wireBytesOf($_op.getCollectiveKind(),
          $_op->getOperandTypes(), $_op->getResultTypes(), ranks);
    }]>
  ];
  let extraClassDeclaration = [{
    bool isGather() { return ::fsdp::dist::isGather(getCollectiveKind()); }
    bool isReduction() { return ::fsdp::dist::isReduction(getCollectiveKind()); }
  }];
}

def Fsdp_InFlightOpInterface : OpInterface<"InFlightOpInterface"> {
  let cppNamespace = "::fsdp::dist";
  let description = [{
    An op that fsdp.async can start, so that the program continues while it runs. It has no regions, and its
    only effects are on its results.
  }];
  let methods = [
    InterfaceMethod<[{
      The stream that it runs on. Ops of one stream run in order of issue, so an op may be started after another
      op of its stream although the program does not wait for that one.
    }], "::fsdp::dist::StreamRole", "getStreamRole", (ins)>
  ];
}

#endif // FSDP_FSDP_INTERFACES
