//===- NNDialect.td - The nn dialect: what is computed -------*- tablegen -*-===//
//
// The nn dialect is split by role: this file (dialect), NNAttrs.td (enums and
// initialisers), NNInterfaces.td (one interface per concern), NNTypes.td (what
// all tensors have in common), and the ops by family: NNStateOps.td,
// NNPointwiseOps.td, NNShapeOps.td, NNLayerOps.td, NNLossOps.td,
// NNOptimizerOps.td. NNOps.td includes them all.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_NN_DIALECT
#define FSDP_NN_DIALECT

include "mlir/IR/OpBase.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let summary = "What is computed: model ops, loss, gradients, optimizer";
  let description = [{
    The `nn` dialect states a model as its paper does. A value is a logical tensor of static shape, and about
    seventy named ops work on such values. One op is one kernel choice, one cost, one reverse rule:

    ```
       fsdp-trace ──►  nn.parameter @w        symbols: what persists
                       nn.read @w             a logical tensor
                       nn.linear, nn.silu, …  pure ops
                       nn.cross_entropy       the loss of each row
                       nn.divide_by_count     their mean
       nn-differentiate ──►  … nn.seed … nn.gradient @w
       fsdp-optimizer   ──►  nn.adamw @w
    ```

    **Sizes.** A tensor has at least one element and at most 2^56 bytes. Every op states this of its operands
    and results, so no arithmetic on a shape can overflow.

    **Numerics** are part of the op. Every op computes in f32 (f64 on f64 tensors) and rounds once to its
    declared result type, also inside a fused kernel.

    **Placements.** `nn` knows nothing of meshes. The discardable attribute `fsdp.placement` of a parameter
    states its placement, and the fsdp dialect verifies it.

    **Modules.** An op of a program may name the module of the model that it belongs to:
    `nn.module = "layers.3.attention"`. The path starts at the root of the model. "tok_embeddings#2" is the
    second call of a module, for example a tied table that is also the output layer. Paths are names for people
    and for plans. They never change what is computed, but CSE does not merge ops of different modules.
    Constants have no module. Only `ModulePath.h` parses paths.

    **Programs.** A *program* is a public `func.func`. `nn.name` of its arguments and results is the name of
    the arena range that holds them at run time. The result of one program may be the argument of another.

    **Steps.** If a step consists of several programs, the module lists them, for all lower levels too:
    `nn.steps = {train = [#nn.action<@count times 1>, #nn.action<@accumulate times 4>,
    #nn.action<@update times 1>]}`. Without it, the step "train" is @train.

    **The residual stream.** A model marks the additions that add the result of a block (attention,
    feed-forward) to its residual stream: `nn.residual` (unit) on an nn.add of [batch, sequence, features].
    The lhs is the stream before the block, and the result is the stream after it. The mark does not depend on
    where norms stand, before blocks, after them or both. fsdp-shard places these values and removes the
    attribute. The mark never changes what is computed.

    **The model.** A module may state its model, for all lower levels and for the manifest: `nn.model =
    {family = "llama3", dim = 256 : i64, norm_eps = 1.0e-05 : f64, tied = false, …}`, a family and all its
    fields as the tracer knows them. Fields are i64, f64, booleans or strings. They never change what is
    computed. A run uses them to name the weights of imported checkpoints, to check these against the program,
    and to give them the layout of the program.
  }];
  let cppNamespace = "::fsdp::nn";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect", "::mlir::math::MathDialect"];
}

#endif // FSDP_NN_DIALECT
