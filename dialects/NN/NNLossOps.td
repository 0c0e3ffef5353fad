//===- NNLossOps.td - Losses and their gradients --------------*- tablegen -*-===//
#ifndef FSDP_NN_LOSS_OPS
#define FSDP_NN_LOSS_OPS

include "dialects/NN/NNBase.td"

def NN_CrossEntropyOp : NN_PureOp<"cross_entropy", [NN_Differentiable,
    AllTypesMatch<["rows", "lse"]>]> {
  let summary = "Negative log-likelihood of each row's target";
  let prose = [{
    Softmax and logarithm are in f32 (f64 for f64). `rows` has one value per row, 0 where the target is
    `ignore_index`. `lse` is the log-sum-exp per row and is kept for the backward pass. A mean is the sum of
    `rows` divided by the count of labels; each of the three ops may be split over ranks by itself.

    Example:
    ```mlir
    %rows, %lse = nn.cross_entropy %logits, %targets ignore_index -100
        : tensor<2x256x2048xbf16>, tensor<2x256xi32>, tensor<2x256xf32>
    %sum = nn.sum %rows [0, 1] : tensor<2x256xf32> to tensor<f32>
    %count = nn.count_labels %targets ignore_index -100 : tensor<2x256xi32> -> tensor<i64>
    %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
    ```

    Constraints: 1. logits have shape [rows …, classes], targets [rows …]; 2. `rows` and `lse` have shape
    [rows …] and are f32 (f64 for f64 logits). A target outside the classes that is not `ignore_index` is a
    run-time error.
  }];
  let sharding = NN_Rule<"... c!, ... -> ..., ...">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<4, "logits">;
  let precision = NN_DeclaredPrecision;
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$targets, I64Attr:$ignore_index);
  let results = (outs NN_FloatTensor:$rows, NN_FloatTensor:$lse);
  let assemblyFormat = "$logits `,` $targets `ignore_index` $ignore_index attr-dict `:` type($logits) `,` type($targets) `,` type($rows)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$logits, "::mlir::Value":$targets,
                                 CArg<"int64_t", "-100">:$ignoreIndex)>];
}

def NN_CrossEntropyGradOp : NN_PureOp<"cross_entropy_grad", [AllTypesMatch<["logits", "result"]>,
    AllTypesMatch<["lse", "cotangent"]>]> {
  let summary = "Reverse rule of nn.cross_entropy";
  let prose = [{
    `(softmax - onehot) cotangent[row]`, 0 in rows whose target is `ignore_index`. Rounds once to the type of
    the logits.

    Example:
    ```mlir
    %d = nn.cross_entropy_grad %logits, %targets, %lse, %drows ignore_index -100
        : tensor<2x256x2048xbf16>, tensor<2x256xi32>, tensor<2x256xf32>
    ```

    Constraints: as nn.cross_entropy; the cotangent has the type of `rows`.
  }];
  let sharding = NN_Rule<"... c!, ..., ..., ... -> ... c!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<4, "logits">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$logits, NN_IntTensor:$targets,
                       NN_FloatTensor:$lse, NN_FloatTensor:$cotangent, I64Attr:$ignore_index);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$logits `,` $targets `,` $lse `,` $cotangent `ignore_index` $ignore_index attr-dict `:` type($logits) `,` type($targets) `,` type($lse)";
  let hasVerifier = 1;
}

def NN_CountLabelsOp : NN_PureOp<"count_labels"> {
  let summary = "How many targets are not `ignore_index`";
  let prose = [{
    The counts are exact integers, so parts of the targets may be counted in any order and added. A result of
    rank 1 with n elements has one count for each of n equal parts of the targets along their first dimension.

    Examples:
    ```mlir
    %count = nn.count_labels %targets ignore_index -100 : tensor<2x256xi32> -> tensor<i64>
    %counts = nn.count_labels %labels ignore_index -100 : tensor<6x256xi32> -> tensor<3xi64>
    ```

    Constraints: 1. the result has rank 0 or 1; 2. its size divides the first dimension of the targets.
  }];
  let sharding = NN_OwnRule<"every dimension, the first one along the parts that are counted">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<1, "targets">;
  let precision = NN_DeclaredPrecision;
  let arguments = (ins NN_IntTensor:$targets, I64Attr:$ignore_index);
  let results = (outs NN_TensorOf<[I64]>:$result);
  let assemblyFormat = "$targets `ignore_index` $ignore_index attr-dict `:` type($targets) `->` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$targets,
                                 CArg<"int64_t", "-100">:$ignoreIndex)>];
}

