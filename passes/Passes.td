//===- Passes.td - The passes, in pipeline order --------------*- tablegen -*-===//
//
// The manual: one entry per pass, in the order in which the pipeline runs
// them; the reference in docs/ is generated from it. One pass is one file of
// the same name (fsdp-shard: Shard.cpp, exec-plan-memory: PlanMemory.cpp) and one lit
// test.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PASSES
#define FSDP_PASSES

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// In which types is computed
//===----------------------------------------------------------------------===//

def Precision : Pass<"nn-precision", "::mlir::ModuleOp"> {
  let summary = "Makes a mixed-precision program of an f32 one";
  let description = [{
    Puts an nn.cast to the compute type behind every read of a parameter; what is
    computed from it follows, in program order:

    | op | operands | results |
    |---|---|---|
    | nn.linear, nn.matmul, nn.attention | the narrowest of their types, or f32 if one is a wide parameter | that type; `lse` f32 |
    | nn.exp, log, sqrt, rsqrt, sum, mean, mse_loss, divide_by_count | f32 | f32 |
    | nn.cross_entropy | as they come | f32 |
    | nn.rms_norm, layer_norm | as they come; nn.layer_norm's bias and weight, the widest of the two | the input's type; statistics f32 |
    | nn.rotary | as they come; the table f32 | the input's type |
    | arithmetic, activations, nn.softmax, max, embedding, moves of elements | the widest of their types | that type |
    | nn.cast | as they come | as written |
    | return | as they come; in f32 what another op takes cast to f32 | |

    Operands of other types are cast right before the op, arguments at the beginning,
    a value once to a type. Arguments and buffers keep their types otherwise: a target
    is compared in f32, and only a matrix product makes an f32 batch narrow. A constant, and what is
    computed from constants alone, has no type of its own: it is cast to that of
    the op's other operands. Integers stay.

    A parameter has one type in a program, also if it is read several times (a tied
    one). It is f32 where `wide` lists it, or where it is an operand of an op that
    takes f32, of nn.cast, or of nn.rotary as its table, moves of elements in
    between not counted. Declarations stay f32, and so do the optimizer and its
    state.

    A program that holds a bf16 tensor has its precision already and stays as it
    is. Fails on f64, on a program that is differentiated already, and on ops
    without a rule above.

    ```mlir
    nn.parameter @w : tensor<8x4xf32> init #nn.zeros
    %w = nn.read @w : tensor<8x4xf32>
    %y = nn.linear %x, %w : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
    %z = nn.mse_loss %y, %t count 16 : tensor<2x8xf32>, tensor<f32>
    // becomes
    %b = nn.cast %x : tensor<2x4xf32> to tensor<2x4xbf16>
    %w = nn.read @w : tensor<8x4xf32>
    %v = nn.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %y = nn.linear %b, %v : tensor<2x4xbf16>, tensor<8x4xbf16> -> tensor<2x8xbf16>
    %f = nn.cast %y : tensor<2x8xbf16> to tensor<2x8xf32>
    %z = nn.mse_loss %f, %t count 16 : tensor<2x8xf32>, tensor<f32>
    ```
  }];
  let options = [
    Option<"computeDtype", "compute_dtype", "::fsdp::ComputeType",
           /*default=*/"::fsdp::ComputeType::BF16",
           "What parameters are cast to",
           [{::llvm::cl::values(
             clEnumValN(::fsdp::ComputeType::F32, "f32",
                        "nothing: programs stay as they are"),
             clEnumValN(::fsdp::ComputeType::BF16, "bf16", "bfloat16"))}]>,
    ListOption<"wide", "wide", "std::string",
               "Parameters and modules that stay f32: patterns like \"norm,layers.*.attention_norm\"">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

//===----------------------------------------------------------------------===//
// Where parameters live, and the backward pass
//===----------------------------------------------------------------------===//

def Shard : Pass<"fsdp-shard", "::mlir::ModuleOp"> {
  let summary = "Lays parameters out over a mesh; a use becomes one redistribute";
  let description = [{
    Creates `fsdp.mesh @mesh`, gives every parameter and every argument of a
    program its `fsdp.placement`, and turns the reads of a parameter in a program
    into ONE read and ONE `fsdp.redistribute` to where it is computed with, right
    before the parameter's first use. Sharding is a differentiable op like any
    other, so nn-differentiate derives the gradient collectives and nobody writes
    them by hand; and because a tied weight has one redistribute, its gradient is
    reduced once. Types stay logical: those of one device with the whole batch.

    Axes whose names begin with "dp" are data axes: arguments are batches, cut
    over them along dimension 0, which they must divide; and parameters rest cut
    over them along dimension 0 as the mode says, which need not divide. What is
    computed does not depend on the mode, so the modes agree bit for bit.
    Parameters and arguments of rank 0 are replicated. Buffers stay as they are:
    they are not trained and every rank computes the same. Reads that nothing uses
    are erased.

    Other axes are computed with: a *policy*, rules over names of parameters, says
    which dimension each cuts, which parameters are frozen or stay whole at rest,
    and where the residual stream (what norms read) is kept. It is a TOML file, or
    for an axis "tp" the plan of Llama: projections into heads and into the
    feed-forward network are cut along their outputs, those back along their
    inputs, and the stream between them along the sequence. Where the
    stream is cut up to the loss, what all ranks of its axis compute with rests
    cut over it as well.

    The read and the redistribute belong to the module (`nn.module`) of the
    first read they stand for.

    If every use of the parameter is an nn.cast to one type, the redistribute
    yields that type and the casts go: what travels is the compute type.

    ```mlir
    nn.parameter @w : tensor<8x4xf32> init #nn.zeros
    %0 = nn.read @w : tensor<8x4xf32>
    %1 = nn.cast %0 : tensor<8x4xf32> to tensor<8x4xbf16>
    // becomes, with mesh="dp_shard=2",
    nn.parameter @w : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{ | "dp_shard"}, {} ]>}
    %0 = nn.read @w : tensor<8x4xf32>
    %1 = fsdp.redistribute %0 on @mesh to <[{}, {} ]> wire f32 : tensor<8x4xf32> -> tensor<8x4xbf16>
    ```
  }];
  let options = [
    Option<"mesh", "mesh", "std::string", /*default=*/"",
           "Axes of the mesh, slowest first: \"dp_replicate=2,dp_shard=4\"">,
    Option<"mode", "mode", "::fsdp::ShardMode",
           /*default=*/"::fsdp::ShardMode::FullyShard",
           "How parameters are laid out",
           [{::llvm::cl::values(
             clEnumValN(::fsdp::ShardMode::FullyShard, "fully_shard",
                        "split over all data axes"),
             clEnumValN(::fsdp::ShardMode::HybridShard, "hybrid_shard",
                        "split over the last data axis, replicated over the others"),
             clEnumValN(::fsdp::ShardMode::Replicate, "replicate",
                        "every rank holds every parameter"))}]>,
    Option<"policyFile", "policy", "std::string", /*default=*/"",
           "TOML file that says where parameters and the residual stream lie; "
           "without, an axis \"tp\" has the tensor-parallel plan of Llama">,
    Option<"sequence", "sequence", "bool", /*default=*/"true",
           "Under that plan the residual stream is cut along the sequence">,
    Option<"loss", "loss", "bool", /*default=*/"true",
           "Under that plan logits and loss are cut along the sequence">,
    Option<"reduceDtype", "reduce_dtype", "std::string", /*default=*/"\"f32\"",
           "Widest type in which gradients travel: f32 or bf16; sums are f32 in any case">,
    Option<"nodeSize", "node_size", "int64_t", /*default=*/"0",
           "Consecutive ranks that share a node; 0: not stated">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def Differentiate : Pass<"nn-differentiate", "::mlir::ModuleOp"> {
  let summary = "Makes the training and the evaluation program from the forward one";
  let description = [{
    Clones the program `function` as @train, which gives the result named
    "loss" alone, and renames the original to @evaluate. At the end of @train
    it puts `nn.seed` and the reverse pass: ops in reverse program order, each
    by its own rule (DifferentiableOpInterface), and `nn.gradient` as soon as
    a trained parameter's cotangent is complete.

    Only ops on a path from a trained parameter (an nn.parameter without
    nn.frozen) to the loss are differentiated; one without a reverse rule is
    an error that names it. A parameter the loss does not depend on gets no
    nn.gradient.

    **Order of sums.** A value with several uses gets its contributions in the
    order in which they arrive: reverse program order of the users, within one
    user by operand; each is added to the sum so far (`nn.add sum, new`).
    This order is part of the numerical contract.

    Ops of the backward pass carry the location and the module (`nn.module`)
    of the op they belong to; a sum of contributions is of the op that made
    the last one.
    What nothing uses in the end is erased (the logits of a training step, a
    cotangent nobody asked for).

    **Parts.** The loss of a model is a mean over the labels of the whole batch.
    With `parts` that of @train is the mean of the means of so many equal parts
    of the batch: what data-parallel ranks that average their own losses'
    gradients train with (DDP, FSDP2). It differs where labels are ignored, more
    in one part than in another. @evaluate keeps the mean over all labels. The rows
    of the loss are cut along the dimension that has the examples of the batch,
    wherever the program has moved it; where none has, that is an error.

    **Split.** With `split` the program need have no loss. It stays, and gets as
    further results `residual.N` what its reverse pass needs of it and cannot
    make again from parameters and constants alone; what the program writes it
    writes once, and a read of that is no such parameter. The reverse pass is the
    program `backward`: it takes those, the arguments that it needs and
    `<result>.cotangent` for every floating result, writes the gradients of
    parameters, and gives `<argument>.cotangent` for the arguments in `wrt`. Run
    one behind the other, with a cotangent of 1, the two compute what @train
    does, to the bit.

    ```mlir
    func.func @forward(%x: tensor<2x4xf32> {nn.name = "x"}) -> (tensor<2x4xf32> {nn.name = "y"}) {
      %e = nn.exp %x : tensor<2x4xf32>
      %y = nn.neg %e : tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    // becomes, with split=true wrt=x,
    func.func @forward(%x: tensor<2x4xf32> {nn.name = "x"}) -> (tensor<2x4xf32> {nn.name = "y"}, tensor<2x4xf32> {nn.name = "residual.0"}) {
      %e = nn.exp %x : tensor<2x4xf32>
      %y = nn.neg %e : tensor<2x4xf32>
      return %y, %e : tensor<2x4xf32>, tensor<2x4xf32>
    }
    func.func @backward(%dy: tensor<2x4xf32> {nn.name = "y.cotangent"}, %r: tensor<2x4xf32> {nn.name = "residual.0"}) -> (tensor<2x4xf32> {nn.name = "x.cotangent"}) {
      %de = nn.neg %dy : tensor<2x4xf32>
      %dx = nn.mul %de, %r : tensor<2x4xf32>
      return %dx : tensor<2x4xf32>
    }
    ```

    ```mlir
    func.func @forward(...) -> (tensor<f32> {nn.name = "loss"}, ...)
    // becomes
    func.func @train(...) -> (tensor<f32> {nn.name = "loss"}) {
      ...
      %seed = nn.seed %loss : tensor<f32>
      ...
      nn.gradient @w, %g : tensor<4x4xf32>
      return %loss : tensor<f32>
    }
    func.func @evaluate(...) -> (tensor<f32> {nn.name = "loss"}, ...)
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"forward\"",
           "The program to differentiate">,
    Option<"parts", "parts", "int64_t", /*default=*/"1",
           "Parts of the batch, the mean of whose mean losses is trained on">,
    Option<"split", "split", "bool", /*default=*/"false",
           "Two programs: the forward pass, and the reverse pass of any results">,
    Option<"backward", "backward", "std::string", /*default=*/"\"backward\"",
           "With `split`: the name of the reverse pass">,
    ListOption<"wrt", "wrt", "std::string",
           "With `split`: names of arguments whose cotangents are wanted, besides "
           "the gradients of parameters">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Accumulate : Pass<"nn-accumulate", "::mlir::ModuleOp"> {
  let summary = "Cuts a training step into several microbatches";
  let description = [{
    Takes the program `function`, which nn-differentiate has made, apart into the
    programs of one step, and writes the step on the module as `nn.steps`:

    | program | runs | does |
    |---|---|---|
    | @gather | once, if `keep-gathers` | brings every parameter that rests cut to where it is computed with, in the buffer `<parameter>.gathered` (of a second gather `<parameter>.gathered.2`) that @accumulate reads |
    | @count | once | counts the labels of all microbatches of the step: its argument `<targets>.of_step` has their slices one behind the other |
    | @accumulate | `microbatches` times | the forward and the backward pass of one slice, divided by that count, added to `loss_sum` and `<parameter>.grad_sum` |
    | @update | once | takes the sums as the step's loss and gradients, and sets them to zero |

    So the loss is the mean over the labels of all microbatches on all ranks
    that count, whatever each of them ignores. **What adds up.** Loss and
    gradients of the microbatches must add up to those of the step. That is
    followed through the program by the ops' sharding rules, as if the microbatches
    were ranks over which the first dimension of every argument is cut: of every
    value each has the same, a slice, or a part of a sum. A term that is the same
    for each (a regulariser, before or behind the division by the count) would
    count once per microbatch, and is an error, as is what takes examples together
    otherwise than by a sum (a mean or a maximum over the batch, the logarithm of a
    sum). **Order of sums.** Every
    microbatch is reduced into the place where the parameter rests and added
    there, in f32, in the order of the microbatches. That is another rounding
    than that of one larger batch, and part of the numerical contract. With
    `reduce-once` the sums are parts of a sum over the ranks that share a batch:
    each adds its own microbatches in f32, and @update reduces the result. That
    is a rounding of its own. `keep-gathers` changes no bit.

    It runs before fsdp-optimizer, whose step belongs to @update. Without it the
    gradients of the step are written to `<parameter>.grad`.

    The additions stand at the end of @accumulate, where none keeps a reduction
    from running beside the backward pass.

    ```mlir
    func.func @train(%x: tensor<2x8xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
      ...
      %count = nn.count_labels %x ignore_index -100 : tensor<2x8xi32> -> tensor<i64>
      %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
      ...
      nn.gradient @w, %g : tensor<4x4xf32>
      return %loss : tensor<f32>
    }
    // becomes, with microbatches=4,
    func.func @count(%x: tensor<8x8xi32> {nn.name = "targets.of_step"}) -> (tensor<i64> {nn.name = "label_count"})
    func.func @accumulate(%x: tensor<2x8xi32> {nn.name = "targets"}, %count: tensor<i64> {nn.name = "label_count"}) {
      ...
      nn.accumulate @loss_sum, %loss : tensor<f32>
      nn.accumulate @w.grad_sum, %g : tensor<4x4xf32>
      return
    }
    func.func @update() -> (tensor<f32> {nn.name = "loss"}) {
      %loss = nn.read @loss_sum : tensor<f32>
      %g = nn.read @w.grad_sum : tensor<4x4xf32>
      nn.gradient @w, %g : tensor<4x4xf32>
      nn.clear [@loss_sum, @w.grad_sum]
      return %loss : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"train\"",
           "The training program">,
    Option<"microbatches", "microbatches", "int64_t", /*default=*/"2",
           "Microbatches of a step, from 2 to 2^20">,
    Option<"keepGathers", "keep-gathers", "bool", /*default=*/"false",
           "Parameters are gathered once per step, not in every microbatch">,
    Option<"reduceOnce", "reduce-once", "bool", /*default=*/"false",
           "Gradients are reduced once per step, not in every microbatch">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def Optimizer : Pass<"fsdp-optimizer", "::mlir::ModuleOp"> {
  let summary = "Replaces the gradients by an exact norm, clipping and one AdamW step";
  let description = [{
    Adds to the program, which is @train or nn-accumulate's @update, the
    arguments "lr" (tensor<f32>) and "step"
    (tensor<i32>, from 1) and the result "grad_norm" (tensor<f32>), declares
    two moments per trained parameter (`<parameter>.exp_avg`, `.exp_avg_sq`,
    with the parameter's placement), and replaces all nn.gradient by

    ```mlir
    %m = nn.abs_max %g0, %g1, ...
    %s = nn.sum_squares %m, %g0, %g1, ...
    %norm, %c = nn.clip_coefficient %m, %s max_norm 1.0
    nn.adamw [@w0, @w1] moments ... (%g0, %g1) lr %lr step %step clip %c
    ```

    Types are logical; fsdp-propagate adds the two small all_reduces. The norm is
    exact (integer sums), hence the same under every layout. An element must be
    counted on one rank only, and is over the axes that cut it at rest; over
    others every rank has the same. So gradients that rest cut over other axes
    have an nn.sum_squares of their own.

    All belong to the module "optimizer"; what the norm reduces over ranks to
    "optimizer.gradient_maximum" and "optimizer.gradient_norm" in it.

    With `max_norm` 0 nothing is clipped; the norm is computed and returned all
    the same. Parameters are updated in registration order by one multi-tensor
    nn.adamw.
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"train\"",
           "The training program">,
    Option<"beta1", "beta1", "double", /*default=*/"0.9", "Decay of the first moment">,
    Option<"beta2", "beta2", "double", /*default=*/"0.95", "Decay of the second moment">,
    Option<"eps", "eps", "double", /*default=*/"1e-8", "Added to the root of the second moment">,
    Option<"weightDecay", "weight_decay", "double", /*default=*/"0.1", "Decoupled weight decay">,
    Option<"maxNorm", "max_norm", "double", /*default=*/"1.0",
           "Gradients are clipped to this norm; 0: never">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def Propagate : Pass<"fsdp-propagate", "::mlir::ModuleOp"> {
  let summary = "Gives every value of a logical program a place";
  let description = [{
    Types are logical: the program that one device would run. Given are the
    placements of parameters and buffers, of the program's arguments (replicated
    where nothing is said) and results, and those that fsdp.redistribute names.
    The pass walks the program once and adds the fsdp.redistribute ops that make
    every op's operands fit its sharding rule; where all other values lie follows
    forwards. A result of which nothing is said lies where it is computed, with
    parts of sums added; an argument of the same name of a program behind it,
    of which nothing is said, is that result and lies there.

    Per mesh axis, in the order of the mesh, an op is computed with one of its
    factors cut or with none:

    1. parameters stay where they are computed with if any choice lets them;
    2. among the choices that move as few of those: the fewest exchanges of
       one cut dimension for another, then the fewest bytes, those between the
       result and the place where it is wanted included (the parameter's for its gradient, which may stay parts of
       a sum until then);
    3. what every rank has is cut only to meet an operand that is cut so
       already, or a result that is wanted so;
    4. additions and moves of elements leave parts of sums as they are if all
       operands are; everything else takes them added up.

    A value is brought to one place once, and the backward pass uses what the
    forward pass has brought. Storage axes of parameters are never looked at:
    bits depend on where is computed alone. Each move is a remark with its
    bytes. It belongs to the module of the op that made the value, which sends
    it once to all that want it; that of an argument to the op that wants it
    first.

    The optimizer takes gradients where they rest. A module without a mesh, and
    programs of one rank (`fsdp.local`), stay as they are.

    ```mlir
    fsdp.mesh @mesh ["tp" = 2]
    nn.parameter @up : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp"}, {} ]>}
    nn.parameter @down : tensor<4x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {"tp"} ]>}
    %u = nn.read @up : tensor<8x4xf32>
    %h = nn.linear %x, %u : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
    %d = nn.read @down : tensor<4x8xf32>
    %y = nn.linear %h, %d : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
    // %h is sharded on dimension 1, %y parts of a sum: one move before the return
    %z = fsdp.redistribute %y on @mesh to <[{}, {} ]> : tensor<2x4xf32> -> tensor<2x4xf32>
    ```
  }];
  let dependentDialects = ["::fsdp::dist::FsdpDialect"];
}

def VerifyPlacements : Pass<"fsdp-verify-placements", "::mlir::ModuleOp"> {
  let summary = "Proves that every op can be computed where its operands lie";
  let description = [{
    Follows placements from parameters, arguments and fsdp.redistribute through
    the sharding rule of every op, and fails where operands do not fit a rule, parts
    of a sum reach an op that is not an addition, a tensor is computed with as
    it is stored, or a gradient or result does not lie where it has to.

    Holds from fsdp-propagate to fsdp-expand.
  }];
}

def Expand : Pass<"fsdp-expand", "::mlir::ModuleOp"> {
  let summary = "Turns a placed program into that of one rank";
  let description = [{
    Every type becomes that of a rank's part, the program is marked `fsdp.local`,
    and each fsdp.redistribute becomes the moves between two placements, per mesh
    axis:

    | from | to | becomes | bytes a rank receives |
    |---|---|---|---|
    | sharded | replicated | fsdp.all_gather | (n-1)/n of the result |
    | replicated | sharded | fsdp.shard_of | none |
    | parts of a sum | replicated | fsdp.all_reduce | 2 (n-1)/n of the operand |
    | parts of a sum | sharded | fsdp.reduce_scatter | (n-1)/n of the operand |
    | sharded | sharded on another dimension | fsdp.all_gather, then fsdp.shard_of | n-1 times the operand |

    What makes the tensor smaller comes first. Axes of one rank are left out.
    The narrow type travels: a parameter is cast to the compute type before it is
    gathered, and a bf16 gradient travels as bf16 and is widened by the receiver,
    which gives the bits of an f32 reduction for half its bytes.

    Sums run in the order of the mesh, from the last axis outward, whatever
    mixture of scatters and all_reduces carries them, in f32 from one axis to the
    next; the result is rounded once. Trees over ranks nest by mesh axis, innermost
    = consecutive ranks. A reduce_scatter over the inner axes followed by an
    all_reduce over the outer ones is therefore the same tree as one collective
    over all of them, which makes fully_shard, hybrid_shard and replicate equal bit
    for bit.

    Collectives go along dimension 0, whose pieces lie one behind the other in
    memory; pieces of another dimension are brought to the front by nn.reshape
    and, if there is more than one row of them, nn.transpose. The part of a
    broadcast is a smaller broadcast.

    `serves` says what a collective is for: "fwd" or "bwd" (before or after
    nn.seed) and the parameter's name without ".weight", or else the value's.

    ```mlir
    fsdp.mesh @mesh ["dp_shard" = 2]
    nn.parameter @w : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{ | "dp_shard"}, {} ]>}
    %s = nn.read @w : tensor<8x4xf32>
    %w = fsdp.redistribute %s on @mesh to <[{}, {} ]> wire f32 : tensor<8x4xf32> -> tensor<8x4xbf16>
    // becomes
    %s = nn.read @w : tensor<4x4xf32>
    %c = nn.cast %s : tensor<4x4xf32> to tensor<4x4xbf16>
    %w = fsdp.all_gather %c on @mesh["dp_shard"] dim 0 {…, serves = "fwd w"} : tensor<4x4xbf16> -> tensor<8x4xbf16>
    ```

    With `widen-sums` the sender widens, for a library that adds in the type that
    it is given: the same numbers are added, and twice the bytes travel.

    Fails where fsdp-verify-placements would.
  }];
  let options = [
    Option<"widenSums", "widen-sums", "bool", "false",
           "What ranks add up is cast to the sum's type before it travels">
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def ChunkLoss : Pass<"nn-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "Projects to logits and takes their cross entropy a chunk of rows at a time";
  let description = [{
    The logits of a step, and their gradient, are the largest tensors of a model
    with many classes: for each token a number per class. This pass cuts the rows
    that a rank has of a loss, nn.cross_entropy of nn.linear, into `chunks` equal
    parts. A chunk is projected, reduced to one loss per row, differentiated and
    multiplied back to the gradients of input and weight before the next one
    begins, so that logits and their gradient never have more rows than one.

    This needs the cotangent of the losses before they are known. It does not
    depend on them: it is one over the count of labels, which the targets give.
    What makes it is computed in front of the chunks, from a constant 1 in place of
    nn.seed. So there is no second projection, as there would be if the backward
    pass made every chunk's logits again: no product is computed twice.

    The last chunk is differentiated behind nn.seed, where all of the loss was: its
    ops keep their addresses ("bwd output dw"), they hide the first gathers
    of the backward pass, and what the program uses last and first of its
    two passes stays the same. Those of the other chunks are of the phase "fwd".

    **Bits.** The losses of rows, their logarithms of sums of exponentials and the
    gradient of the projection's input are rows of the same products, and have
    the same bits where the library computes a row the same in a matrix of fewer
    rows. The gradients of weight and bias are sums over rows: they are added up in
    f32 from chunk to chunk (nn.linear_weight_grad's `sum`) and rounded once, in
    another order than without chunks. That is part of the numerical contract.

    **Memory.** Between the chunks lives the gradient of the weight in
    f32. In bf16 that is twice the bytes of the gradient itself, so less is alive
    at the loss where a rank has more rows than about the width of the model. Where
    the peak of the step is elsewhere (at an attention whose library wants much
    scratch) the arena does not shrink.

    It runs behind fsdp-expand, on the program of one rank: its rows are its own
    however the batch, the sequence or the loss is cut over ranks. Programs
    without gradients stay as they are: @evaluate returns its logits whole.

    It is an error if no program has such a loss, if a rank's rows cannot be cut
    into so many chunks, if the logits are made by another op (a policy that cuts the
    classes gathers them), if somebody else uses them, or if the
    cotangent of the losses depends on them.

    ```mlir
    %logits = nn.linear %h, %w : tensor<8x4xf32>, tensor<16x4xf32> -> tensor<8x16xf32>
    %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>
    …
    %seed = nn.seed %loss : tensor<f32>
    …
    %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>
    %dh = nn.linear_input_grad %d, %w : tensor<8x16xf32>, tensor<16x4xf32> -> tensor<8x4xf32>
    %dw = nn.linear_weight_grad %d, %h : tensor<8x16xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
    // becomes, with chunks=2,
    %h0 = nn.slice %h [0, 0] : tensor<8x4xf32> to tensor<4x4xf32>
    %logits0 = nn.linear %h0, %w : tensor<4x4xf32>, tensor<16x4xf32> -> tensor<4x16xf32>
    %rows0, %lse0 = nn.cross_entropy %logits0, %t0 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %d0 = nn.cross_entropy_grad %logits0, %t0, %lse0, %drows0 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %dh0 = nn.linear_input_grad %d0, %w : tensor<4x16xf32>, tensor<16x4xf32> -> tensor<4x4xf32>
    %dw0 = nn.linear_weight_grad %d0, %h0 : tensor<4x16xf32>, tensor<4x4xf32> -> tensor<16x4xf32>
    %h1 = nn.slice %h [4, 0] : tensor<8x4xf32> to tensor<4x4xf32>
    %logits1 = nn.linear %h1, %w : tensor<4x4xf32>, tensor<16x4xf32> -> tensor<4x16xf32>
    %rows1, %lse1 = nn.cross_entropy %logits1, %t1 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %rows = nn.concat %rows0, %rows1 dim 0 : tensor<4xf32>, tensor<4xf32> to tensor<8xf32>
    …
    %seed = nn.seed %loss : tensor<f32>
    …
    %d1 = nn.cross_entropy_grad %logits1, %t1, %lse1, %drows1 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %dh1 = nn.linear_input_grad %d1, %w : tensor<4x16xf32>, tensor<16x4xf32> -> tensor<4x4xf32>
    %dh = nn.concat %dh0, %dh1 dim 0 : tensor<4x4xf32>, tensor<4x4xf32> to tensor<8x4xf32>
    %dw = nn.linear_weight_grad %d1, %h1 sum %dw0 : tensor<4x16xf32>, tensor<4x4xf32>, tensor<16x4xf32> -> tensor<16x4xf32>
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", /*default=*/"1",
           "Chunks of a rank's rows; 1: programs stay as they are">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

//===----------------------------------------------------------------------===//
// Schedule: the plan and the passes that apply it
//===----------------------------------------------------------------------===//

def Address : Pass<"fsdp-address", "::mlir::func::FuncOp"> {
  let summary = "Writes down the address of every op that a plan can name";
  let description = [{
    An address says in which phase of the program, in which module and as what an
    op computes:

    ```mlir
    %y = nn.linear %x, %w {fsdp.address = "fwd layers.3.attention.wq linear", …}
    %g = fsdp.all_gather %s … {fsdp.address = "fwd layers.3.attention.wq all_gather", …}
    %d = nn.linear_weight_grad %c, %x {fsdp.address = "bwd layers.3.attention.wq dw", …}
    ```

    - The phase is `fwd` or `bwd` (before or behind nn.seed), `again` for what
      fsdp-remat computes a second time, or `update` for the optimizer.
    - The path is the module of the op, or the parameter that a collective moves;
      ops of the root have none.
    - The role is the op's mnemonic, but `dx` and `dw` for the gradients of inputs
      and weights; of several ops with the same name the second is `rotary#2`.

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
    `fsdp.plan`, which fsdp-remat, fsdp-bucket and fsdp-overlap apply:

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
    Option<"reshard", "reshard-after-forward", "::fsdp::schedule::ReshardPolicy", "::fsdp::schedule::ReshardPolicy::Default",
      "Gather again in the backward pass?", [{::llvm::cl::values(
        clEnumValN(::fsdp::schedule::ReshardPolicy::Always, "always", "all"),
        clEnumValN(::fsdp::schedule::ReshardPolicy::Never, "never", "keep gathered parameters"),
        clEnumValN(::fsdp::schedule::ReshardPolicy::Default, "default", "all but the bucket that the forward pass uses last"))}]>,
    Option<"recompute", "recompute", "::fsdp::schedule::RecomputePolicy", "::fsdp::schedule::RecomputePolicy::None",
      "Which values of blocks are computed again in the backward pass", [{::llvm::cl::values(
        clEnumValN(::fsdp::schedule::RecomputePolicy::None, "none", "none"),
        clEnumValN(::fsdp::schedule::RecomputePolicy::Free, "free", "what one pass over values that are kept anyway gives"),
        clEnumValN(::fsdp::schedule::RecomputePolicy::Full, "full", "all but what leaves the block"))}]>,
    Option<"bucket", "bucket", "bool", "true", "Merge a bucket's collectives into one">,
    Option<"overlap", "overlap", "bool", "true", "Run collectives beside compute">,
    Option<"prefetch", "prefetch", "int64_t", "1", "Buckets a gather starts ahead of its use">,
    Option<"reduceDefer", "reduce-defer", "int64_t", "1", "Later reductions that start before one is awaited">
  ];
}

def Remat : Pass<"fsdp-remat", "::mlir::ModuleOp"> {
  let summary = "Recomputes values in the backward pass, as the plan says";
  let description = [{
    What the plan recomputes is cloned behind nn.seed for the ops there that use
    it, right before the first one. Reshard-after-forward is recomputation: a
    gather is cloned with the casts before it. Moves of elements that carry such a
    value on are cloned too, and where one recomputed value needs another its
    clone uses the other's. All else that a clone needs is kept, and goes through
    nn.recompute_from so that CSE leaves the clone alone. Clones never make
    reductions of gradients; they belong to the module of what they clone, and
    their address is its in the phase "again".

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
  let summary = "Merges the collectives of a bucket, as the plan says";
  let description = [{
    One variadic collective is one bucket. Collectives of a bucket merge when
    they agree on direction (before or behind nn.seed), kind, mesh axes,
    reduction and element types. A merged gather stands where its first
    member stood, a merged reduction where its last one did. Inside, the order is
    that of registration, whatever the order in the graph. It belongs to the
    module around its members, if there is one below the root, and has the
    bucket's address; `fsdp.members` says what it carries.

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
  let summary = "Places the start and the wait of each collective, as the plan says";
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

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

def Fuse : Pass<"nn-fuse", "::mlir::func::FuncOp"> {
  let summary = "Groups chains of pointwise and row ops into kernels";
  let description = [{
    Ops of KernelOpInterface that share an iteration space and feed one
    another become one nn.fusion. No bit changes: every op of a fusion still
    rounds to its declared type, and reductions keep their order.

    ```mlir
    %h = nn.add %x, %r : tensor<4x8xf32>
    %y, %rstd = nn.rms_norm %h, %w eps 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
    %z = nn.linear %y, %v : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<4x2xf32>
    // becomes
    %y = nn.fusion(%x, %r, %w) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
      …
    }
    %z = nn.linear %y, %v : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<4x2xf32>
    ```

    Inside a kernel an element is computed again in every stage (each
    reduction, the final map), so an op that reduces does not join a value that
    needs exp, log, tanh or erf. Sums over rows (weight gradients) stay alone.
    A fusion belongs to the module around those of its members, which keep
    theirs. It never crosses a collective or the start or wait of one, nn.seed or
    nn.adamw, so it runs after fsdp-overlap. Linear time.
  }];
}

//===----------------------------------------------------------------------===//
// Execution: bytes and order
//===----------------------------------------------------------------------===//

include "passes/ExecPasses.td"

#endif // FSDP_PASSES
