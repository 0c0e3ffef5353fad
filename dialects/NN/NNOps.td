//===- NNOps.td - All ops of the nn dialect -------------------*- tablegen -*-===//
#ifndef FSDP_NN_OPS
#define FSDP_NN_OPS

include "dialects/NN/NNStateOps.td"
include "dialects/NN/NNPointwiseOps.td"
include "dialects/NN/NNShapeOps.td"
include "dialects/NN/NNLayerOps.td"
include "dialects/NN/NNLossOps.td"
include "dialects/NN/NNOptimizerOps.td"
include "dialects/NN/NNFusionOps.td"

#endif // FSDP_NN_OPS
