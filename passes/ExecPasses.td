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
    Every public function becomes an exec.program; what persists (parameters,
    state, arguments, results, gradients) becomes exec.range, other tensors
    become exec.alloc without offsets.

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

    - An nn.fusion or a single op of KernelOpInterface is a kernel and a
      launch; equal kernels are one. Values inside a kernel are not stored;
      each op still rounds to its declared type.
    - Matmuls, attention, embedding, losses and the optimizer are calls of the
      runtime (the record of an exec op says which nn op it takes as it is),
      with the workspace that the target asks for. `exec.target` and
      `exec.threads` of the module say whose workspaces it has.
    - Reshapes, contiguous slices and nn.recompute_from are views; a result is
      written where it ends, without a copy.
    - A collective inside fsdp.async runs on the gather or reduce stream and
      gives a token, awaited where fsdp.await stood; others run on compute. An
      fsdp.await inside fsdp.async needs nothing: the stream runs in order.
    - Arguments and results that a rank's program (`fsdp.local`) places give
      ranges with the logical type and the placement, as declarations do.
    - Work belongs to the module of the op that it was, and says in `exec.makes`
      whose values it writes: the address that fsdp-address gave the op; of
      several tensors also which one, "fwd layers.3 all_gather of
      layers.3.attention.wq.weight"; a cast alone is of its parameter. By this a
      run names a value that is not finite. An interval is called
      after the module of its op and the op, one that
      holds a parameter or a gradient after the parameter:
      "layers.1.feed_forward.w2: linear",
      "layers.1.feed_forward.w2.weight: all_gather".

    What a program does to ranges is stated from the function, before it is
    lowered: those of which it reads what was there before (`exec.reads`), those
    that it writes, whole (`exec.writes`), those that nn.accumulate adds to
    (`exec.adds`), and those that nn.clear leaves at zero (`exec.clears`). An
    nn.write of the buffer's own value and something more adds too, where a
    step that runs the program clears the buffer. `exec.steps` of the module says how
    often each step of `nn.steps` runs each program. exec-verify proves all of
    it.

    An nn.write of what the buffer holds is no work, nor is an op whose results
    nobody reads.

    It leaves offsets to exec-plan-memory and events to exec-synchronize.
    Attention is the library's unless `plain-attention` asks for the runtime's
    own, or the target is CUDA and the type f32, which cuDNN does not have; that
    takes heads of at most 256 elements. Sums over ranks are the runtime's unless
    `fast-reductions` asks for the library's, which takes and gives one type
    (`widen-sums` of fsdp-expand); a maximum never is, since NCCL loses
    a NaN in it.
    `target=test` sizes workspaces by fixed formulas, so that tests do not
    depend on the machine. Only collectives and parts (fsdp.shard_of) along
    dimension 0 are lowered.
  }];
  let options = [
    Option<"target", "target", "std::string", "\"cpu\"", "Whose workspace sizes: the name of a target">,
    Option<"threads", "threads", "int", "1", "Compute threads per rank, 1 to 4096">,
    Option<"referenceAttention", "plain-attention", "bool", "false",
           "Attention without the library, the same bits on every target">,
    Option<"fastReductions", "fast-reductions", "bool", "false",
           "Sums over ranks by the library, whose order and bits are its own">
  ];
  let dependentDialects = ["::fsdp::exec::ExecDialect", "::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect"];
}

def BatchCasts : Pass<"exec-batch-casts", "::mlir::ModuleOp"> {
  let summary = "Makes casts that follow each other one operation";
  let description = [{
    Before a bucket is gathered, every shard in it is rounded to bf16: a kernel
    per tensor, which for a large model is more than half of all launches, most
    of them over in less time than a launch takes. Launches in a row that do
    nothing but round f32 to bf16 become one exec.narrow where the last of them
    stood; kernels without a launch are erased.

    ```mlir
    exec.launch @cast on compute(%a : …) outs(%b : …)
    exec.launch @cast_2 on compute(%c : …) outs(%d : …)
    // becomes
    exec.narrow on compute(%a, %c : …) outs(%b, %d : …)
    ```

    The result belongs to the module that all of them are in. A row ends at any
    other work, and at an await. It runs before offsets are planned,
    since the buffers of a row are then in use together, and refuses programs
    that have theirs.
  }];
  let dependentDialects = ["::fsdp::exec::ExecDialect"];
}

def PlanMemory : Pass<"exec-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Gives every range and interval its bytes in one static arena";
  let description = [{
    Persistent ranges come first: parameters, optimizer state, gradients,
    buffers, inputs, outputs. The intervals of every program follow; programs
    run one after another and share those bytes. An interval lives from its
    first to its last use in order of issue, through views; what an operation
    in flight uses lives until its token is awaited, or that of a later
    operation of its stream where nobody awaits its own. Several packing orders
    and a local search are tried and the smallest plan is kept; it is checked
    by code that does not know how it was found. An order that
    leaves the arena in pieces is given up once it has looked at 512 taken
    ranges per interval, the first one excepted.

    An output, scalars apart, that only one of several programs gives holds
    until another program runs: it lies behind the persistent ranges, and
    intervals of the program that needs more may lie there too. So a training
    step keeps no room for what only an evaluation gives.

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

    Also sets the module's `exec.persistent_bytes` and `exec.arena_bytes` and,
    on each program, `exec.memory`: what lives at the peak. Emits a remark with
    the metrics peak and lower bound. `memory-budget` is a hard limit: a
    program that does not fit is an error that names the largest intervals at
    the peak and what would help.
  }];
  let options = [
    Option<"memoryBudget", "memory-budget", "int64_t", "0", "Bytes the arena may have; 0: no limit">,
    Option<"report", "report", "bool", "false", "Print what lives at the peak">
  ];
}

