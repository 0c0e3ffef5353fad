//===- FsdpDialect.td - The fsdp dialect: where values live ---*- tablegen -*-===//
//
// Split by role: this file (dialect), FsdpAttrs.td (mesh axes, placements,
// enums), FsdpTypes.td (futures), FsdpOps.td (mesh, redistribute, collectives,
// futures).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FSDP_DIALECT
#define FSDP_FSDP_DIALECT

include "mlir/IR/OpBase.td"

def Fsdp_Dialect : Dialect {
  let name = "fsdp";
  let summary = "Where a tensor lives and moves: mesh, placements, collectives, futures";
  let description = [{
    The `fsdp` dialect adds placement to `nn`. The program is SPMD: one text for all ranks of a mesh. Before
    fsdp-expand, values are logical tensors with a #fsdp.placement. After it, they are this rank's shards.

    ```
      fsdp.redistribute        one differentiable op per parameter read, and
            │                  those that fsdp-propagate adds
            │ fsdp-expand
      nn.cast + fsdp.all_gather        fsdp.reduce_scatter, fsdp.all_reduce
            │ fsdp-bucket              one variadic collective = one bucket
            │ fsdp-overlap             fsdp.async { collective } … fsdp.await
    ```

    A collective is never `Pure`: its results allocate, so two gathers of one shard survive CSE and a dead one
    is erased. The order of collectives in the block is the order in which every rank issues them.

    **Reductions** widen every element to f32 and add in f32 over the ranks (f64 and integers keep their
    type). The order is fixed: a binary tree along the last mesh axis, then one over its results along the
    axis before. Bits do not depend on message size, bucket or position.

    **Uneven shards.** The local size is ceil(size / parts). Padding is zero and stays zero. A gather returns
    the unpadded prefix.
  }];
  let cppNamespace = "::fsdp::dist";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
  let dependentDialects = ["::fsdp::nn::NNDialect"];
  let extraClassDeclaration = [{
    /// In FsdpAttrs.cpp, where their storage is complete.
    void registerAttributesAndTypes();
  }];
}

#endif // FSDP_FSDP_DIALECT