// Partials are not passed on: the loss is divided once.
def NN_DivideByCountOp : NN_PureOp<"divide_by_count", [AllTypesMatch<["sum", "result"]>, NN_Kernel, NN_Differentiable]> {
  let summary = "sum / count, 0 where the count is 0";
  let prose = [{
    Works element by element: rounds the count to f32 (f64 for f64), then divides the sum by it. It is linear
    in the sum, so the reverse rule is the same division of the cotangent. The count has no gradient. Partials
    are reduced before they are divided.

    Example: `%loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>`

    Constraints: 1. the sum is f32 or f64; 2. the count is i64 and has the sum's shape.
  }];
  let sharding = NN_Rule<"..., ... -> ...">;
  let linear = NN_LinearIn<"sum">;
  let flops = NN_Flops<1, "result">;
  let space = NN_RowsOf<"result">;
  let precision = NN_WidePrecision;
  let arguments = (ins NN_ScalarTensor:$sum, NN_TensorOf<[I64]>:$count);
  let results = (outs NN_ScalarTensor:$result);
  let assemblyFormat = "$sum `,` $count attr-dict `:` type($sum) `,` type($count)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$sum, "::mlir::Value":$count)>];
}

def NN_MSELossOp : NN_PureOp<"mse_loss", [AllTypesMatch<["prediction", "target"]>, NN_Kernel, NN_Differentiable, NN_DividesByCount]> {
  let summary = "Sum of (prediction - target)^2 over all elements, divided by `count`";
  let prose = [{
    This is the mean if `count` is the number of elements. On a shard, `count` is the number of elements of the
    whole tensor.

    Example: `%l = nn.mse_loss %p, %t count 32 : tensor<4x8xf32>, tensor<f32>`

    Constraints: 1. equal operand types; 2. the loss has rank 0 and is f32
    (f64 for f64 operands); 3. `count` is positive.
  }];
  let sharding = NN_Rule<"..., ... -> ">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<3, "prediction">;
  let space = NN_OneRowOf<"prediction">;
  let precision = NN_WidePrecision;
  let arguments = (ins NN_FloatTensor:$prediction, NN_FloatTensor:$target, I64Attr:$count);
  let results = (outs NN_ScalarTensor:$loss);
  let assemblyFormat = "$prediction `,` $target `count` $count attr-dict `:` type($prediction) `,` type($loss)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$prediction, "::mlir::Value":$target)>];
}

def NN_MSELossGradOp : NN_PureOp<"mse_loss_grad", [AllTypesMatch<["prediction", "target", "result"]>, NN_Kernel, NN_DividesByCount]> {
  let summary = "Gradient of nn.mse_loss with respect to the prediction";
  let prose = [{
    `2 (prediction - target) dloss / count`. The target's gradient is its
    negation.

    Example: `%dp = nn.mse_loss_grad %p, %t, %dl count 32 : tensor<4x8xf32>, tensor<f32>`

    Constraints: as nn.mse_loss.
  }];
  let sharding = NN_Rule<"..., ..., -> ...">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<2, "prediction">;
  let space = NN_RowsOf<"result">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$prediction, NN_FloatTensor:$target,
                       NN_ScalarTensor:$cotangent, I64Attr:$count);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$prediction `,` $target `,` $cotangent `count` $count attr-dict `:` type($prediction) `,` type($cotangent)";
  let hasVerifier = 1;
}

#endif // FSDP_NN_LOSS_OPS
