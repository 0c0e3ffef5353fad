//===- NNStateOps.td - Parameters, buffers, gradients ---------*- tablegen -*-===//
#ifndef FSDP_NN_STATE_OPS
#define FSDP_NN_STATE_OPS

include "dialects/NN/NNBase.td"

class NN_PersistentOp<string mnemonic, list<Trait> traits = []> :
    NN_Op<mnemonic, !listconcat([Symbol], traits)> {
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttr:$type,
                       AnyAttr:$init);
  let assemblyFormat = "$sym_name `:` $type `init` $init attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::mlir::cast<::mlir::RankedTensorType>(getType());
    }
  }];
}

def NN_ParameterOp : NN_PersistentOp<"parameter"> {
  let summary = "A trainable tensor of the model";
  let description = [{
    Declares a parameter: its full (unsharded) type and its initialiser. The order of the declarations in the
    module is the registration order, which is the order of parameters inside a bucket. The discardable
    attribute `fsdp.placement` states the placement of the parameter, and `nn.frozen` (unit) states that it is
    not trained.

    Example:

    ```mlir
    nn.parameter @layers.0.feed_forward.w1.weight : tensor<768x256xf32>
        init #nn.normal<std = 2.000000e-02>
    ```

    Constraints:
    1. the type is a ranked tensor of static shape with f32 or f64 elements;
    2. the initialiser is #nn.zeros, #nn.ones, #nn.normal or #nn.uniform.
  }];
}

def NN_BufferOp : NN_PersistentOp<"buffer", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A tensor that persists but is not trained";
  let description = [{
    Declares a buffer, for example the table of rotary positions, or optimizer state. A buffer that belongs to
    a parameter (optimizer state) names the parameter in `nn.state_of` and has its placement. One that is a copy
    of a parameter in the type of compute names it in `nn.compute_copy_of`: whatever writes the parameter writes
    the copy too, before a program reads it.

    Example:

    ```mlir
    nn.buffer @rotary : tensor<256x2x2xf32>
        init #nn.rotary_table<[1.0, 0.1]>
    ```

    Constraints:
    1. the type is a ranked tensor of static shape;
    2. the initialiser is one of the nn dialect's initialisers;
    3. a #nn.rotary_table belongs to an f32 tensor of shape [_, number of frequencies, 2];
    4. `nn.state_of`, if present, names an nn.parameter of the module;
    5. `nn.compute_copy_of`, if present, names an nn.parameter of the module with the same shape, and
       `nn.state_of` is absent.
  }];
}

def NN_ReadOp : NN_StateOp<"read", [
    MemoryEffects<[MemRead<NN_PersistentResource>]>]> {
  let summary = "The current value of a parameter or buffer";
  let prose = [{
    Before `fsdp-expand` the result has the declared type. After it, the result has the type of this rank's
    shard under the `fsdp.placement` of the parameter.

    Example: `%w = nn.read @norm.weight : tensor<256xf32>`

    Constraints:
    1. the symbol names an nn.parameter or nn.buffer of the module;
    2. the element type and rank are those of the declaration; the shape is the declared one, unless the
       declaration has `fsdp.placement`.
  }];
  let state = NN_State<"Read">;
  let arguments = (ins FlatSymbolRefAttr:$name);
  let results = (outs NN_AnyTensor:$value);
  let assemblyFormat = "$name attr-dict `:` type($value)";
}

def NN_SeedOp : NN_PureOp<"seed", [SameOperandsAndResultType]> {
  let summary = "The cotangent of the loss: 1; begins the backward pass";
  let prose = [{
    `nn-differentiate` adds exactly one seed to a training program. Ops before it are the forward pass, ops
    after it the backward pass.

    Example: `%one = nn.seed %loss : tensor<f32>`

    Constraints: 1. the loss is a tensor of rank 0.
  }];
  let sharding = NN_Elementwise;
  let linear = NN_NotLinear;
  let flops = NN_NoFlops;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_ScalarTensor:$loss);
  let results = (outs NN_ScalarTensor:$cotangent);
  let assemblyFormat = "$loss attr-dict `:` type($loss)";
  let builders = [OpBuilder<(ins "::mlir::Value":$loss), [{
    build($_builder, $_state, loss.getType(), loss);
  }]>];
  let hasVerifier = 1;
}

