//===- Evaluate.h - What a trained model is worth ---------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_EVALUATE_H
#define FSDP_RUNTIME_TRAIN_EVALUATE_H

#include "Rank.h"
#include "fsdp/Config/RunConfig.h"
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace fsdp {

struct HeldOutScore {
  int64_t predictions = 0;
  double nats = 0; // per prediction
  /// Of each stream of a dataset that has several; without a prediction, nats
  /// are 0.
  std::vector<HeldOutScore> streams = {};
};

/// Asked before every run of the program "evaluate"; the same on all ranks.
/// False: the result is not wanted any more.
using GoesOn = std::function<bool()>;

/// Predicts every held-out label but the first token of each stream exactly
/// once, the rows dealt over all pieces of the batch. Nothing if it does not go
/// on. Collective. Throws fsdp::Error.
std::optional<HeldOutScore> evaluateHeldOut(Rank &rank, const rt::Dataset &data,
                                            const GoesOn &goesOn);

/// More of a text would take gzip longer than is worth the comparison.
inline constexpr int64_t kMostGzipBytes = 64 << 20;

/// Size of the text, of its first kMostGzipBytes at most, under `gzip -9`, in
/// bits per byte of text.
double gzipBitsPerByte(std::string_view text);

/// Continues `ids`, at least one, by config.sample.length more, each below
/// `classes` and by one run of the program "evaluate". Returns all of them, or
/// nothing if it does not go on. Every rank computes the same. Collective.
std::optional<std::vector<int32_t>> generateIds(Rank &rank,
                                                const RunConfig &config,
                                                std::vector<int32_t> ids,
                                                int64_t classes,
                                                const GoesOn &goesOn);

/// Draws from softmax(logits / temperature) with the uniform number `unit`;
/// temperature 0 takes the largest.
int sampleLogits(const std::vector<float> &logits, double temperature,
                 double unit);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_EVALUATE_H
