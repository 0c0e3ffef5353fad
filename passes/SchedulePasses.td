//===- SchedulePasses.td - The plan, and what applies it ---*- tablegen -*-===//
//
// The passes of Schedule/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PASSES
#define FSDP_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def Reshard : Pass<"fsdp-reshard", "::mlir::ModuleOp"> {
  let summary = "Lets the backward pass gather parameters inside smaller groups";
  let description = [{
    Where a program trains, each gathered parameter that the backward pass needs leaves a shard, over
    `ranks` consecutive ranks of the data axes, when the forward pass has used it. fsdp-remat gathers from these
    shards, so that what is gathered again does not leave a node. It is what an integer `reshard_after_forward`
    does in PyTorch's FSDP2, and the secondary partition of ZeRO++.

    ```mlir
    %w = fsdp.all_gather %s on @mesh["dp_shard"] …                           // 8 ranks
    %y = nn.linear %x, %w …                                                  // its last use
    %k = fsdp.shard_of %w on @mesh["dp_shard":(2)4] dim 0 {regathered} …     // kept until the backward pass
    ```

    Which parameters are gathered again is decided as without the pass (fsdp-plan). The shards are in the type
    of the gathered tensor, and a rank keeps 1/`ranks` of it. No bit of the result changes.

    With several data axes these are ranks of the innermost ones; tensor axes stay whole. What no more than
    `ranks` ranks of data axes shard is gathered again as in the forward pass.

    Errors are: `ranks` that are no part of the data axes, as 3 of 4 ranks, or 4 of 2 x 3.

    Requires fsdp-expand, and comes before fsdp-address.
  }];
  let dependentDialects = ["::fsdp::dist::FsdpDialect"];
  let options = [
    Option<"ranks", "ranks", "int64_t", "0", "Consecutive ranks of the data axes that gather again together; 0: all">
  ];
}

def Address : Pass<"fsdp-address", "::mlir::func::FuncOp"> {
  let summary = "Writes the address of every op that a plan can name";
  let description = [{
    An address names the phase of the program, the module, and the role of an op. It is the text of the op's
    `#fsdp.origin`:

    ```mlir
    %y = nn.linear %x, %w {fsdp.origin = #fsdp.origin<"fwd layers.3.attention.wq linear">, …}
    %g = fsdp.all_gather %s … {fsdp.origin = #fsdp.origin<"fwd layers.3.attention.wq all_gather">, …}
    %d = nn.linear_weight_grad %c, %x {fsdp.origin = #fsdp.origin<"bwd layers.3.attention.wq dw">, …}
    ```

    - The phase is `fwd` before nn.seed and `bwd` after it, `again` for what fsdp-remat recomputes, or
      `update` for the optimizer.
    - The path is the module of the op, or the parameter that a collective moves. Ops of the root have none.
    - The name of the op is its mnemonic, except `dx` and `dw` for the gradients of inputs and weights. Of
      several ops with the same name, the second is `rotary#2`.

    Collectives and ops that compute have an address. Casts, moves of elements, reads and constants have none.
    No two ops of a program share an address. Later passes keep addresses: fsdp-remat gives clones the phase
    `again`. fsdp-bucket gives a merged collective the name of its bucket in the plan,
    "fwd layers.3 all_gather", and keeps the addresses of its members in `fsdp.members`.
  }];
}

