//===- Dataset.h - Text as bytes --------------------------------*- C++ -*-===//
//
// Every byte of a text file is a token. The end of the text is held out:
// never sampled in training, and evaluated in full.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_DATASET_H
#define FSDP_RUNTIME_DATASET_H

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fsdp::rt {

/// Marks a target that does not count towards the loss.
inline constexpr int32_t kIgnoredTarget = -100;

/// Where a batch goes: row-major [rows, sequence].
struct Batch {
  int64_t rows, sequence;
  int32_t *tokens, *targets;
};

class ByteDataset {
public:
  /// Maps the file. `fraction` of its bytes, rounded, are held out. Throws
  /// fsdp::Error if the file is missing, is no regular file, or has no room for
  /// one training window of `sequence` bytes and the byte after it.
  ByteDataset(const std::string &path, double fraction, int64_t sequence);

  std::string_view text() const { return {data.get(), size}; }
  std::string_view trainText() const { return text().substr(0, trainSize); }
  std::string_view heldOutText() const { return text().substr(trainSize); }

  /// Fills `batch` with windows of the training text at uniform offsets that
  /// depend on seed, step, rank and row alone.
  void sampleTraining(uint64_t seed, int64_t step, int64_t rank,
                      const Batch &batch) const;

  /// Number of evaluation rounds after which every held-out byte but the
  /// first was predicted exactly once.
  int64_t heldOutRounds(int64_t ranks, const Batch &batch) const;

  /// Fills `batch` with this rank's windows of round `round`; places without
  /// a byte to predict are ignored targets. Returns the number of predictions.
  int64_t fillHeldOut(int64_t round, int64_t rank, int64_t ranks,
                      const Batch &batch) const;

private:
  size_t size = 0, trainSize = 0;
  std::shared_ptr<const char> data; // unmaps itself
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATASET_H
