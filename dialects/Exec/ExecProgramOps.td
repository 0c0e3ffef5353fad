//===- ExecProgramOps.td - Programs, ranges, work, events ------------*- tablegen -*-===//
#ifndef FSDP_EXEC_PROGRAM_OPS
#define FSDP_EXEC_PROGRAM_OPS

include "dialects/Exec/ExecBase.td"
include "dialects/Fsdp/FsdpAttrs.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ViewLikeInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Programs and persistent ranges
//===----------------------------------------------------------------------===//

def Exec_RangeOp : Exec_Op<"range", [Symbol]> {
  let summary = "A named range of the arena that persists between programs";
  let description = [{
    exec-plan-memory sets `offset` (bytes). A parameter, its state and its gradient carry the full shape and the
    placement, so that the runtime can initialise, save and compare shards: `full` is the logical tensor type,
    `init` the nn initialiser, and `placement` the placement. So do the inputs and outputs of programs whose
    arguments and results have placements: the placement of an input determines which shard of a batch a rank
    gets. The contents of a range without a placement are the rank's own.

    An output that only one of several programs writes is valid until another program runs. It lies after the
    persistent part, where the transient buffers of a program that needs more memory may lie too.

    Example:
    ```mlir
    exec.range @w : memref<4x8xf32> role parameter at 0
        {full = tensor<16x8xf32>, init = #nn.normal<std = 2.0e-02>, placement = #fsdp.placement<[{| "dp_shard"}, {} ]>}
    ```

    Constraints: 1. the memref is static with identity layout; 2. offset, if set, is a multiple of 64 and not
    negative; 3. the type is one that a value may have, of at most 2^56 bytes; 4. the range ends within the 2^62
    bytes that an arena may have; 5. `full` is a tensor of static shape of at most 2^56 bytes; 6. `placement` is
    a #fsdp.placement with one list of axes per dimension.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
      Exec_RoleAttr:$role, OptionalAttr<I64Attr>:$offset,
      OptionalAttr<TypeAttr>:$full, OptionalAttr<AnyAttr>:$init,
      OptionalAttr<Fsdp_PlacementAttr>:$placement);
  let assemblyFormat = "$sym_name `:` $type `role` `` $role (`at` $offset^)? attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::MemRefType getMemRefType() { return ::mlir::cast<::mlir::MemRefType>(getType()); }
  }];
}

