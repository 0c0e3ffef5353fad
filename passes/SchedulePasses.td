//===- SchedulePasses.td - The plan, and what applies it ---*- tablegen -*-===//
//
// The passes of Schedule/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PASSES
#define FSDP_SCHEDULE_PASSES

include "mlir/Pass/PassBase.td"

def Address : Pass<"fsdp-address", "::mlir::func::FuncOp"> {
  let summary = "Writes down the address of every op that a plan can name";
  let description = [{
    An address says in which phase of the program, in which module and as what an
    op computes. It is the words of the op's `#fsdp.origin`:

    ```mlir
    %y = nn.linear %x, %w {fsdp.origin = #fsdp.origin<"fwd layers.3.attention.wq linear">, …}
    %g = fsdp.all_gather %s … {fsdp.origin = #fsdp.origin<"fwd layers.3.attention.wq all_gather">, …}
    %d = nn.linear_weight_grad %c, %x {fsdp.origin = #fsdp.origin<"bwd layers.3.attention.wq dw">, …}
    ```

    - The phase is `fwd` or `bwd` (before or behind nn.seed), `again` for what
      fsdp-remat computes a second time, or `update` for the optimizer.
    - The path is the module of the op, or the parameter that a collective moves;
      ops of the root have none.
    - The op is called by its mnemonic, but `dx` and `dw` for the gradients of
      inputs and weights; of several ops with the same name the second is
      `rotary#2`.

    Collectives have one, and ops that compute; casts, moves of elements, reads and
    constants have none. No two ops of a program have the same. Later passes keep
    it: clones become `again`, and a bucket is called after its plan's name,
    "fwd layers.3 all_gather", with those of its members in `fsdp.members`.
  }];
}

def Plan : Pass<"fsdp-plan", "::mlir::ModuleOp"> {
  let summary = "Chooses the schedule plan and hangs it on the module";
  let description = [{
    A plan is a list of rules over addresses. It becomes the module attribute
    `fsdp.plan`:

    ```mlir
    module attributes {fsdp.plan = [
      {match = ["fwd layers.*.attention.wq all_gather", …],
       bucket = "layers.*", merge = true, overlap = true, prefetch = 1 : i64, recompute = true},
      {match = ["fwd layers.*.feed_forward silu"], recompute = false}, …]}
    ```

    | key | about | meaning |
    |---|---|---|
    | `match` | | globs (`*`, `?`, `[abc]`, `{a,b}`) or addresses, one or a list; the address of a bucket stands for its members |
    | `bucket` | collectives of parameters | those of one name start together; a star stands for the number of the block; empty: each of its own |
    | `merge` | collectives of parameters | those of one kind in a bucket become one collective |
    | `overlap` | collectives | they run beside compute |
    | `prefetch` | gathers | how many buckets before its use it starts; 0: where it is needed |
    | `defer` | reductions | how many later ones start before it is awaited; 0: at once |
    | `start_after` | collectives | the address of the op behind which it starts |
    | `await_before` | collectives | the address of the op before which it is awaited |
    | `recompute` | values of the forward pass that the backward pass uses, gathered parameters included | they are not kept, but computed or gathered again |

    What the rules decide about an op is written on it, as `fsdp.decision`, without
    what is as it is by itself; fsdp-remat, fsdp-bucket and fsdp-overlap read that
    (fsdp-overlap also refuses a plan with an address that no op has). `again` is
    what is decided about the clone of a collective:

    ```mlir
    %w = fsdp.all_gather %s … {fsdp.decision = #fsdp.decision<bucket = "layers.3", overlap = true, prefetch = 1, recompute = true,
                                 again = <bucket = "layers.3", overlap = true, prefetch = 1>>, …}
    %y = nn.silu %x {fsdp.decision = #fsdp.decision<>, …}
    ```

    A decision may be changed in the text. fsdp-plan writes all of them anew, from
    the rules, and warns of those that it replaces by others. In text whose ops have none, a plan that was written by hand is all
    that is decided, and the first of the three passes writes it on the ops.

    Without a file the options below make a plan by rule: the parameters of a
    block are gathered, dropped and reduced together. `file` takes rules from
    JSON, as `fsdp-compile --emit=plan` prints them, and rules that the module
    already carries count too: both are put over the plan by rule, the later over
    the earlier, so that three lines change three things. What results is written
    out in full, blocks that agree as one. A plan never changes a bit of the
    result. A file of version 1 lists units of parameters instead of rules;
    `tools/convert-plan.py` makes rules of it.

    Unknown keys, wrong types, globs that match nothing, addresses that no op has
    (the nearest is named), choices about nothing that the rule matches, and
    members of a bucket that are to start at different places are errors.
  }];
  let options = [
    Option<"file", "file", "std::string", "", "JSON file with the plan">,
    Option<"units", "units", "::fsdp::schedule::UnitPolicy", "::fsdp::schedule::UnitPolicy::Block",
      "How parameters are cut into buckets", [{::llvm::cl::values(
        clEnumValN(::fsdp::schedule::UnitPolicy::Block, "block", "one per numbered block, one per module before, one for the rest"),
        clEnumValN(::fsdp::schedule::UnitPolicy::Whole, "whole", "one for the whole model"))}]>,
    Option<"reshard", "reshard-after-forward", "::fsdp::ReshardPolicy", "::fsdp::ReshardPolicy::Default",
      "Gather again in the backward pass?", [{::fsdp::SpelledValues<::fsdp::ReshardPolicy>()}]>,
    Option<"recompute", "recompute", "::fsdp::RecomputePolicy", "::fsdp::RecomputePolicy::None",
      "Which values of blocks are computed again in the backward pass",
      [{::fsdp::SpelledValues<::fsdp::RecomputePolicy>()}]>,
    Option<"bucket", "bucket", "bool", "true", "Merge a bucket's collectives into one">,
    Option<"overlap", "overlap", "bool", "true", "Run collectives beside compute">,
    Option<"prefetch", "prefetch", "int64_t", "1", "Buckets a gather starts ahead of its use">,
    Option<"reduceDefer", "reduce-defer", "int64_t", "1", "Later reductions that start before one is awaited">
  ];
}

