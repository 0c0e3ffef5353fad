//===- ChooseDevice.h - The GPU of a rank -----------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CUDA_CHOOSEDEVICE_H
#define FSDP_RUNTIME_CUDA_CHOOSEDEVICE_H

#include "fsdp/Core/Context.h"

namespace fsdp::rt {

/// A rank's GPU, as the others know it.
struct Seat {
  char host[64] = {};
  /// Of the GPU among those of the machine; -1 where no two ranks can have the
  /// same.
  int64_t gpu = -1;
};

/// Takes a GPU for this rank, and with FSDP_SHARE_GPU one of another rank.
/// Throws fsdp::Error if there is none, or none that runs code for `target`,
/// which is a manifest's "sm_90, nvcc 13.0", or empty.
Seat chooseDevice(const World &world, const std::string &target);

/// Collective. Throws fsdp::Error, on all ranks, if two ranks have one GPU and
/// nobody asked for that.
void requireOwnDevices(const World &world, const Seat &mine);

/// What its maker calls this rank's: "NVIDIA H200".
std::string nameOfDevice();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_CHOOSEDEVICE_H
