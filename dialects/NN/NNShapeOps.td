//===- NNShapeOps.td - Shapes, moves and reductions -----------*- tablegen -*-===//
#ifndef FSDP_NN_SHAPE_OPS
#define FSDP_NN_SHAPE_OPS

include "dialects/NN/NNBase.td"

def NN_ReshapeOp : NN_PureOp<"reshape", [NN_Differentiable,
    NN_MovesElements, NN_AliasesOperands], NN_OwnBytes> {
  let summary = "The same elements in row-major order under another shape";
  let prose = [{
    Free: an alias in exec.

    Example: `%b = nn.reshape %a : tensor<4x8xf32> to tensor<32xf32>`

    Constraints: 1. equal element types; 2. equal element counts.
  }];
  let sharding = NN_OwnRule<"along the common factors of the dimensions of both shapes, also of partials">;
  let linear = NN_LinearInEach;
  let flops = NN_NoFlops;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_AnyTensor:$input);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_TransposeOp : NN_PureOp<"transpose", [NN_Differentiable, NN_MovesElements]> {
  let summary = "Permutes the dimensions";
  let prose = [{
    Result dimension `i` is operand dimension `permutation[i]`.

    Example: `%b = nn.transpose %a [1, 0] : tensor<4x8xf32> to tensor<8x4xf32>`

    Constraints: 1. `permutation` is a permutation of the dimensions; 2. the
    result type is the operand type permuted.
  }];
  let sharding = NN_OwnRule<"every dimension, also of partials">;
  let linear = NN_LinearInEach;
  let flops = NN_NoFlops;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_AnyTensor:$input, DenseI64ArrayAttr:$permutation);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$input $permutation attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$permutation)>];
}

