//===- SemanticDigest.h - What a program computes, as digests ---*- C++ -*-===//
//
// Every value of a program is a term: an op, its attributes and types, and the
// terms of its operands. Two programs with equal terms for all they write and
// return compute the same bits, wherever their collectives stand and whatever
// is computed twice. fsdp-plan keeps the digests of the terms before anything
// is scheduled, and fsdp-verify-schedule computes them anew, seeing through
// futures, buckets, recomputation and kernels; it shares no code with the
// passes that apply a plan.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_SEMANTICDIGEST_H
#define FSDP_SCHEDULE_SEMANTICDIGEST_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <string>
#include <vector>

namespace fsdp::schedule {

/// One thing that a program leaves, or that it is declared to be.
struct SemanticDigest {
  std::string what; // "the gradient of 'w'", "result 0"; for messages
  int64_t digest;   // of its term; equal terms have equal digests
};

/// Everything that `program` writes and returns, sorted so that the order of
/// writes to different tensors does not matter, and its interface.
std::vector<SemanticDigest> semanticDigestsOf(mlir::func::FuncOp program);

/// What `module` declares for its programs. Their plan is no part of it.
std::vector<SemanticDigest> declarationDigestsOf(mlir::ModuleOp module);

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_SEMANTICDIGEST_H