def Exec_ProgramOp : Exec_Op<"program", [Symbol, IsolatedFromAbove, SingleBlock,
    NoTerminator]> {
  let summary = "A straight-line program over the arena, the same on every rank";
  let description = [{
    `arena` (bytes) is the exact peak of this program, persistent ranges included. exec-plan-memory sets it.

    Example:
    ```mlir
    exec.program @train arena 4096 attributes {exec.inputs = ["tokens"], exec.outputs = ["loss"],
        exec.reads = ["tokens", "w"], exec.writes = ["loss", "w"]} {
      %x = exec.get @tokens : memref<2x256xi32>
      %y = exec.get @loss : memref<f32>
    }
    ```

    Discardable attributes:

    | attribute | meaning |
    |---|---|
    | `exec.inputs` | ranges of the program's arguments, in order |
    | `exec.outputs` | ranges of its results, in order |
    | `exec.reads` | ranges whose previous contents it reads |
    | `exec.writes` | ranges that it writes whole |
    | `exec.adds` | ranges of both lists that it adds to |
    | `exec.clears` | ranges that it writes and leaves at zero |
    | `exec.flops` | floating point operations of one run |
    | `exec.model_flops` | the same without recomputation, if that is less |
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, OptionalAttr<I64Attr>:$arena);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name (`arena` $arena^)? attr-dict-with-keyword $body";
}

def Exec_FuncOp : Exec_Op<"func", [Symbol, IsolatedFromAbove, SingleBlock,
    NoTerminator]> {
  let summary = "A block of work that several places share, with ranges as arguments";
  let description = [{
    exec-outline creates it. Event numbers inside are relative: event k of the function is entry k of the call's
    `events`.

    Example:
    ```mlir
    exec.func @layer_forward {
    ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
      exec.wait 0 on gather
      exec.copy on gather (%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sym_name attr-dict-with-keyword $body";
}

def Exec_CallOp : Exec_Op<"call", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs an exec.func on these ranges and events";
  let description = [{
    Example: `exec.call @layer_forward(%a, %b) events [3, 4] : memref<4x8xf32>, memref<8xf32>`

    `exec.makes` is an array with an entry per work of the function, in order. Each entry names the values that
    the work produces in this call, as the attribute does on work itself.

    Constraints: 1. the function exists; 2. operand types are the types of its arguments; 3. events are numbered
    up to 2^31 − 1.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Exec_Buffer>:$operands,
      DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$events);
  let assemblyFormat = "$callee `(` $operands `)` `events` $events attr-dict (`:` type($operands)^)?";
}

//===----------------------------------------------------------------------===//
// Where values come from
//===----------------------------------------------------------------------===//

def Exec_GetOp : Exec_Op<"get", [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "A persistent range, or several side by side, as a value";
  let description = [{
    `adjacent` lists ranges that follow `range` without a gap, for work that reads all of them as one.
    exec-plan-memory places them so. Work that writes gets each range by a view of its own.

    Example: `%w = exec.get @w : memref<4x8xf32>`;
    `%all = exec.get @w adjacent [@v] : memref<64xf32>`

    Constraints: 1. the ranges exist; a single one has this type; 2. `adjacent` is not empty; several are
    distinct, of one role that is not `output`, and the result has one dimension, their element type and as many
    elements as they have together; 3. all of them have offsets or none; each then begins where the one before it
    ends; 4. work only reads several as one (exec-verify).
  }];
  let arguments = (ins FlatSymbolRefAttr:$range, OptionalAttr<FlatSymbolRefArrayAttr>:$adjacent);
  let results = (outs Exec_Buffer:$result);
  let assemblyFormat = "$range (`adjacent` $adjacent^)? attr-dict `:` type($result)";
  let builders = [OpBuilder<(ins "::mlir::MemRefType":$type, "::mlir::ArrayRef<::mlir::StringAttr>":$ranges)>];
  let extraClassDeclaration = [{
    /// All of them, in order.
    ::llvm::SmallVector<::mlir::StringAttr> getRanges();
  }];
}

def Exec_AllocOp : Exec_Op<"alloc", [MemoryEffects<[]>]> {
  let summary = "A transient buffer: bytes that live from the first to the last use";
  let description = [{
    Allocates nothing at run time. exec-plan-memory sets `offset` (bytes from the start of the arena, a multiple
    of 64). `label` says what the buffer holds.

    In an exec.func it is another buffer in each call, at the same place.

    Constraints: 1. offset, if set, is a multiple of 64 and not negative; 2. the buffer ends within the 2^62
    bytes that an arena may have.

    Example: `%a = exec.alloc at 8192 "layers.0.h" : memref<4x8xf32>`
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$offset, OptionalAttr<StrAttr>:$label);
  let results = (outs Res<Exec_Buffer, "", [MemAlloc]>:$result);
  let assemblyFormat = "(`at` $offset^)? ($label^)? attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def Exec_ViewOp : Exec_Op<"view", [Pure, DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "Consecutive elements of another range under another shape";
  let description = [{
    `offset` counts elements of the source.

    Example: `%b = exec.view %a[16] : memref<4x8xf32> to memref<16xf32>`;
    `%b = exec.view %a[32] : memref<4x8xf32> to memref<16xf32>` (fails: 32 + 16 > 32)

    Constraints: 1. equal element types; 2. offset + elements fit the source.
  }];
  let arguments = (ins Exec_Buffer:$source, I64Attr:$offset);
  let results = (outs Exec_Buffer:$result);
  let assemblyFormat = "$source `[` $offset `]` attr-dict `:` type($source) `to` type($result)";
  let hasVerifier = 1;
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

def Exec_LaunchOp : Exec_WorkOp<"launch", [Exec_WorkOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a kernel over its iteration space";
  let description = [{
    Example: `exec.launch @silu on compute (%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>)`

    Constraints: 1. the kernel exists; 2. operand types are its arguments'.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Exec_StreamAttr:$stream,
      Variadic<Exec_Buffer>:$inputs, Variadic<Exec_Buffer>:$outputs);
  let assemblyFormat = [{
    $kernel `on` `` $stream `(` ($inputs^ `:` type($inputs))? `)` `outs` `(` $outputs `:` type($outputs) `)` attr-dict
  }];
}

//===----------------------------------------------------------------------===//
// Order between streams
//===----------------------------------------------------------------------===//

def Exec_AwaitOp : Exec_Op<"await"> {
  let summary = "The compute stream waits for an operation in flight";
  let description = [{
    After it, the operation no longer keeps its buffers live. exec-synchronize replaces it by events.

    Example: `exec.await %t`
  }];
  let arguments = (ins Exec_TokenType:$token);
  let assemblyFormat = "$token attr-dict";
}

/// Numbers from 0; exec-verify proves that they are not negative.
def Exec_EventAttr : ConfinedAttr<I64Attr, [IntMaxValue<2147483647>]>;

def Exec_RecordOp : Exec_Op<"record"> {
  let summary = "Marks the current end of a stream as event number `event`";
  let description = "Example: `exec.record 3 on gather`";
  let arguments = (ins Exec_EventAttr:$event, Exec_StreamAttr:$stream);
  let assemblyFormat = "$event `on` `` $stream attr-dict";
}

def Exec_WaitOp : Exec_Op<"wait"> {
  let summary = "Later work on a stream starts after event number `event`";
  let description = "Example: `exec.wait 3 on compute`";
  let arguments = (ins Exec_EventAttr:$event, Exec_StreamAttr:$stream);
  let assemblyFormat = "$event `on` `` $stream attr-dict";
}

#endif // FSDP_EXEC_PROGRAM_OPS
