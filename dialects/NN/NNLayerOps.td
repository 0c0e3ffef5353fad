//===- NNLayerOps.td - Matmuls, norms, attention, embedding ---*- tablegen -*-===//
#ifndef FSDP_NN_LAYER_OPS
#define FSDP_NN_LAYER_OPS

include "dialects/NN/NNBase.td"

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

// A bias is added once, so not to partials.
def NN_LinearOp : NN_PureOp<"linear", [NN_Differentiable,
                                       NN_MatrixProduct, NN_ReadByLibrary]> {
  let summary = "x W^T + b, with W stored [out, in]";
  let prose = [{
    Products are accumulated in f32 (f64 for f64) and rounded once. The bias is added before that rounding.

    Example:
    ```mlir
    %y = nn.linear %x, %w : tensor<2x4x8xf32>, tensor<16x8xf32> -> tensor<2x4x16xf32>
    %z = nn.linear %x, %w bias %b : tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32> -> tensor<2x4x16xf32>
    ```

    Constraints: 1. the weight has rank 2; 2. the last dimension of x is the
    weight's dimension 1; 3. the result has x's shape with the last dimension
    replaced by the weight's dimension 0; 4. the bias, if present, has shape
    [out]; 5. equal element types.
  }];
  let sharding = NN_RuleIf<"getBias()", "with a bias",
      "... i!, o i!, o -> ... o",
      "... i, o i -> ... o">;
  let linear = NN_LinearUnless<"bias">;
  let flops = NN_OwnFlops<"2 x elements of `result` x columns of `weight`, and the bias">;
  let precision = NN_MatrixPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight,
                       Optional<NN_FloatTensor>:$bias);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $input `,` $weight (`bias` $bias^)? attr-dict `:` type($input) `,`
    type($weight) (`,` type($bias)^)? `->` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$weight,
                                 CArg<"::mlir::Value", "{}">:$bias)>];
}

def NN_LinearInputGradOp : NN_PureOp<"linear_input_grad", [NN_MatrixProduct, NN_ReadByLibrary]> {
  let summary = "Gradient of nn.linear with respect to its input: dy W";
  let prose = [{
    Accumulated in f32 (f64 for f64), rounded once.

    Example: `%dx = nn.linear_input_grad %dy, %w : tensor<2x4x16xf32>, tensor<16x8xf32> -> tensor<2x4x8xf32>`

    Constraints: 1. the weight has rank 2; 2. the last dimension of dy is the
    weight's dimension 0; 3. the result has dy's shape with the last dimension
    replaced by the weight's dimension 1; 4. equal element types.
  }];
  let sharding = NN_Rule<"... o, o i -> ... i">;
  let linear = NN_LinearInEach;
  let flops = NN_OwnFlops<"2 x elements of `result` x rows of `weight`">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$cotangent, NN_FloatTensor:$weight);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $cotangent `,` $weight attr-dict `:` type($cotangent) `,` type($weight) `->` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$cotangent, "::mlir::Value":$weight)>];
}