def NN_GradientOp : NN_StateOp<"gradient", [
    MemoryEffects<[MemWrite<NN_PersistentResource>]>]> {
  let summary = "The final gradient of a parameter";
  let prose = [{
    States that `value` is the gradient of the parameter for this step, in the placement of the parameter.
    `fsdp-optimizer` replaces all gradients by the optimizer. A gradient that remains is written to the
    persistent range `<parameter>.grad`.

    Example: `nn.gradient @norm.weight, %g : tensor<256xf32>`

    Constraints:
    1. the symbol names an nn.parameter;
    2. the value has the type that nn.read of the parameter would have.
  }];
  let state = NN_State<"Gradient">;
  let arguments = (ins FlatSymbolRefAttr:$name, NN_FloatTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}

def NN_AccumulateOp : NN_StateOp<"accumulate", [NN_OwnBytes,
    MemoryEffects<[MemRead<NN_PersistentResource>, MemWrite<NN_PersistentResource>]>]> {
  let summary = "Adds a value to a buffer in place";
  let prose = [{
    The buffer becomes `buffer + value`, as nn.add computes it in f32. `nn-accumulate` uses it for sums over the
    microbatches of a step: they are added in order, in the storage placement of the buffer. A value in bf16 is
    widened, which is exact.

    Example: `nn.accumulate @norm.weight.grad_sum, %g : tensor<256xf32>`

    Constraints:
    1. the symbol names an nn.buffer;
    2. the buffer is f32 or f64;
    3. the value has the type that nn.read of the buffer would have, or is bf16 where that is f32.
  }];
  let state = NN_State<"Add">;
  let arguments = (ins FlatSymbolRefAttr:$name, NN_FloatTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}

def NN_AccumulateProductOp : NN_StateOp<"accumulate_product", [NN_OwnBytes, NN_MatrixProduct, NN_ReadByLibrary,
    MemoryEffects<[MemRead<NN_PersistentResource>, MemWrite<NN_PersistentResource>]>]> {
  let summary = "Adds the gradient of a linear layer's weight to a buffer in place: buffer + dy^T x";
  let prose = [{
    What nn.linear_weight_grad with a `sum` computes, for a sum that outlives the program. The product is accumulated
    in f32 and never rounded to bf16. nn-sum-blocks produces it of nn.linear_weight_grad and nn.accumulate, which
    round differently.

    Example:
    ```mlir
    nn.accumulate_product @wq.weight.grad_sum, %dy, %x : tensor<2x4x16xbf16>, tensor<2x4x8xbf16>
    ```

    Constraints:
    1. the symbol names an nn.buffer;
    2. dy and x have equal shapes but for the last dimension, and equal element types, f32 or bf16;
    3. nn.read of the buffer would have the type f32 of shape [last dimension of dy, last dimension of x].
  }];
  let state = NN_State<"Add">;
  let arguments = (ins FlatSymbolRefAttr:$name, NN_FloatTensor:$cotangent, NN_FloatTensor:$input);
  let assemblyFormat = "$name `,` $cotangent `,` $input attr-dict `:` type($cotangent) `,` type($input)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// What is added.
    ::mlir::RankedTensorType getProductType();
  }];
}

def NN_WriteOp : NN_StateOp<"write", [
    MemoryEffects<[MemWrite<NN_PersistentResource>]>]> {
  let summary = "Sets a buffer";
  let prose = [{
    The buffer has this value from here on, also in the programs that follow. `nn-accumulate` uses it for
    parameters that a step gathers once.

    Example: `nn.write @norm.weight.gathered, %w : tensor<256xf32>`

    Constraints:
    1. the symbol names an nn.buffer;
    2. the value has the type that nn.read of the buffer would have.
  }];
  let state = NN_State<"Write">;
  let arguments = (ins FlatSymbolRefAttr:$name, NN_FloatTensor:$value);
  let assemblyFormat = "$name `,` $value attr-dict `:` type($value)";
}

def NN_ClearOp : NN_StateOp<"clear", [
    MemoryEffects<[MemWrite<NN_PersistentResource>]>]> {
  let summary = "Sets buffers to zero";
  let prose = [{
    Example: `nn.clear [@norm.weight.grad_sum, @loss_sum]`

    Constraints: 1. the symbols name nn.buffer ops; 2. there is at least one.
  }];
  let state = NN_StateOfAll<"Clear", ["names"], ["getNames"]>;
  let arguments = (ins FlatSymbolRefArrayAttr:$names);
  let assemblyFormat = "$names attr-dict";
  let hasVerifier = 1;
}

def NN_RecomputeFromOp : NN_Op<"recompute_from", [NN_AliasesOperands]> {
  let summary = "Identity that keeps a recomputed clone apart";
  let description = [{
    A variadic identity. The clones that `fsdp-remat` creates take their operands through it. For CSE it
    allocates its results, so CSE never merges the clone with the original and still erases a dead one. In exec
    it is an alias and costs nothing. It exists from fsdp-remat to exec-lower.

    Example: `%a = nn.recompute_from %x : tensor<4x8xf32> -> tensor<4x8xf32>`

    Constraints: 1. result types equal operand types.
  }];
  let arguments = (ins Variadic<NN_AnyTensor>:$values);
  let results = (outs Res<Variadic<NN_AnyTensor>, "", [MemAlloc]>:$results);
  let assemblyFormat = "$values attr-dict `:` type($values) `->` type($results)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::ValueRange":$values), [{
    build($_builder, $_state, values.getTypes(), values);
  }]>];
}

#endif // FSDP_NN_STATE_OPS
