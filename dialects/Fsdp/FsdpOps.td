//===- FsdpOps.td - Mesh, redistribute, collectives, futures --*- tablegen -*-===//
#ifndef FSDP_FSDP_OPS
#define FSDP_FSDP_OPS

include "dialects/Fsdp/FsdpAttrs.td"
include "dialects/Fsdp/FsdpInterfaces.td"
include "dialects/Fsdp/FsdpTypes.td"
include "dialects/NN/NNFacts.td"
include "dialects/NN/NNInterfaces.td"
include "dialects/NN/NNTypes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Fsdp_Op<string mnemonic, list<Trait> traits = []>
    : Op<Fsdp_Dialect, mnemonic, traits>;

def Fsdp_Tensor : NN_TensorOf<[F32, BF16, F64, I32, I64]>;
def Fsdp_AxesAttr : TypedArrayAttrBase<Fsdp_AxisRefAttr, "mesh axes">;

def Fsdp_MeshOp : Fsdp_Op<"mesh", [Symbol]> {
  let summary = "The ranks as a grid of named axes";
  let description = [{
    The coordinates of ranks are row-major: the last axis varies fastest. Axes of size 1 are allowed.
    `node_size` is the number of consecutive ranks that share a node (0: not stated). The kind of an axis, if
    it has one, follows its size (#fsdp.axis).

    Example: `fsdp.mesh @mesh ["dp_replicate" = 2 : data, "dp_shard" = 4 : data, "tp" = 2 : tensor]`

    Constraints: 1. at least one axis; 2. axis names differ and are not empty; 3. sizes are at least 1; 4.
    node_size divides the world size; 5. no axis and no product of axes exceeds 2^20 ranks; 6. kinds are `data`
    and `tensor`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name,
      TypedArrayAttrBase<Fsdp_MeshAxisAttr, "axes">:$axes,
      DefaultValuedAttr<I64Attr, "0">:$node_size);
  let assemblyFormat = "$sym_name custom<MeshAxes>($axes) attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Product of all axis sizes.
    int64_t getWorldSize();
    /// The axes of a kind, in order.
    ::llvm::SmallVector<AxisRefAttr, 2> axesOf(::fsdp::AxisKind kind);
    /// Ranks along one axis or sub-axis; 0 if the mesh has no such axis.
    int64_t sizeOf(AxisRefAttr axis);
    /// Product over several axes; 0 if one is missing, or if together they
    /// are more ranks than the mesh has.
    int64_t sizeOf(::llvm::ArrayRef<AxisRefAttr> axes);
    /// From a rank to the next along an axis or sub-axis, which the mesh has.
    int64_t strideOf(AxisRefAttr axis);
    /// Of the ranks that differ along `axes` alone, those that share a node
    /// with each; 1 if nodes are not stated. None where that differs from rank
    /// to rank, or where they are no part of the order of sums: trees nest by
    /// mesh axis, and along an axis they split at powers of two.
    ::std::optional<int64_t> ranksInNode(::llvm::ArrayRef<AxisRefAttr> axes);
  }];
}

