//===- VerifyTensors.h - Whether bytes are as they were written -*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_VERIFYTENSORS_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_VERIFYTENSORS_H

#include "TensorStore.h"

namespace fsdp::checkpoint {

struct Verification {
  uint64_t checked = 0, unchecked = 0; // bytes with and without a checksum
  /// Sentences that name file, tensor and bytes.
  std::vector<std::string> damage;
};

/// Compares every block of every tensor with its checksum, on so many threads.
/// `progress` is called now and then with the bytes that are done.
Verification verifyTensors(const TensorStore &store, int threads,
                           const std::function<void(uint64_t done)> &progress);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_VERIFYTENSORS_H
