//===- Nonfinite.h - The first value that is not finite ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_NONFINITE_H
#define FSDP_RUNTIME_TRAIN_NONFINITE_H

#include "Rank.h"
#include "ValueTable.h"

namespace fsdp {

/// "the parameter 'layers.1.wq.weight' is not finite: element 17 of rank 1's
/// part" for the first one, by the ranks and then by the artifact's order;
/// empty: all are finite. Collective, the same on every rank.
std::string firstNonfiniteParameter(const Rank &rank);

struct FoundValue {
  std::string text; // empty: all values are finite
  /// Why nothing could be named: the table does not have the programs' calls.
  std::string problem;
};

/// Runs the step "train" on the inputs that are set and looks at every value
/// when it is produced. A step whose gradient norm is not finite changes
/// nothing, so that it can be run again so, to the same bits.
///
/// Returns, the same on every rank, the first value with an element that is not
/// finite: the one of the earliest call and, where several ranks have it, the
/// lowest rank; all is counted from 0. "fwd layers.1.feed_forward.w2 linear
/// (call 57 of program train), f32 4x64x256: 3 of 65,536 elements on rank 1,
/// the first at [0, 3, 17]: nan". Collective.
FoundValue firstNonfiniteOfStep(Rank &rank, const ValueTable &table);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_NONFINITE_H