def Fsdp_RedistributeOp : Fsdp_Op<"redistribute", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>]> {
  let summary = "The same logical tensor in another placement";
  let description = [{
    Types are logical here. The op computes the identity, or a cast if the element types differ. Declarations,
    these ops and the sharding rules of the ops between them determine all placements (fsdp-verify-placements).
    One table states the cost of a change of placement (Placement.h).

    The narrower of the two element types travels. A partial travels in the type of the operand or in `wire`,
    whichever is narrower; the receiver adds in f32 (f64 for f64) and rounds once. So a parameter is gathered
    in its compute type, and a gradient arrives in f32 whatever its wire type.

    The reverse rule redistributes the cotangent. If the operand is read from a parameter, the cotangent goes
    to the storage placement of the parameter, in the parameter's type. Otherwise it goes to the placement
    that this op gives its result, with partials reduced.

    fsdp-shard adds one for every parameter that a program reads, fsdp-propagate adds those that are missing,
    and fsdp-expand turns them into collectives. A policy or a person may add others before fsdp-propagate, which
    keeps them.

    Example:
    ```mlir
    %w = fsdp.redistribute %r on @mesh to <[{}, {} ]> wire f32 : tensor<14336x4096xf32> -> tensor<14336x4096xbf16>
    ```

    Constraints: 1. the mesh exists; 2. the placement fits the tensor on it; 3.
    both sides have one shape, and floating elements or the same ones; 4.
    `wire` is f32, bf16 or f64.
  }];
  let arguments = (ins Fsdp_Tensor:$input, FlatSymbolRefAttr:$mesh,
      Fsdp_PlacementAttr:$placement, OptionalAttr<TypeAttr>:$wire);
  let results = (outs Fsdp_Tensor:$result);
  let assemblyFormat = [{
    $input `on` $mesh `to` $placement (`wire` $wire^)? attr-dict `:` type($input) `->` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::FlatSymbolRefAttr":$mesh,
                                 "PlacementAttr":$placement)>];
}

//===----------------------------------------------------------------------===//
// Shards of tensors by a rank's coordinates, and exchanges
//===----------------------------------------------------------------------===//

def Fsdp_ShardOfOp : Fsdp_Op<"shard_of", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "This rank's shard of a tensor that every rank has";
  let description = [{
    Shard c of the dimension, where c is the rank's coordinate over `axes`, the first one slowest. The shard is
    padded with zeros to ceil(size / parts). Nothing travels.

    `regathered` says that the tensor is a gathered parameter, and that the backward pass, where it gathers it
    again, does so from these shards: over `axes` alone. fsdp-reshard writes it, fsdp-remat applies it and
    takes it away.

    Examples:
    ```mlir
    %s = fsdp.shard_of %x on @mesh["dp_shard"] dim 0 : tensor<7x8xf32> -> tensor<2x8xf32>
    %w = fsdp.all_gather %v on @mesh["dp_shard"] dim 0 : tensor<2x8xbf16> -> tensor<8x8xbf16>
    %k = fsdp.shard_of %w on @mesh["dp_shard":(2)2] dim 0 {regathered} : tensor<8x8xbf16> -> tensor<4x8xbf16>
    ```

    Constraints: 1. mesh and axes exist; 2. the element types are equal, and so are the sizes outside `dim`;
    along `dim` the result has the size ceil(size / parts); 3. with `regathered` the operand is what an
    fsdp.all_gather of one tensor along `dim` gives over axes that have `axes`, and its only such shard.
  }];
  let arguments = (ins Fsdp_Tensor:$input, FlatSymbolRefAttr:$mesh,
      Fsdp_AxesAttr:$axes, I64Attr:$dim, UnitAttr:$regathered);
  let results = (outs Fsdp_Tensor:$result);
  let assemblyFormat = [{
    $input `on` $mesh `` custom<Axes>($axes) `dim` $dim attr-dict `:` type($input) `->` type($result)
  }];
}