// `sum` is added once, so not on every rank that has some of the rows.
def NN_LinearWeightGradOp : NN_PureOp<"linear_weight_grad", [NN_MatrixProduct, NN_ReadByLibrary]> {
  let summary = "Gradient of nn.linear with respect to its weight: dy^T x (+ sum)";
  let prose = [{
    Sums over all dimensions but the last, so a batch and a sequence need not be flattened into one dimension.
    Accumulated in f32 (f64 for f64), rounded once. (The bias gradient is nn.sum.)

    `sum` is the sum over earlier rows; the products are added to it. It stays f32 until it is complete, so
    rows in chunks lose no digit to bf16. exec updates it in place.

    Example:
    ```mlir
    %dw = nn.linear_weight_grad %dy, %x : tensor<2x4x16xf32>, tensor<2x4x8xf32> -> tensor<16x8xf32>
    %s0 = nn.linear_weight_grad %dy0, %x0 : tensor<4x16xbf16>, tensor<4x8xbf16> -> tensor<16x8xf32>
    %s1 = nn.linear_weight_grad %dy1, %x1 sum %s0 : tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<16x8xf32> -> tensor<16x8xf32>
    ```

    Constraints: 1. dy and x have equal shapes but for the last dimension; 2. the result has shape
    [last dimension of dy, last dimension of x]; 3. dy and x have equal element types, and the result has the
    same type or, for bf16, f32; 4. the sum, if present, has the result's type, which is not bf16.
  }];
  let sharding = NN_RuleIf<"getSum()", "with a sum",
      "...! o, ...! i, o i -> o i",
      "... o, ... i -> o i">;
  let linear = NN_LinearUnless<"sum">;
  let flops = NN_OwnFlops<"2 x elements of `input` x rows of `result`">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$cotangent, NN_FloatTensor:$input,
                       Optional<NN_FloatTensor>:$sum);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $cotangent `,` $input (`sum` $sum^)? attr-dict `:` type($cotangent) `,`
    type($input) (`,` type($sum)^)? `->` type($result)
  }];
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$cotangent, "::mlir::Value":$input)>];
}

def NN_MatmulOp : NN_PureOp<"matmul", [NN_Differentiable,
                                       NN_MatrixProduct, NN_ReadByLibrary]> {
  let summary = "Matrix product of the last two dimensions, batched over the others";
  let prose = [{
    `transpose_lhs` and `transpose_rhs` (units) read the operand transposed in
    its last two dimensions. Accumulated in f32 (f64 for f64), rounded once.

    Example: `%c = nn.matmul %a, %b {transpose_lhs} : tensor<8x4xf32>, tensor<8x16xf32> -> tensor<4x16xf32>`

    Constraints: 1. equal ranks, at least 2; 2. equal leading dimensions;
    3. contracted sizes agree; 4. the result's shape follows; 5. equal element
    types.
  }];
  let sharding = NN_OwnRule<"`... m k, ... k n -> ... m n`, the last two exchanged where an operand is read transposed">;
  let linear = NN_LinearInEach;
  let flops = NN_OwnFlops<"2 x elements of `result` x the contracted dimension">;
  let precision = NN_MatrixPrecision;
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs,
                       UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs) `->` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs,
                                 CArg<"bool", "false">:$transposeLhs,
                                 CArg<"bool", "false">:$transposeRhs)>];
}

//===----------------------------------------------------------------------===//
// Normalisation, over the last dimension
//===----------------------------------------------------------------------===//

def NN_RMSNormOp : NN_PureOp<"rms_norm", [AllTypesMatch<["input", "result"]>, NN_Kernel, NN_Differentiable]> {
  let summary = "x / sqrt(mean(x^2) + eps) * w (Zhang and Sennrich, 2019)";
  let prose = [{
    `rstd` is `1 / sqrt(mean(x^2) + eps)` per row in f32 (f64 for f64). It is kept for the backward pass. With
    `plus_one` (a unit) 1 + w takes the place of w. Sum and products are f32 and rounded once.

    Example:
    ```mlir
    %y, %rstd = nn.rms_norm %x, %w eps 1.0e-05 : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
    %z, %rstd2 = nn.rms_norm %x, %w eps 1.0e-05 {plus_one} : tensor<2x4x8xf32>, tensor<8xf32>, tensor<2x4xf32>
    ```

    Constraints: 1. the weight has shape [last dimension]; 2. `rstd` has x's
    shape without the last dimension; 3. eps >= 0.
  }];
  let sharding = NN_Rule<"... h!, h! -> ... h!, ...">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<4, "input">;
  let space = NN_RowsOf<"input">;
  let precision = NN_InputPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight, F64Attr:$eps,
                       UnitAttr:$plus_one);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$rstd);
  let assemblyFormat = "$input `,` $weight `eps` $eps attr-dict `:` type($input) `,` type($weight) `,` type($rstd)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$weight, "double":$eps,
                                 CArg<"bool", "false">:$plusOne)>];
}

