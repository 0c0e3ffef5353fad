//===- MeanOfParts.h - A loss as the mean of ranks' means -------*- C++ -*-===//
#ifndef FSDP_PASSES_GRAPH_MEANOFPARTS_H
#define FSDP_PASSES_GRAPH_MEANOFPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace fsdp {

/// Makes `loss`, a result of `program` that is nn.divide_by_count of nn.sum of
/// rows and nn.count_labels, the mean of the means of `parts` equal parts of
/// the batch. Where no label is ignored that is the same number. Fails for
/// another loss, or rows that cannot be split so.
mlir::LogicalResult takeMeanOfParts(mlir::func::FuncOp program,
                                    mlir::Value loss, int64_t parts);

} // namespace fsdp

#endif // FSDP_PASSES_GRAPH_MEANOFPARTS_H