def Fsdp_RowsOfShardOp : Fsdp_Op<"rows_of_shard", [Pure, AllTypesMatch<["input", "result"]>,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Where in this rank's shard of a table the rows are that indices name";
  let description = [{
    A table of `classes` rows is split along dimension 0 over `axes`. Each shard has n = ceil(classes / ranks)
    rows, and this rank has shard c. The index v becomes v - c n if shard c has that row, and -1 if not. That is
    what nn.embedding and nn.embedding_grad with `absent` take. Nothing travels.

    With `by_rank`, the first dimension has the indices of all ranks of the axes, those of one rank after those
    of another, and an index of rank p becomes p n + v - c n. So nn.embedding_grad adds the rows of each rank
    up in a piece of its own.

    An index that is no row of the table is a run-time error.

    Examples:
    ```mlir
    %all = fsdp.all_gather %ids on @mesh["dp_shard"] dim 0 : tensor<2x4xi32> -> tensor<8x4xi32>
    %own = fsdp.rows_of_shard %all on @mesh["dp_shard"] of 15 : tensor<8x4xi32>
    %parts = nn.embedding %own, %shard {absent} : tensor<8x4xi32>, tensor<4x64xbf16> -> tensor<8x4x64xbf16>
    %places = fsdp.rows_of_shard %all on @mesh["dp_shard"] of 15 {by_rank} : tensor<8x4xi32>
    %pieces = nn.embedding_grad %places, %dy {absent} : tensor<8x4xi32>, tensor<8x4x64xbf16> -> tensor<16x64xbf16>
    ```

    Constraints: 1. mesh and axes exist; 2. the indices are i32; 3. the table has at least one row; 4. with
    `by_rank`, the ranks divide the first dimension.
  }];
  let arguments = (ins Fsdp_Tensor:$input, FlatSymbolRefAttr:$mesh,
      Fsdp_AxesAttr:$axes, I64Attr:$classes, UnitAttr:$by_rank);
  let results = (outs Fsdp_Tensor:$result);
  let assemblyFormat = "$input `on` $mesh `` custom<Axes>($axes) `of` $classes attr-dict `:` type($input)";
}

//===----------------------------------------------------------------------===//
// Collectives. Variadic: one collective is one bucket.
//===----------------------------------------------------------------------===//

/// `kind` is a CollectiveKind; `reduction`, `joined` and `cut` name the attributes
/// that say how operands are combined and along which dimension they are joined
/// and split. They are empty where the layout of the kind needs none.
class Fsdp_CollectiveOp<string mnemonic, string kind, string reduction, string joined, string cut>
    : Fsdp_Op<mnemonic, [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<Fsdp_CollectiveOpInterface,
            ["getCollectiveKind", "getReduction", "getJoinedDim", "getSplitDim"]>,
        DeclareOpInterfaceMethods<Fsdp_InFlightOpInterface>]> {
  /// The description for people, before the layout.
  string prose = ?;
  let description = prose # "\n    | of the tensors of all ranks | |\n    |---|---|\n    | combined | " #
      !if(!eq(reduction, ""), "no", "as `" # reduction # "` says") # " |\n    | joined | " #
      !if(!eq(joined, ""), "no", "along `" # joined # "`") # " |\n    | split | " #
      !if(!eq(cut, ""), "no", "along `" # cut # "`") # " |\n";
  defvar none = "::std::nullopt";
  let extraClassDefinition = [{
    ::fsdp::dist::CollectiveKind $cppClass::getCollectiveKind() {
      return CollectiveKind::}] # kind # [{;
    }
    ::std::optional<::fsdp::dist::CollectiveReduce> $cppClass::getReduction() {
      return }] # !if(!eq(reduction, ""), none, NN_Get<reduction>.call) # [{;
    }
    ::std::optional<int64_t> $cppClass::getJoinedDim() {
      return }] # !if(!eq(joined, ""), none, NN_Get<joined>.call) # [{;
    }
    ::std::optional<int64_t> $cppClass::getSplitDim() {
      return }] # !if(!eq(cut, ""), none, NN_Get<cut>.call) # [{;
    }
    ::fsdp::dist::StreamRole $cppClass::getStreamRole() {
      return isReduction(getCollectiveKind()) ? StreamRole::Reduce : StreamRole::Gather;
    }
  }];
}