def NN_RMSNormInputGradOp : NN_PureOp<"rms_norm_input_grad", [AllTypesMatch<["input", "cotangent", "result"]>, NN_Kernel]> {
  let summary = "Gradient of nn.rms_norm with respect to its input";
  let prose = [{
    `rstd (w dy - x rstd^2 mean(w dy x))`, with `plus_one` 1 + w in place of w.

    Example: `%dx = nn.rms_norm_input_grad %x, %w, %rstd, %dy : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>`
  }];
  let sharding = NN_Rule<"... h!, h!, ..., ... h! -> ... h!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<7, "input">;
  let space = NN_RowsOf<"input">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight,
                       NN_FloatTensor:$rstd, NN_FloatTensor:$cotangent,
                       UnitAttr:$plus_one);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $rstd `,` $cotangent attr-dict `:` type($input) `,` type($weight) `,` type($rstd)";
  let hasVerifier = 1;
}

def NN_RMSNormWeightGradOp : NN_PureOp<"rms_norm_weight_grad", [AllTypesMatch<["input", "cotangent"]>, NN_Kernel]> {
  let summary = "Gradient of nn.rms_norm with respect to its weight";
  let prose = [{
    `sum over rows of dy x rstd`, also of a norm with `plus_one`.

    Example: `%dw = nn.rms_norm_weight_grad %x, %rstd, %dy : tensor<4x8xf32>, tensor<4xf32> to tensor<8xf32>`
  }];
  let sharding = NN_Rule<"... h!, ..., ... h! -> h!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<3, "input">;
  let space = NN_ColumnsOf<"input">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$rstd,
                       NN_FloatTensor:$cotangent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $rstd `,` $cotangent attr-dict `:` type($input) `,` type($rstd) `to` type($result)";
  let hasVerifier = 1;
}

def NN_LayerNormOp : NN_PureOp<"layer_norm", [AllTypesMatch<["input", "result"]>, AllTypesMatch<["weight", "bias"]>, AllTypesMatch<["mean", "rstd"]>, NN_Kernel, NN_Differentiable]> {
  let summary = "(x - mean) / sqrt(var + eps) * w + b (Ba et al., 2016)";
  let prose = [{
    `mean` and `rstd` per row, in f32 (f64 for f64), are kept for the backward pass. The variance is the biased
    one, over centred values.

    Example: `%y, %mean, %rstd = nn.layer_norm %x, %w, %b eps 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>`

    Constraints: as nn.rms_norm; the bias has the weight's type.
  }];
  let sharding = NN_Rule<"... h!, h!, h! -> ... h!, ..., ...">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<8, "input">;
  let space = NN_RowsOf<"input">;
  let precision = NN_InputPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight,
                       NN_FloatTensor:$bias, F64Attr:$eps);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$mean, NN_FloatTensor:$rstd);
  let assemblyFormat = "$input `,` $weight `,` $bias `eps` $eps attr-dict `:` type($input) `,` type($weight) `,` type($mean)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$weight,
                                 "::mlir::Value":$bias, "double":$eps)>];
}

def NN_LayerNormInputGradOp : NN_PureOp<"layer_norm_input_grad", [AllTypesMatch<["input", "cotangent", "result"]>, AllTypesMatch<["mean", "rstd"]>, NN_Kernel]> {
  let summary = "Gradient of nn.layer_norm with respect to its input";
  let prose = [{
    With `n = (x - mean) rstd` and `g = w dy`:
    `rstd (g - mean(g) - n mean(g n))`.

    Example: `%dx = nn.layer_norm_input_grad %x, %w, %mean, %rstd, %dy : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>`
  }];
  let sharding = NN_Rule<"... h!, h!, ..., ..., ... h! -> ... h!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<10, "input">;
  let space = NN_RowsOf<"input">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$weight,
                       NN_FloatTensor:$mean, NN_FloatTensor:$rstd,
                       NN_FloatTensor:$cotangent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $weight `,` $mean `,` $rstd `,` $cotangent attr-dict `:` type($input) `,` type($weight) `,` type($mean)";
  let hasVerifier = 1;
}

