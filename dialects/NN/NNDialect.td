//===- NNDialect.td - The nn dialect: what is computed -------*- tablegen -*-===//
//
// The nn dialect is split by role: this file (dialect), NNAttrs.td (enums and
// initialisers), NNInterfaces.td (one interface per concern), NNTypes.td (what
// all tensors have in common), and the ops by family: NNStateOps.td,
// NNPointwiseOps.td, NNShapeOps.td, NNLayerOps.td, NNOptimizerOps.td. NNOps.td
// includes them all.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_NN_DIALECT
#define FSDP_NN_DIALECT

include "mlir/IR/OpBase.td"

def NN_Dialect : Dialect {
  let name = "nn";
  let summary = "What is computed: model ops, loss, gradients, optimizer";
  let description = [{
    The `nn` dialect states a model as its paper does. A value is a logical
    tensor of static shape; about forty named ops work on them. One op is one
    kernel choice, one cost, one reverse rule:

    ```
       fsdp-trace ──►  nn.parameter @w        symbols: what persists
                       nn.read @w             a logical tensor
                       nn.linear, nn.silu, …  pure ops
                       nn.cross_entropy       the loss of each row
                       nn.divide_by_count     their mean
       nn-differentiate ──►  … nn.seed … nn.gradient @w
       fsdp-optimizer   ──►  nn.adamw @w
    ```

    **Sizes.** A tensor has at least one element and at most 2^56 bytes. Every
    op states this of its operands and results, so nothing that is computed
    from a shape can overflow.

    Numerics are part of the op: every op computes in f32 (f64 on f64 tensors)
    and rounds once to its declared result type, also inside a fused kernel.

    `nn` knows nothing of meshes: where a parameter lives hangs on it as the
    discardable attribute `fsdp.placement`, which the fsdp dialect verifies.

    **Modules.** An op of a program may say which module of the model it
    belongs to: `nn.module = "layers.3.attention"`. The path leads from the
    root of the model; "tok_embeddings#2" is the second call of a module, as
    the output layer that a tied table also is. It names things for people and
    for plans and never changes what is computed, but CSE does not merge ops
    of different modules. Constants carry none. `ModulePath.h` is the one
    place that takes paths apart.

    A *program* is a public `func.func`. Its arguments and results carry
    `nn.name`, the name of the arena range that holds them at run time; the
    result of one program may be the argument of another.

    **Steps.** A step that is several programs says so on the module, for every
    level below too: `nn.steps = {train = [#nn.action<@count times 1>,
    #nn.action<@accumulate times 4>, #nn.action<@update times 1>]}`. Without it
    @train is the step "train".

    **The residual stream.** A model says which additions put the result of a
    block (attention, feed-forward) into its residual stream: `nn.residual`
    (unit) on an nn.add of [batch, sequence, features], whose lhs is the stream
    before it and whose result is the stream behind it. Where norms stand, in
    front of blocks, behind them or both, says nothing of it. fsdp-shard lays
    these values out and takes the attribute off; it never changes what is
    computed.

    **The model.** A module may say which model it is, for every level below
    and for the manifest: `nn.model = {family = "llama3", dim = 256 : i64,
    norm_eps = 1.0e-05 : f64, tied = false, …}`, a family and all its fields
    as the tracer knows them. Fields are i64, f64, booleans or strings. It
    never changes what is computed: by it, weights that others have written
    are named, held against the program and given the program's layout.
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
