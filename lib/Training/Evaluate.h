//===- Evaluate.h - What a trained model is worth ---------------*- C++ -*-===//
#ifndef FSDP_TRAINING_EVALUATE_H
#define FSDP_TRAINING_EVALUATE_H

#include "Rank.h"
#include "fsdp/Config/RunConfig.h"
#include <string_view>

namespace fsdp {

struct HeldOutScore {
  int64_t predictions = 0;
  double bitsPerByte = 0;
};

/// Predicts every held-out byte but the first exactly once, the windows dealt
/// over all pieces of the batch. Collective. Throws fsdp::Error.
HeldOutScore evaluateHeldOut(Rank &rank, const rt::ByteDataset &text);

/// Size of the text under `gzip -9`, in bits per byte of text.
double gzipBitsPerByte(std::string_view text);

/// Continues config.sample.prompt, or the start of the held-out text, one
/// byte per run of the program "evaluate". Returns the prompt with its
/// continuation. Every rank computes the same. Collective.
std::string generateText(Rank &rank, const RunConfig &config,
                         const rt::ByteDataset &text);

/// Draws from softmax(logits / temperature) with the uniform number `unit`;
/// temperature 0 takes the largest.
int sampleLogits(const std::vector<float> &logits, double temperature,
                 double unit);

/// Text for a terminal: what is no printable byte or newline as \xNN.
std::string printable(std::string_view text);

} // namespace fsdp

#endif // FSDP_TRAINING_EVALUATE_H