def NN_LayerNormWeightGradOp : NN_PureOp<"layer_norm_weight_grad", [AllTypesMatch<["input", "cotangent"]>, AllTypesMatch<["mean", "rstd"]>, NN_Kernel]> {
  let summary = "Gradient of nn.layer_norm with respect to its weight";
  let prose = "`sum over rows of dy (x - mean) rstd`. (The bias gradient is nn.sum.)\n\n"
    "Example: `%dw = nn.layer_norm_weight_grad %x, %mean, %rstd, %dy : tensor<4x8xf32>, tensor<4xf32> to tensor<8xf32>`";
  let sharding = NN_Rule<"... h!, ..., ..., ... h! -> h!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<4, "input">;
  let space = NN_ColumnsOf<"input">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$mean,
                       NN_FloatTensor:$rstd, NN_FloatTensor:$cotangent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $mean `,` $rstd `,` $cotangent attr-dict `:` type($input) `,` type($mean) `to` type($result)";
  let hasVerifier = 1;
}

def NN_SoftmaxOp : NN_PureOp<"softmax", [SameOperandsAndResultType, NN_Kernel, NN_Differentiable]> {
  let summary = "Softmax over the last dimension, shifted by its maximum";
  let prose = "Example: `%p = nn.softmax %x : tensor<4x8xf32>`\n\nConstraints: 1. rank at least 1.";
  let sharding = NN_Rule<"... h! -> ... h!">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<5, "input">;
  let space = NN_RowsOf<"input">;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
  let hasVerifier = 1;
}

def NN_SoftmaxGradOp : NN_PureOp<"softmax_grad", [SameOperandsAndResultType, NN_Kernel]> {
  let summary = "Reverse rule of nn.softmax: p (dy - sum(p dy))";
  let prose = "Takes softmax's result.\n\nExample: `%dx = nn.softmax_grad %p, %dy : tensor<4x8xf32>`";
  let sharding = NN_Rule<"... h!, ... h! -> ... h!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<4, "result">;
  let space = NN_RowsOf<"result">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$probabilities, NN_FloatTensor:$cotangent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$probabilities `,` $cotangent attr-dict `:` type($result)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

// A longer table is read from its start, so a shard of the sequence would have
// to know where it begins.
def NN_RotaryOp : NN_PureOp<"rotary", [AllTypesMatch<["input", "result"]>, NN_Differentiable]> {
  let summary = "Rotary position embedding (Su et al., 2021)";
  let prose = [{
    Rotates pairs of each head by the angles in `table`: `(a cos - b sin, a sin + b cos)`. `adjacent` pairs
    elements (0,1), (2,3), … (Llama); `halves` pairs i with i + head_dim/2 (Hugging Face). `inverse` (unit)
    rotates back, which is the reverse rule. Computes in f32.

    Example: `%y = nn.rotary adjacent %x, %t : tensor<2x256x16x64xf32>, tensor<256x32x2xf32>`

    Constraints: 1. x has shape [batch, sequence, heads, head_dim], head_dim
    even; 2. the table is f32 (or f64) of shape [sequence or more, head_dim/2, 2].
  }];
  let sharding = NN_RuleIf<"shapeOf(getTable())[0] == shapeOf(getInput())[1]", "with a table as long as the sequence",
      "b s a d!, s p! c! -> b s a d!",
      "b s! a d!, t! p! c! -> b s! a d!">;
  let linear = NN_LinearIn<"input">;
  let flops = NN_Flops<3, "input">;
  let precision = NN_InputPrecision;
  let wideOperand = "table";
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$table,
                       NN_RotaryPairsAttr:$pairs, UnitAttr:$inverse);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$pairs $input `,` $table attr-dict `:` type($input) `,` type($table)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$input, "::mlir::Value":$table,
                                 "::fsdp::nn::RotaryPairs":$pairs,
                                 CArg<"bool", "false">:$inverse)>];
}

