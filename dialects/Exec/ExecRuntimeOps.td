//===- ExecRuntimeOps.td - One record per operation of the runtime *- tablegen -*-===//
//
// The functions are declared in include/fsdp/Runtime/Runtime.h.
// ExecRuntimeBase.td explains the fields of a record; matrix products, attention
// and its heads are in ExecLayerOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EXEC_RUNTIME_OPS
#define FSDP_EXEC_RUNTIME_OPS

include "dialects/Exec/ExecLayerOps.td"
include "dialects/Fsdp/FsdpAttrs.td"
include "mlir/IR/SymbolInterfaces.td"

//===----------------------------------------------------------------------===//
// Embedding and loss
//===----------------------------------------------------------------------===//

def Exec_EmbeddingOp : Exec_RuntimeOp<"embedding", "embedding",
    [Buf<"ids", "i32", "rows...">, Buf<"table", "T", "classes cols">],
    [Buf<"out", "T", "rows... cols">]> {
  let summary = "Rows of a table by number";
  let prose = [{
    See nn.embedding.

    Example: `exec.embedding on compute (%ids, %w : memref<2x4xi32>, memref<16x8xbf16>) outs(%y : memref<2x4x8xbf16>)`

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.embedding";
  let params = (ins UnitAttr:$absent);
  let callArguments = [Exec_ElementOf<"table">, Exec_Size<"rows">, Exec_Size<"classes">, Exec_Size<"cols">,
      Exec_Bool<"absent", "getAbsent()">];
}

def Exec_EmbeddingGradOp : Exec_RuntimeOp<"embedding_grad", "embeddingGrad",
    [Buf<"ids", "i32", "rows...">, Buf<"dy", "T", "rows... cols">],
    [Buf<"out", "T", "classes cols">]> {
  let summary = "Adds rows to a table of zeros, in the order of tokens";
  let prose = [{
    See nn.embedding_grad. If the table is narrower than f32, the workspace holds sums in f32: on a CPU those of a row
    for each thread, and lists of the tokens of each class. On a GPU it holds the tokens in order of class.

    Example:
    ```mlir
    exec.embedding_grad on compute (%ids, %dy : memref<2x4xi32>, memref<2x4x8xbf16>) outs(%dw : memref<16x8xbf16>)
        workspace(%s : memref<512xi8>)
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.embedding_grad";
  let params = (ins UnitAttr:$absent);
  let callArguments = [Exec_ElementOf<"out">, Exec_Size<"rows">, Exec_Size<"classes">, Exec_Size<"cols">,
      Exec_Bool<"absent", "getAbsent()">];
  let workspaceBytes = [{sizes.embeddingGradWorkspaceBytes(
      dtypeOf(elementOf(*this, "out")), sizeOf(*this, "rows"), sizeOf(*this, "classes"),
      sizeOf(*this, "cols"))}];
}

def Exec_CrossEntropyOp : Exec_RuntimeOp<"cross_entropy", "crossEntropy",
    [Buf<"logits", "T", "rows... classes">, Buf<"targets", "i32", "rows...">],
    [Buf<"losses", "f32", "rows...">, Buf<"lse", "f32", "rows...">]> {
  let summary = "Cross entropy of every row";
  let prose = [{
    See nn.cross_entropy.

    Example:
    ```mlir
    exec.cross_entropy on compute (%x, %t : memref<2x4x16xf32>, memref<2x4xi32>) outs(%l, %lse : memref<2x4xf32>, memref<2x4xf32>)
        {ignore_index = -100 : i64}
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.cross_entropy";
  let params = (ins I64Attr:$ignore_index);
  let callArguments = [Exec_ElementOf<"logits">, Exec_Size<"rows">, Exec_Size<"classes">,
      Exec_Number<"int64_t", "ignoreIndex", "getIgnoreIndex()">];
}

def Exec_CrossEntropyGradOp : Exec_RuntimeOp<"cross_entropy_grad", "crossEntropyGrad",
    [Buf<"logits", "T", "rows... classes">, Buf<"targets", "i32", "rows...">,
     Buf<"lse", "f32", "rows...">, Buf<"dlosses", "f32", "rows...">],
    [Buf<"out", "T", "rows... classes">]> {
  let summary = "Gradient of the cross entropy of every row";
  let prose = [{
    See nn.cross_entropy_grad.

    Example:
    ```mlir
    exec.cross_entropy_grad on compute (%x, %t, %lse, %dl : memref<4x16xf32>, memref<4xi32>, memref<4xf32>, memref<4xf32>)
        outs(%dx : memref<4x16xf32>) {ignore_index = -100 : i64}
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.cross_entropy_grad";
  let params = (ins I64Attr:$ignore_index);
  let callArguments = [Exec_ElementOf<"logits">, Exec_Size<"rows">, Exec_Size<"classes">,
      Exec_Number<"int64_t", "ignoreIndex", "getIgnoreIndex()">];
}

def Exec_CountLabelsOp : Exec_RuntimeOp<"count_labels", "countLabels",
    [Buf<"targets", "i32", "rows...">], [Buf<"counts", "i64", "parts...">]> {
  let summary = "How many labels of each equal part are not ignored";
  let prose = [{
    Example: `exec.count_labels on compute (%t : memref<2x4xi32>) outs(%n : memref<i64>) {ignore_index = -100 : i64}`

    Constraints: 1. – 5. as of every operation of the runtime; 6. the number of counts divides the number of
    targets.
  }];
  let lowersFrom = "nn.count_labels";
  let params = (ins I64Attr:$ignore_index);
  let callArguments = [Exec_Size<"rows">, Exec_Size<"parts">,
      Exec_Number<"int64_t", "ignoreIndex", "getIgnoreIndex()">];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

def Exec_CopyOp : Exec_RuntimeOp<"copy", "copy",
    [Buf<"from", "E", "elements...">], [Buf<"to", "E", "elements...">]> {
  let summary = "Copies one range to another of the same type";
  let prose = [{
    Example: `exec.copy on compute (%a : memref<4xf32>) outs(%b : memref<4xf32>)`

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let callArgumentsBehind = [Exec_Number<"int64_t", "bytes",
      "bytesOf(::mlir::cast<::mlir::MemRefType>(getInputs()[0].getType()))">];
}

def Exec_TransposeOp : Exec_RuntimeOp<"transpose", "transpose",
    [Buf<"in", "E", "*">], [Buf<"out", "E", "*">]> {
  let summary = "Permutes the dimensions";
  let prose = [{
    Dimension i of the output is dimension `permutation[i]` of the input.

    Example:
    ```mlir
    exec.transpose on compute (%x : memref<4x8xf32>) outs(%y : memref<8x4xf32>)
        {permutation = array<i64: 1, 0>}
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6.
    `permutation` names every dimension of the input once; 7. the output has the
    input's dimensions in that order.
  }];
  let lowersFrom = "nn.transpose";
  let params = (ins DenseI64ArrayAttr:$permutation);
  let callArguments = [Exec_ElementOf<"in">, Exec_Number<"int", "rank", "getPermutation().size()">,
      Exec_Sizes<"shape", "shapeOf(*this, \"in\")", "shape">,
      Exec_Sizes<"permutation", "getPermutation()", "permutation">];
  let hasVerifier = 1;
}

def Exec_CopyBoxOp : Exec_RuntimeOp<"copy_box", "copyBox",
    [Buf<"in", "E", "*">], [Buf<"out", "E", "*">]> {
  let summary = "Copies a box of elements into a box of another tensor";
  let prose = [{
    `shape` is the shape of the box. Elements outside of it keep their values.

    Example:
    ```mlir
    exec.copy_box on compute (%x : memref<4x8xf32>) outs(%y : memref<3x3xf32>)
        {in_offsets = array<i64: 1, 0>, out_offsets = array<i64: 0, 0>, shape = array<i64: 2, 3>}
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. the box lies
    inside both tensors.
  }];
  let params = (ins DenseI64ArrayAttr:$shape, DenseI64ArrayAttr:$in_offsets, DenseI64ArrayAttr:$out_offsets);
  let callArguments = [Exec_ElementOf<"in">, Exec_Number<"int", "rank", "getShape().size()">,
      Exec_Sizes<"shape", "getShape()", "box">,
      Exec_Sizes<"inShape", "shapeOf(*this, \"in\")", "shape">,
      Exec_Sizes<"inOffsets", "getInOffsets()", "offsets">,
      Exec_Sizes<"outShape", "shapeOf(*this, \"out\")", "shape">,
      Exec_Sizes<"outOffsets", "getOutOffsets()", "offsets">];
  let hasVerifier = 1;
  let declarations = [{
    ::std::optional<::fsdp::exec::WrittenBox> getWrittenBox(unsigned output) {
      return ::fsdp::exec::WrittenBox{getShape(), getOutOffsets()};
    }
  }];
}

def Exec_FillZeroOp : Exec_RuntimeOp<"fill_zero", "fillZero", [], [Buf<"out", "E", "*">]> {
  let summary = "Fills a range with zeros";
  let prose = [{
    Example: `exec.fill_zero on compute () outs(%y : memref<4x8xf32>)`

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let callArgumentsBehind = [Exec_Number<"int64_t", "bytes",
      "bytesOf(::mlir::cast<::mlir::MemRefType>(getOutputs()[0].getType()))">];
}

def Exec_ShardOfOp : Exec_RuntimeOp<"shard_of", "shardOf",
    [Buf<"in", "E", "*">], [Buf<"out", "E", "*">],
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "This rank's shard of a buffer that every rank has";
  let prose = [{
    The output is shard c of dimension 0, padded with zeros, where c is this rank's coordinate along the axes.

    Example: `exec.shard_of on compute (%x : memref<7x8xf32>) outs(%y : memref<2x8xf32>) over @mesh["dp_shard"]`

    Constraints: 1. – 5. as of every operation of the runtime; 6. the mesh has the axes, as for exec.collective;
    7. the output has the input's type, except that dimension 0 is ceil(size / parts).
  }];
  let params = (ins FlatSymbolRefAttr:$mesh, TypedArrayAttrBase<Fsdp_AxisRefAttr, "mesh axes">:$axes);
  let formatOfParams = "`over` $mesh `` custom<Axes>($axes)";
  let callArguments = [Exec_Argument<"int", "group", "call.group(*this, getMeshAttr(), getAxes());">,
      Exec_Number<"int64_t", "bytes", "bytesOf(::mlir::cast<::mlir::MemRefType>(getInputs()[0].getType()))">,
      Exec_Number<"int64_t", "partBytes", "bytesOf(::mlir::cast<::mlir::MemRefType>(getOutputs()[0].getType()))">];
}

def Exec_RowsOfShardOp : Exec_RuntimeOp<"rows_of_shard", "rowsOfShard",
    [Buf<"ids", "i32", "count...">], [Buf<"out", "i32", "count...">],
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Where in this rank's shard of a table the rows are that numbers name";
  let prose = [{
    See fsdp.rows_of_shard.

    Example:
    ```mlir
    exec.rows_of_shard on compute (%ids : memref<8x4xi32>) outs(%rows : memref<8x4xi32>) over @mesh["dp_shard"] of 15
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. the mesh has the axes, as for exec.collective;
    7. the table has at least one row; 8. with `by_rank` the ranks divide the numbers.
  }];
  let params = (ins FlatSymbolRefAttr:$mesh, TypedArrayAttrBase<Fsdp_AxisRefAttr, "mesh axes">:$axes,
      I64Attr:$classes, UnitAttr:$by_rank);
  let formatOfParams = "`over` $mesh `` custom<Axes>($axes) `of` $classes";
  let callArguments = [Exec_Argument<"int", "group", "call.group(*this, getMeshAttr(), getAxes());">,
      Exec_Size<"count">, Exec_Number<"int64_t", "classes", "getClasses()">, Exec_Bool<"byRank", "getByRank()">];
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

def Exec_CollectiveOp : Exec_RuntimeOp<"collective", "collective",
    [BufList<"in", "", "*">], [BufList<"out", "", "*">],
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "One collective on a bucket of tensors";
  let prose = [{
    Input i belongs to output i. The fsdp dialect says what each kind does. `reduce` applies to reductions. The
    output buffer of a gather has room for the padded tensor: ranks x shard. A reduction has one workspace per
    input, for the pieces of the other ranks in the wire type, which is the type of the input. If the target
    exchanges fewer bytes at once, the workspace is that small (exec-verify knows the size).

    With `fast` the library computes the sum in an order that it chooses, so the bits depend on the library, the
    machine and the message. Its workspaces are empty. Only the CUDA target has such a library.

    With `node_ranks` the sum is made in two levels. So many ranks of the group share each node: they exchange
    pieces in the wire type and add them up, one partial sum in f32 for each node's rank at their place. Then the
    ranks at one place of all nodes exchange partial sums and add these. The order of additions is that of one
    level, and so are the bits. Workspaces also hold the partial sums. An all_reduce sends its results in the
    same way back.

    With a token result the op is in flight until exec.await, or, if nothing awaits it, until a later op of its
    stream is awaited. Without a token it is complete for later ops on its stream.

    Example:
    ```mlir
    %t = exec.collective all_gather on gather (%s : memref<4x8xf32>) outs(%w : memref<16x8xf32>)
        over @mesh["dp_shard"] {serves = #fsdp.origin<all "fwd layers.0">} -> !exec.token
    ```

    An all_reduce may have one buffer as input and output i.

    Constraints: 1. the mesh has the axes, which do not overlap, and at most 8 of them have more than one rank;
    2. as many outputs as inputs, at least one; 3. a reduction has one workspace of i8 per input, a gather none;
    4. an output has the input's shape, except that dimension 0 is ranks times as large (all_gather) or
    ceil(size / ranks) (reduce_scatter); 5. a gather keeps the type, and a reduction is of f32, of bf16 to f32
    (sum) or of i64 (sum); 6. tensors of one collective have the same types; 7. a `fast` collective is a sum
    that keeps the type; 8. there is no attribute `scale`, which older programs have; 9. there is no all_to_all,
    which the runtime lacks; 10. `node_ranks` is of a sum to f32 that is not `fast`, and what the mesh's
    `node_size` says of these axes: more than one rank, and not all.
  }];
  let params = (ins Fsdp_CollectiveKindAttr:$kind, FlatSymbolRefAttr:$mesh,
      TypedArrayAttrBase<Fsdp_AxisRefAttr, "mesh axes">:$axes,
      DefaultValuedAttr<Exec_ReduceKindAttr, "ReduceKind::Sum">:$reduce,
      OptionalAttr<Fsdp_ServesAttr>:$serves, UnitAttr:$fast, OptionalAttr<I64Attr>:$node_ranks);
  let results = (outs Optional<Exec_TokenType>:$token);
  let formatInFront = "`` $kind";
  let formatOfParams = "`over` $mesh `` custom<Axes>($axes)";
  let formatAtEnd = "(`->` type($token)^)?";
  let callArguments = [Exec_Index<"*this">];
  let workspaceBytes = "one per input";
  let workspaceIsList = true;
  let inPlaceInput = [{
    if (dist::isReduction(getKind()) && !dist::layoutOf(getKind()).splits && output < getOutputs().size())
      return output;
    return ::std::nullopt;
  }];
  let hasVerifier = 1;
  let declarations = [{
    /// The tensors: elements of a shard and of the whole, as the runtime
    /// counts them.
    ::llvm::SmallVector<::fsdp::rt::CollectiveItem> getItems();
    /// Without the group and what it serves, which the runtime's tables add.
    /// Refers to `items`.
    ::fsdp::rt::CollectiveDesc getDescriptor(::llvm::ArrayRef<::fsdp::rt::CollectiveItem> items);
  }];
}

//===----------------------------------------------------------------------===//
// Several tensors at once
//===----------------------------------------------------------------------===//

class Exec_Counts<string buffers> : Exec_Sizes<"counts", "countsOf(*this, \"" # buffers # "\")", "counts">;

def Exec_NarrowOp : Exec_RuntimeOp<"narrow", "narrow",
    [BufList<"in", "f32", "elements...">], [BufList<"out", "bf16", "elements...">]> {
  let summary = "Rounds several tensors from f32 to bf16";
  let prose = [{
    exec-batch-casts merges consecutive casts into it, such as those of the shards of a bucket.

    Example:
    ```mlir
    exec.narrow on compute (%a, %b : memref<4x8xf32>, memref<8xf32>)
        outs(%c, %d : memref<4x8xbf16>, memref<8xbf16>)
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let callArguments = [Exec_Counts<"in">];
}

defvar accumulateSums = BufList<"sums", "f32", "elements...">;

def Exec_AccumulateOp : Exec_RuntimeOp<"accumulate", "accumulate",
    [accumulateSums, BufList<"values", "float", "elements...">], [Updated<accumulateSums>]> {
  let summary = "Adds several tensors to sums in f32, in place";
  let prose = [{
    See nn.accumulate, of which exec-lower merges those that follow each other. The sums are both inputs and outputs.

    Example:
    ```mlir
    exec.accumulate on compute (%s, %t, %a, %b : memref<4x8xf32>, memref<8xf32>, memref<4x8xbf16>, memref<8xf32>)
        outs(%s, %t : memref<4x8xf32>, memref<8xf32>)
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let callArguments = [Exec_Counts<"sums">, Exec_Types<"types", "values">];
}

//===----------------------------------------------------------------------===//
// Optimizer
//===----------------------------------------------------------------------===//

def Exec_AbsMaxOp : Exec_RuntimeOp<"abs_max", "absMax",
    [BufList<"in", "float", "elements...">], [Buf<"out", "f32", "">]> {
  let summary = "The largest absolute value in several tensors";
  let prose = [{
    Example: `exec.abs_max on compute (%a, %b : memref<4x8xf32>, memref<8xbf16>) outs(%m : memref<f32>)`

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.abs_max";
  let callArguments = [Exec_Counts<"in">, Exec_Types<"types", "in">];
}

def Exec_SumSquaresOp : Exec_RuntimeOp<"sum_squares", "sumSquares",
    [Buf<"max", "f32", "">, BufList<"in", "float", "elements...">], [Buf<"out", "i64", "2">]> {
  let summary = "Exact sum of squares at a power-of-two scale, as two digits";
  let prose = [{
    See nn.sum_squares.

    Example: `exec.sum_squares on compute (%m, %a : memref<f32>, memref<4x8xf32>) outs(%s : memref<2xi64>)`

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.sum_squares";
  let callArguments = [Exec_Counts<"in">, Exec_Types<"types", "in">];
}

def Exec_ClipCoefficientOp : Exec_RuntimeOp<"clip_coefficient", "clipCoefficient",
    [Buf<"max", "f32", "">, Buf<"sum", "i64", "digits...">],
    [Buf<"norm", "f32", "">, Buf<"coefficient", "f32", "">]> {
  let summary = "The norm of all gradients, and the factor that clips them";
  let prose = [{
    See nn.clip_coefficient.

    Example:
    ```mlir
    exec.clip_coefficient on compute (%m, %s : memref<f32>, memref<2xi64>) outs(%n, %c : memref<f32>, memref<f32>)
        {max_norm = 1.0 : f64}
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. `sum` holds
    pairs of digits.
  }];
  let lowersFrom = "nn.clip_coefficient";
  let params = (ins F64Attr:$max_norm);
  let callArguments = [Exec_Real<"maxNorm", "getMaxNorm()">,
      Exec_Number<"int64_t", "sums", "sizeOf(*this, \"digits\") / 2">];
  let hasVerifier = 1;
}

defvar adamwParameters = BufList<"parameters", "f32", "elements...">;
defvar adamwFirstMoments = BufList<"firstMoments", "f32", "elements...">;
defvar adamwSecondMoments = BufList<"secondMoments", "f32", "elements...">;

def Exec_AdamWOp : Exec_RuntimeOp<"adamw", "adamw",
    [adamwParameters, adamwFirstMoments, adamwSecondMoments, BufList<"gradients", "float", "elements...">,
     Buf<"lr", "f32", "">, Buf<"step", "i32", "">, Buf<"coefficient", "f32", "">],
    [Updated<adamwParameters>, Updated<adamwFirstMoments>, Updated<adamwSecondMoments>]> {
  let summary = "One AdamW step over several parameters, in place";
  let prose = [{
    See nn.adamw. Parameters and moments are read and written: they are both inputs and outputs.

    Example:
    ```mlir
    exec.adamw on compute (%p, %m, %v, %g, %lr, %t, %c : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<f32>, memref<i32>, memref<f32>)
        outs(%p, %m, %v : memref<4xf32>, memref<4xf32>, memref<4xf32>)
        {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let params = (ins F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let callArguments = [Exec_Argument<"const AdamWDesc &", "d",
      "call.reals({getBeta1(), getBeta2(), getEps(), getWeightDecay()});">, Exec_Counts<"parameters">,
      Exec_Types<"types", "gradients">];
}

defvar adamwCopies = BufList<"copies", "bf16", "elements...">;

def Exec_AdamWCopyOp : Exec_RuntimeOp<"adamw_copy", "adamwCopy",
    [adamwParameters, adamwFirstMoments, adamwSecondMoments, adamwCopies,
     BufList<"gradients", "float", "elements...">,
     Buf<"lr", "f32", "">, Buf<"step", "i32", "">, Buf<"coefficient", "f32", "">],
    [Updated<adamwParameters>, Updated<adamwFirstMoments>, Updated<adamwSecondMoments>, Updated<adamwCopies>]> {
  let summary = "The same, which writes the parameters in bf16 too";
  let prose = [{
    See nn.adamw. A step whose coefficient is NaN leaves the copies as they are, so they count as updated.

    Example:
    ```mlir
    exec.adamw_copy on compute (%p, %m, %v, %n, %g, %lr, %t, %c : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>, memref<4xbf16>, memref<f32>, memref<i32>, memref<f32>)
        outs(%p, %m, %v, %n : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xbf16>)
        {beta1 = 0.9 : f64, beta2 = 0.95 : f64, eps = 1.0e-8 : f64, weight_decay = 0.1 : f64}
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let params = (ins F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let callArguments = [Exec_Argument<"const AdamWDesc &", "d",
      "call.reals({getBeta1(), getBeta2(), getEps(), getWeightDecay()});">, Exec_Counts<"parameters">,
      Exec_Types<"types", "gradients">];
}

#endif // FSDP_EXEC_RUNTIME_OPS
