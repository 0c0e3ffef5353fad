//===- PlacementPasses.td - Where tensors live and move ----*- tablegen -*-===//
//
// The passes of Placement/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_PLACEMENT_PASSES
#define FSDP_PLACEMENT_PASSES

include "mlir/Pass/PassBase.td"

def Shard : Pass<"fsdp-shard", "::mlir::ModuleOp"> {
  let summary = "Places parameters and batches on a mesh; reads of a parameter become one redistribute";
  let description = [{
    Creates `fsdp.mesh @mesh` and gives every parameter and every argument of a program its `fsdp.placement`.
    It turns the reads of a parameter in a program into ONE read and ONE `fsdp.redistribute` to the compute
    placement, right before the first use of the parameter. Sharding is a differentiable op like any other, so
    nn-differentiate derives the collectives of the gradients and nobody writes them by hand. A tied weight
    has one redistribute, so its gradient is reduced once. Types stay logical: those of one device with the
    whole batch.

    A mesh axis has a kind, `data` or `tensor`, or none (#fsdp.axis).

    **Data axes.** The arguments of programs are batches. They are split over the data axes along dimension 0,
    which the ranks must divide. The storage placement of a parameter splits its dimension 0 over the data
    axes that the mode names; the ranks need not divide it. The compute placement does not depend on the mode,
    so all modes produce the same bits. `auto` is hybrid_shard over several data axes, else fully_shard. A run
    and fsdp-train take `auto`. The pass alone takes fully_shard, which demands nothing of the mesh.
    Parameters and arguments of rank 0 are replicated. Buffers are left unchanged: they are not trained, and
    every rank computes the same ones. Reads without uses are erased.

    **Other axes** split what is computed. A *policy*, rules over names of parameters, states which dimension
    each axis splits, which parameters are frozen or have a replicated storage placement, and where the
    residual stream lies. The stream is the first operand and the result of additions marked `nn.residual`;
    the pass removes the mark. The first operand must not be computed from the second.

    The policy is a TOML file, or for a tensor axis the tensor-parallel plan. That plan splits projections into
    heads and into the feed-forward network along their outputs, projections back along their inputs, and the
    stream between them along the sequence. It holds for every decoder: what belongs to a weight follows it.

    - A bias is split as the outputs of its weight. Of a weight that is split along its inputs it is added to the
      sum over the ranks.
    - An RMS norm that reads the result of such a projection, so a norm over all heads, is split as its outputs.
      Ranks add up the squares of a row: one number per row travels, and one more in the backward pass.
    - Ops of a block that read the stream without a norm before them read it through one redistribute, so that
      their cotangents are added up before they travel.

    A rule that states how such a parameter is split overrides this. If the stream is split up to the loss, a
    parameter with which all ranks of its axis compute alike gets a storage placement that is split over that axis
    too.

    The read and the redistribute belong to the module (`nn.module`) of the first read that they replace.

    If every use of the parameter is an nn.cast to one type, the redistribute produces that type and the casts
    are erased: the compute type travels.

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
           "Axes of the mesh, slowest first, as NAME=SIZE or NAME=SIZE:KIND with "
           "the kinds data and tensor: \"dp_replicate=2,dp_shard=4\", "
           "\"x=4:data,y=2:tensor\"; without a kind, dp, dp_replicate and dp_shard "
           "are data axes, tp is a tensor axis, and others have no kind">,
    Option<"mode", "mode", "::fsdp::ShardMode",
           /*default=*/"::fsdp::ShardMode::FullyShard",
           "Storage placement of parameters over the data axes",
           [{::fsdp::SpelledValues<::fsdp::ShardMode>()}]>,
    Option<"policyFile", "policy", "std::string", /*default=*/"",
           "TOML file with the placements of parameters and the residual stream; "
           "empty: a tensor axis has the tensor-parallel plan">,
    Option<"sequence", "sequence", "bool", /*default=*/"true",
           "With the tensor-parallel plan: split the residual stream along the sequence">,
    Option<"loss", "loss", "bool", /*default=*/"true",
           "With the tensor-parallel plan: split logits and loss along the sequence">,
    Option<"reduceDtype", "reduce_dtype", "std::string", /*default=*/"\"f32\"",
           "Widest type in which gradients travel: f32 or bf16; sums are always f32">,
    Option<"nodeSize", "node_size", "int64_t", /*default=*/"0",
           "Consecutive ranks that share a node; 0: not stated">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def Propagate : Pass<"fsdp-propagate", "::mlir::ModuleOp"> {
  let summary = "Gives every value of a logical program a placement";
  let description = [{
    Types are logical: the program is the one that a single device would run. Declarations, arguments,
    results and fsdp.redistribute ops state placements; an argument without one is replicated. The pass walks
    the program once. It adds the fsdp.redistribute ops that make the operands of every op fit its sharding
    rule, and derives all other placements forwards.

    A result without a stated placement has the one in which it is computed, with partials reduced. If a later
    program has an argument of the same name without a stated placement, that argument is this result and gets
    its placement.

    Per mesh axis, in the order of the mesh, the pass splits one factor of an op, or none:

    1. A parameter keeps its compute placement if any such split allows it.
    2. Among the splits that move the fewest parameters, the pass takes the one with the fewest exchanges of
       one split dimension for another, then the one with the fewest bytes. The bytes include those from the
       result to the placement that its users need (of a gradient, the storage placement of the parameter;
       a gradient may stay partial until then).
    3. A replicated operand is split only to match an operand that is split so already, or a result whose
       users need it split so.
    4. Additions and moves of elements leave partials partial if all operands are partial. All other ops take
       their operands reduced.

    A value is moved to a placement once, and the backward pass uses what the forward pass has moved. The pass
    ignores the storage axes of parameters: bits depend on compute placements alone. Each move emits a remark
    with its bytes. A move belongs to the module of the op that produces the value, since one move serves all
    users. The move of an argument belongs to the module of its first user.

    The optimizer takes gradients in the storage placements of their parameters. A module without a mesh and
    programs of one rank (`fsdp.local`) are left unchanged.

    ```mlir
    fsdp.mesh @mesh ["tp" = 2]
    nn.parameter @up : tensor<8x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"tp"}, {} ]>}
    nn.parameter @down : tensor<4x8xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {"tp"} ]>}
    %u = nn.read @up : tensor<8x4xf32>
    %h = nn.linear %x, %u : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
    %d = nn.read @down : tensor<4x8xf32>
    %y = nn.linear %h, %d : tensor<2x8xf32>, tensor<4x8xf32> -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
    // %h is sharded on dimension 1 and %y is partial: one move before the return
    %z = fsdp.redistribute %y on @mesh to <[{}, {} ]> : tensor<2x4xf32> -> tensor<2x4xf32>
    ```
  }];
  let dependentDialects = ["::fsdp::dist::FsdpDialect"];
}

def VerifyPlacements : Pass<"fsdp-verify-placements", "::mlir::ModuleOp"> {
  let summary = "Proves that the placements of an op's operands fit its sharding rule";
  let description = [{
    Follows placements from parameters, arguments and fsdp.redistribute through the sharding rule of every op.
    It fails if operands do not fit a rule, if a partial reaches an op that cannot take one, if an op takes
    a tensor in its storage placement, or if a gradient or a result does not have the placement that it must
    have.

    The property holds from fsdp-propagate to fsdp-expand.
  }];
}

def Expand : Pass<"fsdp-expand", "::mlir::ModuleOp"> {
  let summary = "Turns a placed program into the program of one rank";
  let description = [{
    Every type becomes that of a rank's shard, the program is marked `fsdp.local`, and each fsdp.redistribute
    becomes the moves between two placements, per mesh axis:

    | from | to | becomes | bytes a rank receives |
    |---|---|---|---|
    | sharded | replicated | fsdp.all_gather | (n-1)/n of the result |
    | replicated | sharded | fsdp.shard_of | none |
    | partial | replicated | fsdp.all_reduce | 2 (n-1)/n of the operand |
    | partial | sharded | fsdp.reduce_scatter | (n-1)/n of the operand |
    | sharded | sharded on another dimension | fsdp.all_gather, then fsdp.shard_of | n-1 times the operand |

    Moves that shrink the tensor come first. Axes of one rank are left out. The narrower type travels: a
    parameter is cast to the compute type before it is gathered, and a bf16 gradient travels as bf16. The
    receiver widens it, which produces the bits of an f32 reduction for half its bytes.

    Sums run over the mesh axes from the last axis outward, whatever mixture of reduce_scatters and
    all_reduces carries them. They are f32 from one axis to the next, and the result is rounded once. Trees
    over ranks nest by mesh axis, innermost = consecutive ranks. So a reduce_scatter over the inner axes
    followed by an all_reduce over the outer ones is the same tree as one collective over all of them. So
    fully_shard, hybrid_shard and replicate are bitwise equal.

    Collectives go along dimension 0, whose pieces are contiguous in memory. Pieces of another dimension are
    made contiguous by nn.reshape and, if there is more than one row of them, nn.transpose. The shard of a
    broadcast is a smaller broadcast.

    `serves` says what a collective is for: a phase, and the name of the parameter without ".weight" or, where
    no parameter moves, the module. The phase is "fwd" before nn.seed, "bwd" after it, and "update" for the
    optimizer.

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

    With `widen-sums` the sender widens, for a library that adds in the type that it receives. The same
    numbers are added, and twice the bytes travel.

    The pass fails where fsdp-verify-placements would.
  }];
  let options = [
    Option<"widenSums", "widen-sums", "bool", "false",
           "Cast summands to the type of the sum before they travel">
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def EmbeddingRows : Pass<"fsdp-embedding-rows", "::mlir::ModuleOp"> {
  let summary = "Ranks exchange the rows of an embedding that they read, not its table";
  let description = [{
    A rank needs as many rows of a table as it has tokens. Where the tokens of all ranks are fewer than the rows
    of the table, the rows are fewer bytes than the table, and their gradients are fewer than that of the table.

    | pass | before | after |
    |---|---|---|
    | forward | an all_gather of the table | an all_gather of indices, rows of the own shard for all ranks, a reduce_scatter of rows |
    | backward | a reduce_scatter of the table's gradient | an all_gather of the rows' gradients, sums in the own shard |

    No bit changes where sums over ranks are exact. Of the rows of a token one rank has its own, and all others have
    -0.0, which a sum leaves alone. In the backward pass a rank adds up the gradients of its rows for each rank apart,
    in the order of that rank's tokens, rounds them as the gradient of the table is rounded, and adds these pieces in
    the tree of a reduction.

    A table stays as it is where its rows are no fewer bytes and where other ops read it too (tied weights), and its
    gradient over more than 64 ranks. A remark says so, and a warning where no rows travel at all. Forward and
    backward pass are decided apart.

    ```mlir
    fsdp.mesh @mesh ["dp_shard" = 4]
    %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<512x8xbf16> -> tensor<2048x8xbf16>
    %x = nn.embedding %ids, %w : tensor<2x16xi32>, tensor<2048x8xbf16> -> tensor<2x16x8xbf16>
    // becomes
    %all = fsdp.all_gather %ids on @mesh["dp_shard"] dim 0 : tensor<2x16xi32> -> tensor<8x16xi32>
    %own = fsdp.rows_of_shard %all on @mesh["dp_shard"] of 2048 : tensor<8x16xi32>
    %parts = nn.embedding %own, %s {absent} : tensor<8x16xi32>, tensor<512x8xbf16> -> tensor<8x16x8xbf16>
    %rows = fsdp.reduce_scatter sum %parts on @mesh["dp_shard"] dim 0 : tensor<8x16x8xbf16> -> tensor<2x16x8xf32>
    %x = nn.cast %rows : tensor<2x16x8xf32> to tensor<2x16x8xbf16>
    ```
  }];
  let options = [
    Option<"widenSums", "widen-sums", "bool", "false",
           "Cast summands to the type of the sum before they travel">
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

#endif // FSDP_PLACEMENT_PASSES