// The heads of one part lie behind those of another, so no rank has some of
// each.
def NN_SplitHeadsOp : NN_PureOp<"split_heads", [AllTypesMatch<["key", "value"]>]> {
  let summary = "Rotated query and key heads, and value heads, of one tensor";
  let prose = [{
    Takes apart what one product computes for attention (nn-wide-products). The heads of `input` are those of the
    queries, of the keys and of the values, in this order. Queries and keys are rotated as nn.rotary does it,
    values are copied.

    Example:
    ```mlir
    %q, %k, %v = nn.split_heads adjacent %x, %t
        : tensor<2x256x8x64xf32>, tensor<256x32x2xf32> -> tensor<2x256x4x64xf32>, tensor<2x256x2x64xf32>
    ```

    Constraints: 1. x has shape [batch, sequence, heads, head_dim], head_dim even; 2. the table is f32 (or f64) of
    shape [sequence or more, head_dim/2, 2]; 3. query, key and value have x's shape and type but for their heads,
    which add up to those of x.
  }];
  let sharding = NN_RuleIf<"shapeOf(getTable())[0] == shapeOf(getInput())[1]", "with a table as long as the sequence",
      "b s a! d!, s p! c! -> b s h! d!, b s k! d!, b s k! d!",
      "b s! a! d!, t! p! c! -> b s! h! d!, b s! k! d!, b s! k! d!">;
  let linear = NN_LinearIn<"input">;
  let flops = NN_Flops<3, "input">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$table, NN_RotaryPairsAttr:$pairs);
  let results = (outs NN_FloatTensor:$query, NN_FloatTensor:$key, NN_FloatTensor:$value);
  let assemblyFormat = [{
    $pairs $input `,` $table attr-dict `:` type($input) `,` type($table) `->` type($query) `,` type($key)
  }];
  let hasVerifier = 1;
}

def NN_JoinHeadsOp : NN_PureOp<"join_heads", [AllTypesMatch<["key", "value"]>]> {
  let summary = "Reverse rule of nn.split_heads";
  let prose = [{
    Rotates the gradients of queries and keys back and puts them and that of the values side by side.

    Example:
    ```mlir
    %dx = nn.join_heads adjacent %dq, %dk, %dv, %t
        : tensor<2x256x4x64xf32>, tensor<2x256x2x64xf32>, tensor<256x32x2xf32> -> tensor<2x256x8x64xf32>
    ```

    Constraints: 1. - 3. as of nn.split_heads, with x the result.
  }];
  let sharding = NN_RuleIf<"shapeOf(getTable())[0] == shapeOf(getQuery())[1]", "with a table as long as the sequence",
      "b s h! d!, b s k! d!, b s k! d!, s p! c! -> b s a! d!",
      "b s! h! d!, b s! k! d!, b s! k! d!, t! p! c! -> b s! a! d!">;
  let linear = NN_NotLinear;
  let flops = NN_Flops<3, "result">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key, NN_FloatTensor:$value,
                       NN_FloatTensor:$table, NN_RotaryPairsAttr:$pairs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = [{
    $pairs $query `,` $key `,` $value `,` $table attr-dict `:` type($query) `,` type($key) `,` type($table)
    `->` type($result)
  }];
  let hasVerifier = 1;
}

defvar attentionView = [{
    ::fsdp::nn::AttentionView getView();
}];

