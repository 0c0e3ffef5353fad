//===- NativeStore.h - A checkpoint of a run --------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_NATIVE_NATIVESTORE_H
#define FSDP_RUNTIME_CHECKPOINT_NATIVE_NATIVESTORE_H

#include "runtime/checkpoint/store/TensorStore.h"

namespace fsdp::checkpoint {

/// Opens the directory of a step. The index is compared with its marker, files
/// with their sizes and their headers with what the index says; checksums of
/// tensors are compared by who reads them.
std::unique_ptr<TensorStore> openNative(const std::string &directory);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_NATIVE_NATIVESTORE_H
