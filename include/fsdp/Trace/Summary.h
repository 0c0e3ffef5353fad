//===- Summary.h - What a traced model consists of --------------*- C++ -*-===//
//
// Counts taken from the graph itself, so they hold for any model.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TRACE_SUMMARY_H
#define FSDP_TRACE_SUMMARY_H

#include "fsdp/Support/CheckedSize.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/raw_ostream.h"

namespace fsdp {

struct ModelSummary {
  int64_t parameters = 0; // elements of all parameters
  int64_t tensors = 0;    // number of parameters
  /// Elements of parameters that are only looked up, never multiplied.
  int64_t lookedUp = 0;
  /// Forward and backward of softmax(q k^T) v per token, not halved for
  /// causality, nor less with a window.
  int64_t attentionFlops = 0;

  /// Forward and backward per token (per row for a model without tokens):
  /// 6 (N - N_looked_up) + 6 layers heads (head_qk + head_v) sequence, the
  /// figure that utilisation is quoted with (PaLM, appendix B).
  int64_t flopsPerToken() const {
    return (CheckedSize(6) * (parameters - lookedUp) + attentionFlops)
        .saturated();
  }
};

/// Summarises a module as fsdp-trace prints it.
ModelSummary summarize(mlir::ModuleOp module);

/// Prints the summary and a table of the tensors, in which layers that differ
/// in their number alone share a row.
void printSummary(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace fsdp

#endif // FSDP_TRACE_SUMMARY_H