// Heads are (k g): g query heads read one of k key heads. With a causal mask a
// shard of the queries would have to know its place; a window needs one.
def NN_AttentionOp : NN_PureOp<"attention", [AllTypesMatch<["query", "result"]>, AllTypesMatch<["key", "value"]>, NN_Differentiable, NN_ReadByLibrary], NN_OwnVisibleFlops> {
  let summary = "Scaled dot-product attention with grouped heads";
  let prose = [{
    `softmax(scale q k^T) v` per head. Query head h reads key/value head `h / (heads / kv_heads)`. Memory grows
    with the sequence, not with its square. `lse` is the log-sum-exp of each row of scores in f32 (f64 for f64),
    of shape [batch, heads, sequence]. It is kept for the backward pass (Dao et al., 2022).

    Three attributes say what a query sees:

    | attribute | score s of query i and key j |
    |---|---|
    | `cap = C` | becomes `C tanh(s / C)` (Gemma 2), before any is hidden |
    | `causal` (unit) | is hidden where j > i |
    | `window = N` | is also hidden where j <= i - N: a query sees N keys, its own included (Mistral) |

    A window of kv_len or more hides nothing. Canonicalisation drops it, so it costs no bit.

    `starts`, of shape [batch, q_len], says where the document of each query begins, as its position in the row:
    the score of query i and key j is also hidden where j < starts(i). A row then has several documents that do
    not see each other (packing). A start after the query counts as the query's position, one below 0 as 0.

    Example:
    ```mlir
    %o, %lse = nn.attention %q, %k, %v scale 1.25e-01 {causal}
        : tensor<2x256x16x64xf32>, tensor<2x256x8x64xf32>, tensor<2x16x256xf32>
    %p, %lse2 = nn.attention %q, %k, %v scale 1.25e-01 {cap = 5.0e+01 : f64, causal, window = 128 : i64}
        : tensor<2x256x16x64xf32>, tensor<2x256x8x64xf32>, tensor<2x16x256xf32>
    %d, %lse3 = nn.attention %q, %k, %v from %starts scale 1.25e-01 {causal}
        : tensor<2x256x16x64xf32>, tensor<2x256x8x64xf32>, tensor<2x16x256xf32>, tensor<2x256xi32>
    ```

    Constraints: 1. q has shape [batch, q_len, heads, head_dim]; 2. k and v
    have equal shapes [batch, kv_len, kv_heads, head_dim] with the same batch
    and head_dim; 3. heads is a multiple of kv_heads; 4. lse has shape [batch,
    heads, q_len]; 5. `causal` needs q_len = kv_len; 6. `window` needs `causal`
    and is at least 1; 7. `cap` is positive and finite; 8. `starts` needs `causal` and has shape [batch, q_len].
  }];
  let sharding = NN_RuleIfElse<"getStarts()", "with `starts`",
      "b q! (k g) d!, b s! k d!, b s! k d!, b q! -> b q! (k g) d!, b (k g) q!",
      "getCausal()", "with `causal`",
      "b q! (k g) d!, b s! k d!, b s! k d! -> b q! (k g) d!, b (k g) q!",
      "b q (k g) d!, b s! k d!, b s! k d! -> b q (k g) d!, b (k g) q">;
  let linear = NN_NotLinear;
  let flops = NN_OwnFlops<"4 x elements of `query` x positions of `key`, hidden ones included">;
  let precision = NN_MatrixPrecision;
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key,
                       NN_FloatTensor:$value, Optional<NN_IntTensor>:$starts,
                       F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$cap);
  let results = (outs NN_FloatTensor:$result, NN_FloatTensor:$lse);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`from` $starts^)? `scale` $scale
    attr-dict `:` type($query) `,` type($key) `,` type($lse) (`,` type($starts)^)?
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = attentionView;
  let builders = [
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
                   "::mlir::Value":$value, "double":$scale, "bool":$causal)>,
    OpBuilder<(ins "::mlir::Value":$query, "::mlir::Value":$key,
                   "::mlir::Value":$value, "double":$scale,
                   "const ::fsdp::nn::AttentionView &":$view,
                   CArg<"::mlir::Value", "{}">:$starts)>];
}