def Plan : Pass<"fsdp-plan", "::mlir::ModuleOp"> {
  let summary = "Chooses the schedule plan and writes it on the module";
  let description = [{
    A plan is a list of rules over addresses. It becomes the module attribute `fsdp.plan`:

    ```mlir
    module attributes {fsdp.plan = [
      {match = ["fwd layers.*.attention.wq all_gather", …],
       bucket = "layers.*", merge = true, overlap = true, prefetch = 1 : i64, recompute = true},
      {match = ["fwd layers.*.feed_forward silu"], recompute = false}, …]}
    ```

    | key | about | meaning |
    |---|---|---|
    | `match` | | globs (`*`, `?`, `[abc]`, `{a,b}`) or addresses, one or a list; the address of a bucket stands for its members |
    | `bucket` | collectives of parameters | collectives with the same name start together; a star stands for the number of the block; empty: a bucket of its own |
    | `merge` | collectives of parameters | collectives of one kind in a bucket become one collective |
    | `overlap` | collectives | the collective runs beside compute |
    | `prefetch` | gathers | how many buckets before its use the gather starts; 0: where it is needed |
    | `defer` | reductions | how many later reductions start before this one is awaited; 0: awaited at once |
    | `start_after` | collectives | the address of the op after which the collective starts |
    | `await_before` | collectives | the address of the op before which the collective is awaited |
    | `recompute` | values of the forward pass that the backward pass uses, gathered parameters included | the value is not kept but computed or gathered again |

    The pass writes what the rules decide about an op on the op, as `fsdp.decision`, and leaves out defaults.
    fsdp-remat, fsdp-bucket and fsdp-overlap read these decisions. fsdp-overlap also refuses a plan with an
    address that no op has. `again` holds the decision about the clone of a collective:

    ```mlir
    %w = fsdp.all_gather %s … {fsdp.decision = #fsdp.decision<bucket = "layers.3", overlap = true, prefetch = 1, recompute = true,
                                 again = <bucket = "layers.3", overlap = true, prefetch = 1>>, …}
    %y = nn.silu %x {fsdp.decision = #fsdp.decision<>, …}
    ```

    A decision may be changed in the text. fsdp-plan replaces all decisions by those of the rules, and warns
    of decisions that change. If the ops of a text have no decisions, the rules of a plan written by hand are
    complete, and the first of the three passes writes their decisions on the ops.

    The options below produce a plan by rule: the parameters of a block are gathered, dropped and reduced
    together. A rule that recomputes, on at most eight ranks, awaits the reduction of what follows the last
    block once 5,000 operations for each of its bytes have been computed, and not at the end of that block,
    where most is alive. `file` reads rules from JSON, as `fsdp-compile --emit=plan` prints them. Without `file`, the
    rules that the module already carries are read. These rules override the plan by rule, and later rules
    override earlier ones, so three lines change three things. With `recompute=auto`, which the compiler gives, the
    rule recomputes what is free, but nothing beside a plan that says of a value whether it is recomputed. The
    resulting plan is written in full, with one set of rules for blocks that agree. A plan never changes a bit of
    the result. A file of version 1 lists units of parameters instead of rules; `tools/convert-plan.py` converts it.

    Errors are: unknown keys, wrong types, globs that match nothing, addresses that no op has (the message
    names the nearest one), a key that applies to nothing that the rule matches, and members of a bucket that
    start at different places.
  }];
  let options = [
    Option<"file", "file", "std::string", "", "JSON file with the plan">,
    Option<"units", "units", "::fsdp::schedule::UnitPolicy", "::fsdp::schedule::UnitPolicy::Block",
      "How parameters are grouped into buckets", [{::llvm::cl::values(
        clEnumValN(::fsdp::schedule::UnitPolicy::Block, "block", "one per numbered block, one per module before them, one for the rest"),
        clEnumValN(::fsdp::schedule::UnitPolicy::Whole, "whole", "one for the whole model"))}]>,
    Option<"reshard", "reshard-after-forward", "::fsdp::ReshardPolicy", "::fsdp::ReshardPolicy::Default",
      "Which parameters the backward pass gathers again", [{::fsdp::SpelledValues<::fsdp::ReshardPolicy>()}]>,
    Option<"recompute", "recompute", "std::string", "\"none\"",
      "Which values of blocks the backward pass computes again: a value of compile.recompute">,
    Option<"bucket", "bucket", "bool", "true", "Merge the collectives of a bucket into one">,
    Option<"overlap", "overlap", "bool", "true", "Run collectives beside compute">,
    Option<"prefetch", "prefetch", "int64_t", "1", "How many buckets before its use a gather starts">,
    Option<"reduceDefer", "reduce-defer", "int64_t", "1", "How many later reductions start before one is awaited">
  ];
}

