//===- NNOptimizerOps.td - Gradient norm, clipping, AdamW -----*- tablegen -*-===//
#ifndef FSDP_NN_OPTIMIZER_OPS
#define FSDP_NN_OPTIMIZER_OPS

include "dialects/NN/NNBase.td"

def NN_AbsMaxOp : NN_PureOp<"abs_max"> {
  let summary = "Largest absolute value of several tensors";
  let prose = [{
    First step of the exact gradient norm. If an element is NaN, the result is NaN. Tensors may be f32 or bf16,
    which is widened as it is read: that is exact.

    Example: `%m = nn.abs_max %g0, %g1 : tensor<4x8xf32>, tensor<8xbf16> -> tensor<f32>`
  }];
  let sharding = NN_OwnRule<"every dimension of all operands, over storage axes too; the result is a partial maximum">;
  let linear = NN_NotLinear;
  let flops = NN_OwnFlops<"1 for each element of `inputs`">;
  let precision = NN_LaterPrecision;
  let arguments = (ins Variadic<RankedTensorOf<[F32, BF16]>>:$inputs);
  let results = (outs RankedTensorOf<[F32]>:$result);
  let assemblyFormat = "$inputs attr-dict `:` type($inputs) `->` type($result)";
  let hasVerifier = 1;
}

def NN_SumSquaresOp : NN_PureOp<"sum_squares"> {
  let summary = "Exact sum of squares at a power-of-two scale, as two integers";
  let prose = [{
    Divides each element by the smallest power of two that is at least `max`, squares it in f64 (exactly) and
    splits the square into two 24-bit digits. Each digit is summed in an int64. Integer sums do not depend on
    order, so the norm is independent of sharding, buckets and ranks. A non-finite or zero `max` produces
    zeros. Tensors may be f32 or bf16, which is widened as it is read: that is exact.

    Example: `%s = nn.sum_squares %m, %g0, %g1 : tensor<f32>, tensor<4x8xf32>, tensor<8xf32> -> tensor<2xi64>`

    Constraints: 1. max is tensor<f32>; 2. the result is tensor<2xi64>.
  }];
  let sharding = NN_OwnRule<"every dimension of `inputs`, over storage axes too; the result is a partial sum">;
  let linear = NN_NotLinear;
  let flops = NN_OwnFlops<"6 for each element of `inputs`">;
  let precision = NN_LaterPrecision;
  let arguments = (ins RankedTensorOf<[F32]>:$max, Variadic<RankedTensorOf<[F32, BF16]>>:$inputs);
  let results = (outs RankedTensorOf<[I64]>:$result);
  let assemblyFormat = "$max `,` $inputs attr-dict `:` type($max) `,` type($inputs) `->` type($result)";
  let hasVerifier = 1;
}

def NN_ClipCoefficientOp : NN_PureOp<"clip_coefficient", [AllTypesMatch<["max", "norm", "coefficient"]>]> {
  let summary = "Computes the norm of the gradients and the factor that clips them";
  let prose = [{
    `norm = sqrt(sum) * scale` and `coefficient = min(1, max_norm / (norm + 1e-6))`. `max_norm` 0 means no
    clipping (coefficient 1). If `max` is not finite, it is the norm. If the norm is not finite, the
    coefficient is NaN and nn.adamw changes nothing, so the caller can stop or skip the step. `sum` may be the
    concatenation of several results of nn.sum_squares; they are added.

    Example: `%norm, %c = nn.clip_coefficient %max, %sum max_norm 1.0 : tensor<f32>, tensor<2xi64>`

    Constraints: 1. max is tensor<f32>; 2. sum is a tensor<…xi64> of two digits
    for each sum; 3. max_norm is not negative.
  }];
  let sharding = NN_Rule<", d! -> , ">;
  let linear = NN_NotLinear;
  let flops = NN_NoFlops;
  let precision = NN_LaterPrecision;
  let arguments = (ins RankedTensorOf<[F32]>:$max, RankedTensorOf<[I64]>:$sum, F64Attr:$max_norm);
  let results = (outs RankedTensorOf<[F32]>:$norm, RankedTensorOf<[F32]>:$coefficient);
  let assemblyFormat = "$max `,` $sum `max_norm` $max_norm attr-dict `:` type($max) `,` type($sum)";
  let hasVerifier = 1;
}

def NN_AdamWOp : NN_StateOp<"adamw", [NN_OwnBytes,
    MemoryEffects<[MemRead<NN_PersistentResource>, MemWrite<NN_PersistentResource>]>]> {
  let summary = "One AdamW step over several parameters (Loshchilov and Hutter, 2019)";
  let prose = [{
    For each parameter p with first and second moments m and v, in f32:

    ```
    g  = gradient * coefficient
    p  = p - lr wd p
    m  = m + (g - m) (1 - beta1)
    v  = v beta2 + g g (1 - beta2)
    p  = p - (lr / (1 - beta1^t)) m / (sqrt(v) / sqrt(1 - beta2^t) + eps)
    ```

    in place. `lr` is the learning rate of this step, `step` its number t (from 1). The op works element by
    element and so does not depend on sharding. If `coefficient` is NaN, nothing changes. Gradients may be f32 or
    bf16, which is widened as it is read: that is exact. Each of `copies`, if there are any, becomes p in bf16,
    rounded to nearest, ties to even.

    Example:
    ```mlir
    nn.adamw [@w] moments [@w.exp_avg], [@w.exp_avg_sq](%g) lr %lr step %t clip %c
        {beta1 = 0.9, beta2 = 0.95, eps = 1.0e-8, weight_decay = 0.1} : tensor<4x8xf32>
    ```

    Constraints: 1. the numbers of gradients, first moments, second moments and, if there are any, copies are that
    of the parameters; 2. parameters name nn.parameter, moments and copies nn.buffer; 3. lr and clip are
    tensor<f32>, step is tensor<i32>; 4. copies are bf16.
  }];
  let state = NN_StateOfAll<"Update", ["parameters", "first_moments", "second_moments", "copies"],
      ["getParameters", "getFirstMoments", "getSecondMoments", "getCopyNames"]>;
  let arguments = (ins FlatSymbolRefArrayAttr:$parameters,
                       FlatSymbolRefArrayAttr:$first_moments,
                       FlatSymbolRefArrayAttr:$second_moments,
                       OptionalAttr<FlatSymbolRefArrayAttr>:$copies,
                       Variadic<RankedTensorOf<[F32, BF16]>>:$gradients,
                       NN_F32Scalar:$lr, NN_I32Scalar:$step,
                       NN_F32Scalar:$coefficient,
                       F64Attr:$beta1, F64Attr:$beta2, F64Attr:$eps, F64Attr:$weight_decay);
  let assemblyFormat = [{
    $parameters `moments` $first_moments `,` $second_moments (`copies` $copies^)? `(` $gradients `)`
    `lr` $lr `step` $step `clip` $coefficient attr-dict `:` type($gradients)
  }];
  let extraClassDeclaration = [{
    /// The names of `copies`; none if it is left out.
    ::mlir::ArrayAttr getCopyNames() {
      return getCopiesAttr() ? getCopiesAttr() : ::mlir::ArrayAttr::get(getContext(), {});
    }
  }];
  let hasVerifier = 1;
}

#endif // FSDP_NN_OPTIMIZER_OPS
