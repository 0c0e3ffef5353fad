//===- ExecInterfaces.td - What readers of a program ask work for *- tablegen -*-===//
#ifndef FSDP_EXEC_INTERFACES
#define FSDP_EXEC_INTERFACES

include "mlir/IR/OpBase.td"

def Exec_WorkOpInterface : OpInterface<"WorkOpInterface"> {
  let cppNamespace = "::fsdp::exec";
  let description = [{
    Work on a stream: the buffers that it reads and writes, and which of them may be one buffer. Memory planning,
    events, outlining and their proof know work only by this interface.
  }];
  let methods = [
    InterfaceMethod<"The stream that the work runs on.",
      "::fsdp::exec::Stream", "getStream", (ins)>,
    InterfaceMethod<"Buffers that are read.",
      "::mlir::Operation::operand_range", "getInputs", (ins)>,
    InterfaceMethod<"Buffers that are written.",
      "::mlir::Operation::operand_range", "getOutputs", (ins)>,
    InterfaceMethod<[{
      Scratch buffers. They count as written, and their contents are invalid afterwards.
    }], "::mlir::Operation::operand_range", "getWorkspaces", (ins), [{}],
      [{ return $_op->getOperands().take_front(0); }]>,
    InterfaceMethod<[{
      The input that may be the same buffer as output `output`, if there is one. Other work reads after it has
      begun to write, or is compiled to assume that nothing writes what it reads (`__restrict`).
    }], "::std::optional<unsigned>", "getInPlaceInput",
      (ins "unsigned":$output), [{}], [{ return ::std::nullopt; }]>,
    InterfaceMethod<[{
      The box of output `output` that is written; none: all of it. Elements outside keep their values.
    }], "::std::optional<::fsdp::exec::WrittenBox>", "getWrittenBox",
      (ins "unsigned":$output), [{}], [{ return ::std::nullopt; }]>
  ];
}

def Exec_RuntimeOpInterface : OpInterface<"RuntimeOpInterface", [Exec_WorkOpInterface]> {
  let cppNamespace = "::fsdp::exec";
  let description = [{
    A call of a typed function of the runtime. The record of the op, Exec_RuntimeOp, determines all of it: the
    verifier, the function and its arguments, and the workspace. The descriptor that sizes a workspace at
    compile time is the one that runs.
  }];
  let methods = [
    StaticInterfaceMethod<"Function, buffers and their shapes.",
      "const ::fsdp::exec::RuntimeSignature &", "getSignature", (ins)>,
    InterfaceMethod<[{
      Adds to `call` the arguments of the function after context and stream, in order.
    }], "void", "spellCall", (ins "::fsdp::exec::RuntimeCall &":$call)>,
    InterfaceMethod<[{
      Bytes of scratch that the libraries of a target need, one entry per workspace that the op may have; 0:
      none. A size that is negative or above 2^56 is too large for the library. The shapes must have been
      verified. A mesh is looked up from `scope`.
    }], "::llvm::SmallVector<int64_t>", "getWorkspaceBytes",
      (ins "const ::fsdp::exec::WorkspaceSizes &":$sizes,
           "::mlir::Operation *":$scope)>,
    InterfaceMethod<"The workspaces, mutable.",
      "::mlir::MutableOperandRange", "getWorkspacesMutable", (ins)>
  ];
  let verify = [{
    return ::fsdp::exec::verifySignature(
        ::mlir::cast<::fsdp::exec::RuntimeOpInterface>($_op));
  }];
}

#endif // FSDP_EXEC_INTERFACES
