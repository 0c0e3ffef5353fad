//===- PlacementPasses.td - Where tensors live and move ----*- tablegen -*-===//
//
// The passes of Placement/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PLACEMENT_PASSES
#define FSDP_PLACEMENT_PASSES

include "mlir/Pass/PassBase.td"

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

    An axis of the mesh has a kind, `data` or `tensor`, or none (#fsdp.axis).
    Over data axes arguments, which are batches, are cut along dimension 0, which
    they must divide; and parameters rest cut
    over them along dimension 0 as the mode says, which need not divide. What is
    computed does not depend on the mode, so the modes agree bit for bit. `auto` is
    hybrid_shard over several data axes, else fully_shard: the mode of a run, and so
    of fsdp-train. By itself the pass takes fully_shard, which asks nothing of the
    mesh.
    Parameters and arguments of rank 0 are replicated. Buffers stay as they are:
    they are not trained and every rank computes the same. Reads that nothing uses
    are erased.

    Other axes are computed with: a *policy*, rules over names of parameters, says
    which dimension each cuts, which parameters are frozen or stay whole at rest,
    and where the residual stream is kept: what additions marked `nn.residual` read
    as their first operand, which must not be computed from the second, and give;
    the mark is taken off. It is a TOML file, or
    for a tensor axis the plan of Llama: projections into heads and into the
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
           "Axes of the mesh, slowest first, NAME=SIZE or NAME=SIZE:KIND: "
           "\"dp_replicate=2,dp_shard=4\", \"x=4:data,y=2:tensor\"; without a "
           "kind, dp, dp_replicate and dp_shard are data axes, tp is a tensor "
           "axis, and others have none">,
    Option<"mode", "mode", "::fsdp::ShardMode",
           /*default=*/"::fsdp::ShardMode::FullyShard",
           "How parameters are laid out",
           [{::fsdp::SpelledValues<::fsdp::ShardMode>()}]>,
    Option<"policyFile", "policy", "std::string", /*default=*/"",
           "TOML file that says where parameters and the residual stream lie; "
           "without, a tensor axis has the tensor-parallel plan of Llama">,
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
    %w = fsdp.all_gather %c on @mesh["dp_shard"] dim 0 {…, serves = #fsdp.origin<all "fwd w">} : tensor<4x4xbf16> -> tensor<8x4xbf16>
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

#endif // FSDP_PLACEMENT_PASSES