def Fsdp_AllGatherOp : Fsdp_CollectiveOp<"all_gather", "AllGather", "", "dim", ""> {
  let summary = "Every rank gets the full tensors from the shards of all";
  let prose = [{
    | rank | operand | result |
    |---|---|---|
    | 0 | a0 | a0 a1 … |
    | 1 | a1 | a0 a1 … |

    along dimension `dim`; padding is dropped. `serves` is the origin that the collective is for
    ("fwd layers.3"), which profiles and remarks show. `fsdp.parameters` has the symbols of the parameters that
    it moves.

    Example:
    ```mlir
    %g:2 = fsdp.all_gather %a, %b on @mesh["dp_shard"] dim 0
        {fsdp.parameters = [@layers.3.norm.weight, @layers.3.norm.bias], serves = #fsdp.origin<all "fwd layers.3">}
        : tensor<4x8xf32>, tensor<2xf32> -> tensor<16x8xf32>, tensor<7xf32>
    ```

    Constraints: 1. the mesh has the axes, which do not overlap, and at most 8 of them have more than one rank;
    2. as many results as operands, of the same element type; 3. result sizes are equal outside `dim`, and the
    operand's size along `dim` is ceil(result size / parts); 4. `serves` has no op; 5. `fsdp.parameters`, if
    present, has one nn.parameter per operand.
  }];
  let arguments = (ins Variadic<Fsdp_Tensor>:$inputs, FlatSymbolRefAttr:$mesh,
      Fsdp_AxesAttr:$axes, DefaultValuedAttr<I64Attr, "0">:$dim,
      OptionalAttr<Fsdp_ServesAttr>:$serves);
  let results = (outs Res<Variadic<Fsdp_Tensor>, "", [MemAlloc]>:$results);
  let assemblyFormat = [{
    $inputs `on` $mesh `` custom<Axes>($axes) `dim` $dim attr-dict `:` type($inputs) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Fsdp_ReduceScatterOp : Fsdp_CollectiveOp<"reduce_scatter", "ReduceScatter", "kind", "", "dim"> {
  let summary = "Each rank gets its shard of the tensors combined over all ranks";
  let prose = [{
    The operand travels in its own element type. The receiver widens it to f32 and combines in the fixed tree.
    Padding in the result is zero.

    Example:
    ```mlir
    %s = fsdp.reduce_scatter sum %g on @mesh["dp_shard"] dim 0
        : tensor<16x8xbf16> -> tensor<4x8xf32>
    ```

    Constraints: as all_gather with operand and result exchanged; the result's
    element type is f32 (or f64 for f64 operands).
  }];
  let arguments = (ins Fsdp_ReduceKindAttr:$kind, Variadic<Fsdp_Tensor>:$inputs,
      FlatSymbolRefAttr:$mesh, Fsdp_AxesAttr:$axes,
      DefaultValuedAttr<I64Attr, "0">:$dim, OptionalAttr<Fsdp_ServesAttr>:$serves);
  let results = (outs Res<Variadic<Fsdp_Tensor>, "", [MemAlloc]>:$results);
  let assemblyFormat = [{
    `` $kind $inputs `on` $mesh `` custom<Axes>($axes) `dim` $dim attr-dict `:` type($inputs) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Fsdp_AllReduceOp : Fsdp_CollectiveOp<"all_reduce", "AllReduce", "kind", "", ""> {
  let summary = "Every rank gets the tensors combined over all ranks";
  let prose = [{
    Equals a reduce_scatter of pieces followed by an all_gather, with the same tree and the same bits. Integers
    combine exactly.

    Example: `%r = fsdp.all_reduce sum %g on @mesh["dp_shard"] : tensor<16x8xbf16> -> tensor<16x8xf32>`

    Constraints: 1. the mesh has the axes, which do not overlap, and at most 8 of them have more than one rank;
    2. as many results as operands, of the same shapes; 3. results are f32 for floating-point operands (f64 for
    f64), and of the operand's type for integers.
  }];
  let arguments = (ins Fsdp_ReduceKindAttr:$kind, Variadic<Fsdp_Tensor>:$inputs,
      FlatSymbolRefAttr:$mesh, Fsdp_AxesAttr:$axes,
      OptionalAttr<Fsdp_ServesAttr>:$serves);
  let results = (outs Res<Variadic<Fsdp_Tensor>, "", [MemAlloc]>:$results);
  let assemblyFormat = [{
    `` $kind $inputs `on` $mesh `` custom<Axes>($axes) attr-dict `:` type($inputs) `->` type($results)
  }];
  let hasVerifier = 1;
}

def Fsdp_AllToAllOp : Fsdp_CollectiveOp<"all_to_all", "AllToAll", "", "join", "split"> {
  let summary = "Shards of one dimension become shards of another";
  let prose = [{
    | rank | operand | result |
    |---|---|---|
    | 0 | a0 a1 | a0 b0 |
    | 1 | b0 b1 | a1 b1 |

    The operand is split along `split`, piece c goes to rank c, and the pieces that arrive are joined along
    `join` in the order of the ranks.

    Example:
    ```mlir
    %h = fsdp.all_to_all %s on @mesh["dp_shard"] split 2 join 1 : tensor<2x4x8x6xf32> -> tensor<2x16x2x6xf32>
    ```

    Constraints: 1. mesh and axes exist; 2. as many results as operands, of the same element types; 3. `split`
    and `join` are different dimensions; 4. the parts divide `split`, and the result is that much longer along
    `join`.
  }];
  let arguments = (ins Variadic<Fsdp_Tensor>:$inputs, FlatSymbolRefAttr:$mesh,
      Fsdp_AxesAttr:$axes, I64Attr:$split, I64Attr:$join,
      OptionalAttr<Fsdp_ServesAttr>:$serves);
  let results = (outs Res<Variadic<Fsdp_Tensor>, "", [MemAlloc]>:$results);
  let assemblyFormat = [{
    $inputs `on` $mesh `` custom<Axes>($axes) `split` $split `join` $join attr-dict `:` type($inputs) `->` type($results)
  }];
}

//===----------------------------------------------------------------------===//
// Futures
//===----------------------------------------------------------------------===//

def Fsdp_AsyncOp : Fsdp_Op<"async", [SingleBlock]> {
  let summary = "Starts one op that can be in flight; returns a future of its results";
  let description = [{
    The body holds exactly one op of InFlightOpInterface (a collective) and ends in fsdp.yield of its results.
    The position of fsdp.async in the program is the moment of issue.

    An fsdp.await at the start of the body lets the collective wait, not the program: the second of two chained
    reductions is issued after the first one, and computation continues. Reductions run on one stream in order
    of issue, so this costs nothing.

    Example:
    ```mlir
    %f = fsdp.async : !fsdp.future<tensor<16x8xf32>> {
      %g = fsdp.all_gather %a on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<16x8xf32>
      fsdp.yield %g : tensor<16x8xf32>
    }
    ```

    Constraints: 1. the body is one op that can be in flight, followed by fsdp.yield; awaits may precede it; 2.
    the yielded types are the future's; 3. the ops that the body awaits run on the stream of its own op.
  }];
  let regions = (region SizedRegion<1>:$body);
  let results = (outs Res<Fsdp_FutureType, "", [MemAlloc]>:$future);
  let assemblyFormat = "attr-dict `:` type($future) $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// The one op in the body that is in flight.
    ::mlir::Operation *getInnerOp() {
      return getBody().front().getTerminator()->getPrevNode();
    }
  }];
}

def Fsdp_AwaitOp : Fsdp_Op<"await"> {
  let summary = "Waits for a future and returns its values";
  let description = [{
    Each future is awaited exactly once (fsdp-verify-schedule).

    Example: `%w = fsdp.await %f : !fsdp.future<tensor<16x8xf32>> -> tensor<16x8xf32>`

    Constraints: 1. result types are the future's types.
  }];
  let arguments = (ins Fsdp_FutureType:$future);
  let results = (outs Res<Variadic<Fsdp_Tensor>, "", [MemAlloc]>:$results);
  let assemblyFormat = "$future attr-dict `:` type($future) `->` type($results)";
  let hasVerifier = 1;
}

def Fsdp_YieldOp : Fsdp_Op<"yield", [Pure, Terminator, HasParent<"AsyncOp">]> {
  let summary = "The values of the future of an fsdp.async";
  let description = [{
    Example:
    ```mlir
    %f = fsdp.async : !fsdp.future<tensor<4xf32>> {
      %s = fsdp.all_reduce sum %g on @mesh["dp_shard"] : tensor<4xf32> -> tensor<4xf32>
      fsdp.yield %s : tensor<4xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Fsdp_Tensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
}

#endif // FSDP_FSDP_OPS
