//===- Passes.h - The passes and pipelines ----------------------*- C++ -*-===//
#ifndef FSDP_PASSES_PASSES_H
#define FSDP_PASSES_PASSES_H

#include "fsdp/Schedule/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>

namespace fsdp {

/// How fsdp-shard lays parameters out over the mesh.
enum class ShardMode {
  FullyShard,  ///< split over every data axis
  HybridShard, ///< split over the last data axis, replicated over the others
  Replicate,   ///< every rank holds everything
};

/// What nn-precision lets a program compute in.
enum class ComputeType { F32, BF16 };

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace fsdp

#endif // FSDP_PASSES_PASSES_H