def NN_SliceOp : NN_PureOp<"slice", [NN_Differentiable, NN_MovesElements,
                                     NN_AliasesOperands], NN_OwnBytes> {
  let summary = "A box of the operand";
  let prose = [{
    The elements of the operand from `offsets` on, in the shape of the result, with step 1. Free where they lie one
    after another: an alias in exec.

    Example: `%b = nn.slice %a [0, 4] : tensor<4x8xf32> to tensor<4x2xf32>`

    Constraints: 1. one offset per dimension; 2. the box lies inside the
    operand; 3. equal element types and ranks.
  }];
  let sharding = NN_OwnRule<"dimensions that the box spans whole, also of partials">;
  let linear = NN_LinearInEach;
  let flops = NN_NoFlops;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_AnyTensor:$input, DenseI64ArrayAttr:$offsets);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$input $offsets attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_PadOp : NN_PureOp<"pad", [NN_Differentiable, NN_MovesElements]> {
  let summary = "The operand as a box in zeros (reverse rule of nn.slice)";
  let prose = [{
    Example: `%b = nn.pad %a [0, 4] : tensor<4x2xf32> to tensor<4x8xf32>`

    Constraints: as nn.slice with operand and result exchanged.
  }];
  let sharding = NN_OwnRule<"dimensions that the box spans whole, also of partials">;
  let linear = NN_LinearInEach;
  let flops = NN_NoFlops;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_AnyTensor:$input, DenseI64ArrayAttr:$offsets);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$input $offsets attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_ConcatOp : NN_PureOp<"concat", [NN_Differentiable, NN_MovesElements], NN_OwnBytes> {
  let summary = "Joins tensors along one dimension";
  let prose = [{
    Free where parts lie one after another and their ops can as well produce them there, or where they are whole
    parameters or buffers and only matrix products read the result (exec-lower).

    Example: `%c = nn.concat %a, %b dim 1 : tensor<4x2xf32>, tensor<4x6xf32> to tensor<4x8xf32>`

    Constraints: 1. at least one operand; 2. `dim` exists; 3. all other sizes
    are equal and the joined sizes add up.
  }];
  let sharding = NN_OwnRule<"all dimensions but `dim`, also of partials">;
  let linear = NN_LinearTogether;
  let flops = NN_NoFlops;
  let precision = NN_OperandsPrecision;
  let arguments = (ins Variadic<NN_AnyTensor>:$inputs, I64Attr:$dim);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$inputs `dim` $dim attr-dict `:` type($inputs) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

def NN_BroadcastOp : NN_PureOp<"broadcast", [NN_Kernel, NN_Differentiable,
                                             NN_MovesElements]> {
  let summary = "Repeats a tensor along new or unit dimensions";
  let prose = [{
    Dimension i of the operand is dimension `dims[i]` of the result. Its size is the result's size or 1.

    Example: `%b = nn.broadcast %a [1] : tensor<8xf32> to tensor<4x8xf32>`

    Constraints: 1. one entry of `dims` per operand dimension, increasing,
    inside the result's rank; 2. sizes equal or 1; 3. equal element types.
  }];
  let sharding = NN_OwnRule<"every dimension of the result">;
  let linear = NN_LinearInEach;
  let flops = NN_NoFlops;
  let space = NN_OwnSpace<"rows of `result`, if new dimensions lead or trail">;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_FloatTensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input $dims attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

class NN_ReductionOp<string mnemonic, string sum, string parts, NN_LinearityFact theLinearity,
    NN_PrecisionFact thePrecision, string count = "", string note = "", list<Trait> traits = []>
    : NN_PureOp<mnemonic, !listconcat(traits, [NN_Kernel, NN_Differentiable])> {
  let summary = sum;
  let prose = "Combines elements over `dims` in f32, in a fixed order that does "
    "not depend on threads or vector width, and rounds once. Reduced "
    "dimensions are dropped.\n\nExample: `%s = nn." # mnemonic # " %x [1]" # count #
    " : tensor<4x8xf32> to tensor<4xf32>`\n\nConstraints: 1. `dims` is "
    "increasing, not empty and inside the rank; 2. the result's shape is the "
    "operand's without `dims`; 3. equal element types" # note # ".\n\n"
    "Lowering takes leading, trailing or all dimensions; for others, transpose first.";
  let sharding = NN_OwnRule<"every dimension; along `dims` the result is a partial " # parts>;
  let linear = theLinearity;
  let flops = NN_Flops<1, "input">;
  let space = NN_ReductionSpace;
  let precision = thePrecision;
  let arguments = (ins NN_FloatTensor:$input, DenseI64ArrayAttr:$dims);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input $dims attr-dict `:` type($input) `to` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::llvm::ArrayRef<int64_t>":$dims)>];
}

def NN_SumOp : NN_ReductionOp<"sum", "Sum over dimensions", "sum", NN_LinearInEach, NN_WidePrecision>;
def NN_MaxOp : NN_ReductionOp<"max", "Maximum over dimensions; equal maxima share the gradient",
    "maximum", NN_NotLinear, NN_OperandsPrecision>;

def NN_MeanOp : NN_ReductionOp<"mean", "Sum over dimensions, divided by `count`", "sum", NN_LinearInEach,
    NN_WidePrecision, " count 8",
    "; 4. `count` is positive.\n\n`count` is the number of elements that are "
    "combined, on a shard that of the whole tensor. A mean of rows "
    "divides their sum; a mean of columns divides each element first", [NN_DividesByCount]> {
  let arguments = (ins NN_FloatTensor:$input, DenseI64ArrayAttr:$dims, I64Attr:$count);
  let assemblyFormat = "$input $dims `count` $count attr-dict `:` type($input) `to` type($result)";
}

def NN_MaxGradOp : NN_PureOp<"max_grad", [NN_Kernel,
    AllTypesMatch<["input", "result"]>, AllTypesMatch<["max", "cotangent"]>]> {
  let summary = "Reverse rule of nn.max: equal maxima share the cotangent";
  let prose = [{
    Example: `%dx = nn.max_grad %x, %max, %dy [1] : tensor<4x8xf32>, tensor<4xf32>`

    Constraints: `max` and `cotangent` have the type nn.max would give.
  }];
  let sharding = NN_OwnRule<"all dimensions but `dims`">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<3, "input">;
  let space = NN_OwnSpace<"rows of `input`, if `dims` trail">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$max,
                       NN_FloatTensor:$cotangent, DenseI64ArrayAttr:$dims);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $max `,` $cotangent $dims attr-dict `:` type($input) `,` type($max)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$max,
                                "::mlir::Value":$cotangent, "::llvm::ArrayRef<int64_t>":$dims)>];
}

#endif // FSDP_NN_SHAPE_OPS
