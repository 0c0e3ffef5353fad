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
    The `fsdp` dialect adds placement to `nn`. The program is SPMD: one text
    for all ranks of a mesh. Until fsdp-expand values are logical tensors with a
    #fsdp.placement, from then on this rank's parts of them.

    ```
      fsdp.redistribute        one differentiable op per parameter read, and
            │                  what fsdp-propagate adds
            │ fsdp-expand
      nn.cast + fsdp.all_gather        fsdp.reduce_scatter, fsdp.all_reduce
            │ fsdp-bucket              one variadic collective = one bucket
            │ fsdp-overlap             fsdp.async { collective } … fsdp.await
    ```

    A collective is never `Pure`: its results allocate, so two gathers of one
    shard survive CSE and a dead one is erased. The order of collectives in
    the block is the order in which they are issued, on every rank.

    **Reductions** add over the ranks in f32 (each operand element is widened
    first). The order is fixed: a binary tree along the last mesh axis, then one
    over its results along the axis before. Bits do not depend on message size, bucket or position.

    **Uneven shards**: the local size is ceil(size / parts); padding is zero
    and stays zero; a gather yields the unpadded prefix.
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