// dk and dv are sums over queries and over the heads that share a key.
def NN_AttentionGradOp : NN_PureOp<"attention_grad", [AllTypesMatch<["query", "output", "cotangent", "query_grad"]>, AllTypesMatch<["key", "value", "key_grad", "value_grad"]>, NN_ReadByLibrary], NN_OwnModelAndVisibleFlops> {
  let summary = "Reverse rule of nn.attention; scores are recomputed from lse";
  let prose = [{
    What is hidden has no gradient. With a cap the gradient of a score s is multiplied by `1 - tanh(s / cap)^2`.

    Example:
    ```mlir
    %dq, %dk, %dv = nn.attention_grad %q, %k, %v, %o, %lse, %do scale 1.25e-01 {causal}
        : tensor<2x256x16x64xf32>, tensor<2x256x8x64xf32>, tensor<2x16x256xf32>
    ```

    Constraints: 1. – 8. as of nn.attention.
  }];
  let sharding = NN_RuleIfElse<"getStarts()", "with `starts`",
      "b q! (k g) d!, b s! k d!, b s! k d!, b q! (k g) d!, b (k g) q!, b q! (k g) d!, b q! -> b q! (k g) d!, b s! k d!, b s! k d!",
      "getCausal()", "with `causal`",
      "b q! (k g) d!, b s! k d!, b s! k d!, b q! (k g) d!, b (k g) q!, b q! (k g) d! -> b q! (k g) d!, b s! k d!, b s! k d!",
      "b q (k g) d!, b s! k d!, b s! k d!, b q (k g) d!, b (k g) q, b q (k g) d! -> b q (k g) d!, b s! k d!, b s! k d!">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_OwnFlops<"10 x elements of `query` x positions of `key`, of which 2 are recomputation">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$query, NN_FloatTensor:$key,
                       NN_FloatTensor:$value, NN_FloatTensor:$output,
                       NN_FloatTensor:$lse, NN_FloatTensor:$cotangent,
                       Optional<NN_IntTensor>:$starts, F64Attr:$scale, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window, OptionalAttr<F64Attr>:$cap);
  let results = (outs NN_FloatTensor:$query_grad, NN_FloatTensor:$key_grad,
                      NN_FloatTensor:$value_grad);
  let assemblyFormat = [{
    $query `,` $key `,` $value `,` $output `,` $lse `,` $cotangent (`from` $starts^)? `scale` $scale
    attr-dict `:` type($query) `,` type($key) `,` type($lse) (`,` type($starts)^)?
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = attentionView;
}

//===----------------------------------------------------------------------===//
// Embedding
//===----------------------------------------------------------------------===//

def NN_EmbeddingOp : NN_PureOp<"embedding", [NN_Differentiable], NN_OwnBytes> {
  let summary = "Rows of a table by index";
  let prose = [{
    Example: `%e = nn.embedding %ids, %table : tensor<2x256xi32>, tensor<2048x64xf32> -> tensor<2x256x64xf32>`

    `absent` says that the table is a part of one, and that the index -1 stands for a row of another part
    (fsdp.rows_of_shard). The result has -0.0 there, so that the sum over all parts has the bits of the row.

    Constraints: 1. the table has rank 2; 2. the result's shape is that of the indices followed by the row
    length; 3. equal element types. An index outside the table is a run-time error.
  }];
  let sharding = NN_Rule<"..., v! e -> ... e">;
  let linear = NN_NotLinear;
  let flops = NN_NoFlops;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_IntTensor:$indices, NN_FloatTensor:$table, UnitAttr:$absent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $table attr-dict `:` type($indices) `,` type($table) `->` type($result)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$indices, "::mlir::Value":$table)>];
}

def NN_EmbeddingGradOp : NN_PureOp<"embedding_grad"> {
  let summary = "Reverse rule of nn.embedding: adds rows, in token order";
  let prose = [{
    Sums in f32 in the order of the tokens and rounds once. With `absent`, the index -1 adds nothing.

    Example: `%dt = nn.embedding_grad %ids, %dy : tensor<2x256xi32>, tensor<2x256x64xf32> -> tensor<2048x64xf32>`
  }];
  let sharding = NN_Rule<"..., ... e -> v! e">;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<1, "cotangent">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_IntTensor:$indices, NN_FloatTensor:$cotangent, UnitAttr:$absent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$indices `,` $cotangent attr-dict `:` type($indices) `,` type($cotangent) `->` type($result)";
  let hasVerifier = 1;
}

#endif // FSDP_NN_LAYER_OPS