def Remat : Pass<"fsdp-remat", "::mlir::ModuleOp"> {
  let summary = "Recomputes values in the backward pass, as is decided about them";
  let description = [{
    What is decided to be recomputed is cloned behind nn.seed for the ops there that use
    it, right before the first one. Reshard-after-forward is recomputation: a
    gather is cloned with the casts before it. Moves of elements that carry such a
    value on are cloned too, and where one recomputed value needs another its
    clone uses the other's. All else that a clone needs is kept, and goes through
    nn.recompute_from so that CSE leaves the clone alone. Clones never make
    reductions of gradients; they belong to the module of what they clone, and
    their address is its in the phase "again", and their decision the one inside
    of its, `again`. A warning names what is to be recomputed though nothing in the
    backward pass needs it.

    ```mlir
    %w = fsdp.all_gather %s …            // forward
    …
    %r = nn.recompute_from %s            // backward, just before the first use
    %v = fsdp.all_gather %r …
    ```

    Requires fsdp-plan and fsdp-expand.
  }];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Bucket : Pass<"fsdp-bucket", "::mlir::ModuleOp"> {
  let summary = "Merges the collectives of a bucket, as is decided about them";
  let description = [{
    One variadic collective is one bucket. Collectives of a bucket merge when
    they agree on direction (before or behind nn.seed), kind, mesh axes,
    reduction and element types. A merged gather stands where its first
    member stood, a merged reduction where its last one did. Inside, the order is
    that of registration, whatever the order in the graph. It belongs to the
    module around its members, if there is one below the root, and has the
    bucket's address and its members' decision; `fsdp.members` says what it
    carries. Members with different decisions are an error.

    ```
    all_gather a; all_gather b; use a, b   →   all_gather a, b; use a, b
    ```

    Chained reductions (hybrid_shard: a scatter within a group of ranks, then
    an all-reduce over the groups) are two buckets, the second behind the
    first:

    ```
    rs a; ar a; rs b; ar b   →   rs a, b; ar a, b
    ```

    Between the members of a reduction bucket nothing may read their results
    but nn.gradient, casts, moves of elements and the all-reduce of a chain, which
    move behind it. What a gather needs must be there where the first member
    stands. It leaves starts and waits to fsdp-overlap. Requires fsdp-plan and
    fsdp-expand.
  }];
}

def Overlap : Pass<"fsdp-overlap", "::mlir::ModuleOp"> {
  let summary = "Places the start and the wait of each collective, as is decided about it";
  let description = [{
    Wraps collectives in fsdp.async / fsdp.await. A gather starts `prefetch`
    buckets ahead and is awaited at its first use; a reduction is awaited behind
    the start of the `defer`-th later reduction, or at its first use. The first
    gathers of the backward pass start right behind nn.seed: what stayed gathered
    hides them. With distance one:

    ```
    ag0 ag1 wait0 compute0 ag2 wait1 compute1 …          forward
    … rs2 compute1 rs1 wait(rs2) compute0 rs0 wait(rs1) …  backward
    ```

    A reduction whose result is reduced once more (over the groups of hybrid_shard,
    or over data axes behind tensor-parallel ones) starts where it stands, the
    second right behind it, and the second awaits it inside its own fsdp.async:
    both run one after the other on the reduce stream beside compute, which awaits
    the second alone, as `defer` says. Until then the first one's input is alive
    too.

    With `start_after` a collective starts right behind that op, with
    `await_before` it is awaited right before that one, in the programs that have
    it. It is an error where what it sends is computed later, where a parameter
    is written between, or where its result is used before; nothing moves that may
    not.

    The order in the block is the order of issue on every rank. Where `overlap` is
    false a collective stays synchronous.
  }];
  let dependentDialects = ["::fsdp::dist::FsdpDialect"];
}

def VerifySchedule : Pass<"fsdp-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Proves that the schedule cannot hang and keeps its limits";
  let description = [{
    Checks, per program: 1. it is one block; 2. every collective stands in it
    or in an fsdp.async of it, never under control flow, so all ranks issue
    the same collectives in the same order on each communicator, which is what
    makes a deadlock impossible; 3. no redistribute is left; 4. each future is
    awaited exactly once, in the same block or in an fsdp.async of it, after
    its start; 5. bytes in flight (inputs and outputs of started collectives)
    stay within `max-in-flight`, unless one collective alone is larger (what
    another collective awaits is in flight until that one is awaited); 6. all
    that the program writes and returns is computed as it was when fsdp-plan wrote
    down `fsdp.outcome`: by the same ops from the same values, seen through
    futures, buckets, recomputation and kernels, and from parameters read before
    or after the same updates; names, types and places of arguments and results,
    what the module declares of parameters, buffers and the mesh, `nn.steps` and
    `nn.model` are what they were. The last shares no code with the passes that
    apply a plan.

    A schedule that was written by hand has no `fsdp.outcome`: it is checked for
    1. to 5., and a warning says that what it computes was compared with nothing.
    Where one program or the module has it, all must.
  }];
  let options = [
    Option<"maxInFlight", "max-in-flight", "int64_t", "0", "Bytes that may be in flight at once; 0: no limit">
  ];
}

#endif // FSDP_SCHEDULE_PASSES