def Remat : Pass<"fsdp-remat", "::mlir::ModuleOp"> {
  let summary = "Applies decisions to recompute values in the backward pass";
  let description = [{
    Clones each op whose decision says `recompute` for its users after nn.seed, right before the first of
    them. Reshard-after-forward is recomputation: a gather is cloned with the casts and reshapes before it,
    but no cast that rounds rows of a table.
    Moves of elements that pass such a value on are cloned too. If one recomputed value needs another, its
    clone uses the clone of the other. Everything else that a clone needs is kept and goes through
    nn.recompute_from, so that CSE does not merge the clone with the original. Where a gathered tensor has a
    shard that is `regathered` (fsdp-reshard), the clone gathers that shard, over its axes.

    Clones never add reductions of gradients. A clone belongs to the module of its original. Its address is
    that of the original with the phase "again", and its decision is the `again` of the original's decision. A
    warning names an op with `recompute` that nothing in the backward pass needs.

    ```mlir
    %w = fsdp.all_gather %s …            // forward
    …
    %r = nn.recompute_from %s            // backward, right before the first use
    %v = fsdp.all_gather %r …
    ```

    Requires fsdp-plan and fsdp-expand.
  }];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Bucket : Pass<"fsdp-bucket", "::mlir::ModuleOp"> {
  let summary = "Applies decisions to merge the collectives of a bucket";
  let description = [{
    One variadic collective is one bucket. Collectives of a bucket merge if they agree on direction (before or
    after nn.seed), kind, mesh axes, reduction and element types. A merged gather stands where its first
    member stood, a merged reduction where its last member stood. Its operands are in registration order,
    whatever their order in the graph. It belongs to the innermost module below the root that contains its
    members, if there is one. It has the address of the bucket and the decision of its members, and
    `fsdp.members` has the addresses of its members. Members with different decisions are an error.

    ```
    all_gather a; all_gather b; use a, b   →   all_gather a, b; use a, b
    ```

    Chained reductions (hybrid_shard: a reduce_scatter within a group of ranks, then an all_reduce over the
    groups) are two buckets, the second after the first:

    ```
    rs a; ar a; rs b; ar b   →   rs a, b; ar a, b
    ```

    Between the members of a reduction bucket, only nn.gradient, casts, moves of elements and the all_reduce
    of a chain may read their results; these move after the bucket. The operands of a gather must be available
    where the first member stands. fsdp-overlap adds starts and waits. Requires fsdp-plan and fsdp-expand.
  }];
}

def Overlap : Pass<"fsdp-overlap", "::mlir::ModuleOp"> {
  let summary = "Applies decisions about the start and the wait of each collective";
  let description = [{
    Wraps collectives in fsdp.async / fsdp.await. A gather starts `prefetch` buckets before its use and is
    awaited at its first use. A reduction is awaited after the start of the `defer`-th later reduction, or at
    its first use. The first gathers of the backward pass start right after nn.seed, and computation with the
    parameters that stayed gathered hides them. With distance one:

    ```
    ag0 ag1 wait0 compute0 ag2 wait1 compute1 …          forward
    … rs2 compute1 rs1 wait(rs2) compute0 rs0 wait(rs1) …  backward
    ```

    A reduction whose result is reduced once more (over the groups of hybrid_shard, or over data axes after
    tensor axes) starts where it stands. The second reduction starts right after it and awaits it inside its
    own fsdp.async. Both run one after the other on the reduce stream, beside compute. Compute awaits only the
    second one, as `defer` says. Until then the input of the first one is live too.

    With `start_after` a collective starts right after that op, and with `await_before` it is awaited right
    before that op, in the programs that have the op. It is an error if an operand is computed later, if a
    parameter is written in between, or if the result is used before. The pass never moves an op that must not
    move.

    The order in the block is the order of issue on every rank. If `overlap` is false, the collective stays
    synchronous.
  }];
  let dependentDialects = ["::fsdp::dist::FsdpDialect"];
}

def VerifySchedule : Pass<"fsdp-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Proves that the schedule cannot hang, keeps its limits and changes no result";
  let description = [{
    Checks of every program that

    1. it is one block;
    2. every collective stands in that block or in an fsdp.async of it, never under control flow. So all ranks
       issue the same collectives in the same order on each communicator, so that a deadlock is impossible;
    3. no redistribute is left;
    4. each future is awaited exactly once after its start, in the same block or in an fsdp.async of it;
    5. bytes in flight (inputs and outputs of started collectives) stay within `max-in-flight`, unless one
       collective alone is larger. A collective that another one awaits is in flight until that one is
       awaited;
    6. all that the program writes and returns is computed as it was when fsdp-plan wrote the semantic digest
       `fsdp.outcome`: by the same ops from the same values, seen through futures, buckets, recomputation and
       kernels, and from parameters read before or after the same updates. Names, types and placements of
       arguments and results, the declared parameters, buffers and mesh, `nn.steps` and `nn.model` are
       unchanged. This check shares no code with the passes that apply a plan.

    A schedule written by hand has no `fsdp.outcome`. It is checked for 1. to 5., and a warning says that its
    results were compared with nothing. If one program or the module has `fsdp.outcome`, all must have it.
  }];
  let options = [
    Option<"maxInFlight", "max-in-flight", "int64_t", "0", "Bytes in flight at once, at most; 0: no limit">
  ];
}

#endif // FSDP_SCHEDULE_PASSES
