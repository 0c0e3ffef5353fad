//===- AttentionView.h - What attention sees --------------------*- C++ -*-===//
#ifndef FSDP_DIALECTS_NN_ATTENTIONVIEW_H
#define FSDP_DIALECTS_NN_ATTENTIONVIEW_H

#include <algorithm>
#include <cstdint>

namespace fsdp::nn {

/// Which keys a query of nn.attention sees, and what bounds its scores. The
/// default sees all keys and bounds nothing.
struct AttentionView {
  /// Query i sees the keys j <= i.
  bool causal = false;
  /// With `causal`: of these the last `window`, the query's own key included
  /// (j > i - window). 0: all of them.
  int64_t window = 0;
  /// A score s becomes cap * tanh(s / cap), before hidden keys are left out. 0:
  /// it stays.
  double cap = 0;

  /// Of `keys` keys, query i sees [firstKey(i), endKey(i, keys)), or, of a
  /// document that begins at `start`, [firstKey(i, start), endKey(i, keys)).
  int64_t firstKey(int64_t i) const {
    return window == 0 ? 0 : std::max<int64_t>(i - window + 1, 0);
  }
  int64_t firstKey(int64_t i, int64_t start) const {
    return std::max(firstKey(i), std::min(start, i));
  }
  int64_t endKey(int64_t i, int64_t keys) const {
    return causal ? std::min(i + 1, keys) : keys;
  }
};

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_ATTENTIONVIEW_H
