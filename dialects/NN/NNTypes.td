//===- NNTypes.td - Tensors whose size is checked -------------*- tablegen -*-===//
#ifndef FSDP_NN_TYPES
#define FSDP_NN_TYPES

include "mlir/IR/OpBase.td"

/// A tensor of static shape. Its size is checked once, here, so that all
/// arithmetic on its shape is safe.
class NN_TensorOf<list<Type> elements> : ConfinedType<
    StaticShapeTensorOf<elements>, [CPred<"::fsdp::nn::hasCheckedSize($_self)">],
    StaticShapeTensorOf<elements>.summary # ", not empty and of at most 2^56 bytes",
    "::mlir::RankedTensorType">;

#endif // FSDP_NN_TYPES
