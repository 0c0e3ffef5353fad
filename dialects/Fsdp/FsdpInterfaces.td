//===- FsdpInterfaces.td - What moves, and what can be in flight --*- tablegen -*-===//
#ifndef FSDP_FSDP_INTERFACES
#define FSDP_FSDP_INTERFACES

include "mlir/IR/OpBase.td"

def Fsdp_CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::fsdp::dist";
  let description = [{
    An exchange that all ranks along some axes of a mesh take part in: operand i
    belongs to result i. Passes that plan, merge, move and check collectives know
    nothing else of them, so that a new kind needs no change there.
  }];
  let methods = [
    InterfaceMethod<"Which collective; layoutOf says what it does to the operands.",
      "::fsdp::dist::CollectiveKind", "getCollectiveKind", (ins)>,
    InterfaceMethod<"How the operands are combined over the ranks; none if they are not.",
      "::std::optional<::fsdp::dist::CollectiveReduce>", "getReduction", (ins)>,
    InterfaceMethod<[{
      The dimension along which those of all ranks are joined, of which padding
      behind the result's size is dropped; none if they are not.
    }], "::std::optional<int64_t>", "getJoinedDim", (ins)>,
    InterfaceMethod<"The dimension of which each rank keeps its part; none if it keeps all.",
      "::std::optional<int64_t>", "getSplitDim", (ins)>,
    InterfaceMethod<"Name of the mesh.",
      "::mlir::FlatSymbolRefAttr", "getMeshAttr", (ins)>,
    InterfaceMethod<"Whose ranks take part.", "::mlir::ArrayAttr", "getAxes", (ins)>,
    InterfaceMethod<[{What it is for: the phase of the program and the module,
      parameter or bucket, "fwd layers.3"; null if nothing is said.}],
      "::fsdp::dist::OriginAttr", "getServesAttr", (ins)>,
    InterfaceMethod<"", "void", "setServesAttr", (ins "::fsdp::dist::OriginAttr":$serves)>,
    InterfaceMethod<[{
      Bytes that one of `ranks` ranks sends to others, in the type that travels;
      INT64_MAX if there are more.
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
    An op that fsdp.async can start, so that the program goes on while it runs:
    it has no regions, and its effects are on its results alone.
  }];
  let methods = [
    InterfaceMethod<[{
      Where it runs. What is started on one stream runs in order of issue, so an
      op may be started behind another of its stream without the program
      waiting for that.
    }], "::fsdp::dist::StreamRole", "getStreamRole", (ins)>
  ];
}

#endif // FSDP_FSDP_INTERFACES