def Synchronize : Pass<"exec-synchronize", "::mlir::ModuleOp"> {
  let summary = "Orders conflicting work on different streams by the fewest events";
  let description = [{
    Two operations conflict if they touch the same bytes of the arena and one
    of them writes. Work on one stream runs in order of issue. Between
    streams, a record after the source and a wait before the target order a
    conflict, unless the vector clocks say that it is ordered already. An
    await makes the next work on the compute stream wait, likewise.

    A program starts and ends in the compute stream: the first work on every
    other stream waits for the program's start, and the compute stream waits
    for all at the end. So steps never overlap in the arena, and a program can
    be captured as one CUDA graph.

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

    Requires exec-plan-memory. Events are numbered from 0 per program; no
    token is left.
  }];
}

def VerifyExec : Pass<"exec-verify", "::mlir::ModuleOp"> {
  let summary = "Proves that programs keep their bytes apart in the arena and in time";
  let description = [{
    Checks, sharing no code with the passes that decide it: 1. ranges and
    intervals are inside the arena, ranges apart; an output behind the
    persistent part is used only by programs that give it, which write no
    interval over it; 2. every wait has an earlier
    record; 3. every stream starts behind the program's start and ends before
    its end; 4. every two accesses to one byte, one of them a write, are
    ordered by streams and events; 5. every byte that is read was last written
    into the same buffer by an earlier operation of this run; 6. an operation's
    outputs meet neither each other nor its inputs, unless it updates a buffer
    in place; 7. kernels write all of their outputs, each element by one thread,
    which alone reads it, and load from no column outside of the row; 8. where
    the module says its target (`exec.target`), every workspace has the bytes
    that the target's libraries need, and ranges, intervals and what products
    and attention compute with, parts of buffers too, begin at multiples of what
    the target states; 9. a program reads what a range held before
    it where it states so (`exec.reads`), and writes, whole, the ranges that it
    states (`exec.writes`), its results among them; 10. in a range that it states
    to add to (`exec.adds`) a program leaves, element by element, what was there
    and something more, and zeros in one that it states to clear (`exec.clears`);
    and it does not add, without a statement, to what its step clears; 11. a step
    runs each program as often as is stated (`exec.steps`), and those that take
    `x` once for each slice that the `x.of_step` of another program holds, by
    their sizes; 12. what one program of a step makes, another reads behind it,
    and all of it: not the last of what every microbatch made anew; 13. a sum,
    which some program adds to, is read when something has been added; one that
    a step adds to before it has written it is declared with zeros, and every
    step leaves it at zero.

    - A buffer is an interval or a range, not a span of bytes: two intervals
      at one place are two, and an interval of an exec.func is another one in
      each call.
    - Parameters, state, buffers and inputs are there when a program starts,
      and so is a gradient that another program of the module states to write.
      An output holds nothing until the program has written it.
    - A program makes a range if it writes it, does not read it and does not
      clear it. What all programs that write a range read too (parameters,
      state) is there from the step before. So is what a program makes that the
      step does not run, if it is a parameter or a buffer of the model or if the
      step itself writes it.
    - An addition is that of a kernel, at one place of its input and output and
      in their type, or of exec.gemm_add; copies keep what they copy. Zeros are
      those of exec.fill_zero. Not looked at are what is added, how often and
      whether it depends on what was there, and programs that run between two
      steps. Without `exec.adds`, a range that no step of the program clears is
      state, as a parameter is.
    - The rows of a kernel run at once, and so do the columns of an exec.map. A
      column that a load names is bounded for all values of the column and of
      what is loaded, by intervals that are halved where they say too little.
    - A workspace holds nothing after its operation, and only an interval can
      be one. copy_box writes its box alone (of 2^20 pieces at most);
      all else writes whole outputs.
    - What may be updated in place its op says: `exec.adamw` and an all_reduce.
      Nothing else may: a matmul reads again after it has begun to write, and
      kernels are compiled in the belief that what they read is not written.

    Follows calls. The pipeline runs it before exec-outline, where every
    message names one layer, and after, on the program that is emitted.
  }];
}

def Outline : Pass<"exec-outline", "::mlir::ModuleOp"> {
  let summary = "Makes one function of each block that a program repeats";
  let description = [{
    Work is compared without addresses, event numbers, modules, `serves` and
    `exec.makes`; runs in
    which a block follows itself become one exec.func and a call each. What
    differs between the copies becomes an argument, in order of first use:
    one per buffer, named in its location ("layers.*.h"). A range that every
    copy names stays inside, and so does an interval at the same place in every
    copy that nothing outside of its copy uses; one that carries something from
    copy to copy is an argument wherever it lies. Blocks of several programs
    with equal text share a function. What the work of a copy makes is said by
    its call, in the order of the work.

    Where events repeat less regularly than work, the block is cut there or
    the copies that differ stay in the program, whichever leaves fewer
    statements.

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

    Changes only how the program is written: the pass follows the calls it
    made and fails if operations, bytes, events or which buffers are one
    differ, in anything but modules and names. Requires exec-plan-memory and
    exec-synchronize.
  }];
  let options = [
    Option<"minSaved", "min-saved", "int64_t", "8", "Statements a function must save">
  ];
}

#endif // FSDP_EXEC_PASSES
