//===- ExecPasses.td - Bytes and order ---------------------*- tablegen -*-===//
//
// The passes of Exec/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EXEC_PASSES
#define FSDP_EXEC_PASSES

include "mlir/Pass/PassBase.td"

def ExecLower : Pass<"exec-lower", "::mlir::ModuleOp"> {
  let summary = "Turns programs over tensors into programs over ranges of bytes";
  let description = [{
    Every public function becomes an exec.program. Tensors that persist (parameters, state, arguments,
    results, gradients) become exec.range, and other tensors become exec.alloc without offsets.

    ```mlir
    func.func @evaluate(%x: tensor<2x4x8xf32> {nn.name = "x"}) -> (tensor<2x4x16xf32> {nn.name = "y"}) {
      %w = nn.read @w : tensor<16x8xf32>
      %y = nn.linear %x, %w : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
      return %y : tensor<2x4x16xf32>
    }
    →
    exec.range @w : memref<16x8xf32> role parameter …
    exec.program @evaluate … {
      %x = exec.get @x : memref<2x4x8xf32>
      %y = exec.get @y : memref<2x4x16xf32>
      …
      exec.gemm on compute (%x2, %w : …) outs(%y2 : …) workspace(%s : …) {transpose_rhs}
    }
    ```

    - An nn.fusion or a single op of KernelOpInterface becomes a kernel and a launch. Equal kernels are one
      kernel. Values inside a kernel are not stored, and each op still rounds to its declared type.
    - Matmuls, attention, embedding, losses and the optimizer become calls of the runtime, with the workspace
      that the target needs. The record of an exec op names the nn op that lowers to it one to one.
      `exec.target` and `exec.threads` of the module name the target and the threads of these workspaces.
    - Reshapes, contiguous slices and nn.recompute_from become views. A result is written to its final place,
      without a copy. So are the parts of an nn.concat that lie one after another in it.
    - Parameters, or buffers, whose whole values are such parts lie side by side if only matrix products read the
      result. The nn.concat is then an exec.get of all of them (`adjacent`). They are of one role, and all but the
      last have a multiple of the bytes that the target aligns ranges to. A tensor is in one such group, the first
      that a program needs. Parts that change before the last use of the result are copied.
    - A collective inside fsdp.async runs on the gather or the reduce stream and returns a token, which is
      awaited where fsdp.await stood. Other collectives run on the compute stream. An fsdp.await inside
      fsdp.async becomes nothing: the stream runs in order.
    - Arguments and results with a placement, in the program of one rank (`fsdp.local`), become ranges with
      the logical type and the placement, as declarations do.
    - Work belongs to the module of its nn op, and `exec.makes` names the values that it writes: by the
      address that fsdp-address gave the op, and of several tensors also by the tensor, "fwd layers.3
      all_gather of layers.3.attention.wq.weight". A cast alone is named after its parameter. A run uses
      these names to report a value that is not finite.
    - A transient buffer is named after the module of its op and the op, or after the parameter if it holds
      a parameter or a gradient: "layers.1.feed_forward.w2: linear",
      "layers.1.feed_forward.w2.weight: all_gather".

    The effects of a program on ranges are stated from the function, before it is lowered: the ranges whose
    previous contents it reads (`exec.reads`), those that it writes whole (`exec.writes`), those that
    nn.accumulate adds to (`exec.adds`), and those that nn.clear leaves at zero (`exec.clears`). An nn.write
    of the buffer's own value plus something else adds too, if a step that runs the program clears the buffer.
    `exec.steps` of the module says how often each step of `nn.steps` runs each program. exec-verify proves
    all these statements.

    An nn.write of the value that the buffer holds becomes no work, and neither does an op whose results are
    unused.

    The pass leaves offsets to exec-plan-memory and events to exec-synchronize.

    Attention is the library's, except in three cases. `plain-attention` asks for the reference attention of the
    runtime, and the CUDA target takes it for f32 and for a cap on scores, which cuDNN lacks. If a cap alone is
    why, one warning names the layers. The reference attention takes heads of at most 256 elements.
    `fast-attention` leaves the order of the sums of the library's gradient to the library.

    Sums over ranks are the runtime's unless `fast-reductions` asks for those of the library, whose operands and
    results have one type (`widen-sums` of fsdp-expand). A maximum is always the runtime's, since NCCL loses a
    NaN in it.

    `target=test` sizes workspaces by fixed formulas, so that tests do not depend on the machine. Only
    collectives and shards (fsdp.shard_of) along dimension 0 are lowered.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "Name of the target that workspaces are sized for">,
    Option<"threads", "threads", "int", "1", "Compute threads per rank, 1 to 4096">,
    Option<"referenceAttention", "plain-attention", "bool", "false",
           "Use the reference attention of the runtime instead of the library's; "
           "it produces the same bits on every target">,
    Option<"fastAttention", "fast-attention", "bool", "false",
           "Let the library's gradient of attention add in no fixed order; it needs less workspace, "
           "and runs do not repeat to the bit">,
    Option<"fastReductions", "fast-reductions", "bool", "false",
           "Leave sums over ranks to the library, which chooses their order and bits">
  ];
  let dependentDialects = ["::fsdp::exec::ExecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def BatchCasts : Pass<"exec-batch-casts", "::mlir::ModuleOp"> {
  let summary = "Merges consecutive casts into one operation";
  let description = [{
    Before a bucket is gathered, every shard in it is rounded to bf16 by a kernel per tensor. For a large
    model these are more than half of all launches, and most of them take less time than a launch. Consecutive
    launches that only round f32 to bf16 become one exec.narrow where the last of them stood. Kernels without
    a launch are erased.

    ```mlir
    exec.launch @cast on compute(%a : …) outs(%b : …)
    exec.launch @cast_2 on compute(%c : …) outs(%d : …)
    // becomes
    exec.narrow on compute(%a, %c : …) outs(%b, %d : …)
    ```

    The result belongs to the innermost module that contains all of them. A group of casts ends at any other
    work and at an await. The pass runs before offsets are planned, since the buffers of a group are then live
    together, and refuses programs that have offsets.
  }];
  let dependentDialects = ["::fsdp::exec::ExecDialect"];
}

def PlanMemory : Pass<"exec-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every range and transient buffer its bytes in one static arena";
  let description = [{
    Persistent ranges come first: parameters, optimizer state, gradients, buffers, inputs, outputs. The
    transient buffers of every program follow. Programs run one after another and share these bytes. Ranges that
    an exec.get reads as one (`adjacent`) follow each other. It is an error if they cannot: all but the last have a
    multiple of the bytes that ranges are aligned to, and a range follows one other and precedes one other at most.

    The live range of a buffer is from its first to its last use in order of issue, views included. The
    buffers of an operation in flight are live until its token is awaited. If nothing awaits its token, they
    are live until that of a later operation of the same stream is awaited.

    The pass tries several packing orders and a local search and keeps the smallest plan. Code that does not
    know how the plan was found checks it. An order that fragments the arena is abandoned once it has looked at
    512 taken ranges per buffer, except the first order.

    An output that only one of several programs writes is valid until another program runs, unless it is a
    scalar. It lies after the persistent ranges, where the transient buffers of a program that needs more
    memory may lie too. So a training step keeps no room for the outputs of an evaluation.

    ```mlir
    exec.range @w : memref<4xf32> role parameter
    exec.program @p {
      %w = exec.get @w : memref<4xf32>
      %a = exec.alloc : memref<4xf32>
      exec.copy on compute (%w : memref<4xf32>) outs(%a : memref<4xf32>)
    }
    // becomes
    exec.range @w : memref<4xf32> role parameter at 0
    exec.program @p arena 128 … {
      %w = exec.get @w : memref<4xf32>
      %a = exec.alloc at 64 : memref<4xf32>
    ```

    The pass also sets `exec.persistent_bytes` and `exec.arena_bytes` of the module and, on each program,
    `exec.memory`: the live buffers at the peak. It emits a remark with the metrics peak and lower bound.
    `memory-budget` is a hard limit. A program that does not fit is an error that names the largest live
    buffers at the peak and the settings that would help.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "int64_t", "0", "Bytes that the arena may have; 0: no limit">,
    Option<"report", "report", "bool", "false", "Print the live buffers at the peak">
  ];
}

def Synchronize : Pass<"exec-synchronize", "::mlir::ModuleOp"> {
  let summary = "Orders conflicting work on different streams with the fewest events";
  let description = [{
    Two operations conflict if they touch the same bytes of the arena and one of them writes. Work on one
    stream runs in order of issue. Between streams, a record after the source and a wait before the target
    order a conflict, unless the vector clocks show that it is ordered already. After an await, the next
    work on the compute stream waits in the same way.

    A program starts and ends in the compute stream. The first work on every other stream waits for the start
    of the program, and the compute stream waits for all streams at the end. So steps never overlap in the
    arena, and a program can be captured as one CUDA graph.

    ```mlir
    %t = exec.collective all_gather on gather (…) … -> !exec.token
    exec.await %t
    exec.gemm on compute …
    // becomes
    exec.record 0 on compute
    exec.wait 0 on gather
    exec.collective all_gather on gather (…) …
    exec.record 1 on gather
    exec.wait 1 on compute
    exec.gemm on compute …
    ```

    Requires exec-plan-memory. Events are numbered from 0 per program. No token is left.
  }];
}

def VerifyExec : Pass<"exec-verify", "::mlir::ModuleOp"> {
  let summary = "Proves that programs use the bytes of the arena without conflicts";
  let description = [{
    Shares no code with the passes whose decisions it checks. It proves that

    1. ranges and transient buffers lie inside the arena, and ranges do not overlap. Only the programs that write an
       output after the persistent part use it, and they write no transient buffer over it;
    2. every wait has an earlier record;
    3. every stream starts after the start of the program and ends before its end;
    4. streams and events order every two accesses to one byte of which one is a write;
    5. every byte that is read was last written into the same buffer by an earlier operation of this run;
    6. the outputs of an operation overlap neither each other nor its inputs, unless it updates a buffer in
       place;
    7. kernels write all of their outputs, each element by one thread, and only that thread reads it. They load
       from no column outside of the row;
    8. if the module names its target (`exec.target`), every workspace has the bytes that the libraries of the
       target need. Ranges, transient buffers and the operands of matrix products and attention, views included,
       begin at multiples of the alignment that the target states;
    9. a program reads the previous contents of a range only if it states so (`exec.reads`), and writes whole
       the ranges that it states (`exec.writes`), its results among them;
    10. in a range that it states to add to (`exec.adds`), a program leaves, element by element, the previous
        value plus something else. It leaves zeros in a range that it states to clear (`exec.clears`). It does
        not add, without a statement, to a range that its step clears;
    11. a step runs each program as often as stated (`exec.steps`). It runs programs that take `x` once for
        each slice of the `x.of_step` of another program; the two sizes give the number of slices;
    12. another program of a step reads a range only after the program that produces it, and reads all of it:
        not the last value of a range that every microbatch produces anew;
    13. a sum, which some program adds to, is read after something has been added. A sum that a step adds to
        before it has written it is declared with zeros, and every step leaves it at zero.

    These rules use the following definitions:

    - A buffer is transient or a range, not a span of bytes. Two transient buffers at one place are two
      buffers, and one of an exec.func is another buffer in each call. Work that reads several ranges as one
      (`adjacent` of exec.get) reads each of them. No work writes several as one.
    - Parameters, state, buffers and inputs are valid when a program starts, and so is a gradient that another
      program of the module states to write. An output is invalid until the program has written it.
    - A program produces a range if it writes it, does not read it and does not clear it. A range that all its
      writers also read (parameters, state) is valid from the step before. So is a range produced by a program
      that the step does not run, if it is a parameter or a buffer of the model or if the step itself writes
      it.
    - An addition is one of a kernel, at one place of its input and output and in their type, or one of
      exec.gemm_add or exec.accumulate. Copies keep what they copy. Zeros are those of exec.fill_zero. The pass
      does not check what is added, how often, or whether it depends on the previous value, nor programs that run
      between two steps. Without `exec.adds`, a range that no step of the program clears is state, like a parameter.
    - The rows of a kernel run concurrently, and so do the columns of an exec.map. The column that a load names
      is bounded for all values of the current column and of loaded values, by interval arithmetic that halves
      the ranges of values where the bound is too wide.
    - A workspace is invalid after its operation, and only a transient buffer can be one. copy_box writes
      only its box (of 2^20 pieces at most); all other work writes whole outputs.
    - Only `exec.adamw`, `exec.adamw_copy`, `exec.accumulate`, `exec.gemm_add` and an all_reduce update a buffer in
      place, as their records state. Other work must not: a matmul reads again after it has begun to write, and
      kernels are compiled to assume that nothing writes what they read.

    The pass follows calls. The pipeline runs it before exec-outline, where every message names one layer, and
    after it, on the program that is emitted.
  }];
}

def Outline : Pass<"exec-outline", "::mlir::ModuleOp"> {
  let summary = "Turns each block that a program repeats into a function";
  let description = [{
    The pass compares work without offsets, event numbers, modules, `serves` and `exec.makes`. Consecutive
    copies of a block become one exec.func and a call each. Buffers that differ between the copies become
    arguments, in order of first use: one per buffer, named in its location ("layers.*.h"). A range that every
    copy names stays inside the function. So does a transient buffer at the same place in every copy that
    nothing outside of its copy uses. A transient buffer that carries a value from copy
    to copy is an argument wherever it lies. Blocks of several programs with equal text share a function. The
    call of a copy states what the work of that copy produces (`exec.makes`), in the order of the work.

    If events repeat less regularly than work, either the block is split there or the copies that differ stay
    in the program, whichever leaves fewer statements.

    ```mlir
    exec.gemm on compute (%x, %w0 …) outs(%h0 …)
    exec.launch @silu on compute (%h0 …) outs(%x …)
    exec.gemm on compute (%x, %w1 …) outs(%h1 …)
    exec.launch @silu on compute (%h1 …) outs(%x …)
    // becomes
    exec.func @train_layers_0 { ^bb0(%w: …, %h: …):
      %x = exec.alloc at 8192 …
      exec.gemm on compute (%x, %w …) outs(%h …)
      exec.launch @silu on compute (%h …) outs(%x …)
    }
    exec.call @train_layers_0(%w0, %h0) events [] …
    exec.call @train_layers_0(%w1, %h1) events [] …
    ```

    The pass changes only how the program is written. It follows the calls that it has added, and fails if
    operations, bytes, events or the identity of buffers differ from before; modules and names may. Requires
    exec-plan-memory and exec-synchronize.
  }];
  let options = [
    Option<"minSaved", "min-saved", "int64_t", "8", "Statements that a function must save">
  ];
}

#endif // FSDP_EXEC_PASSES
