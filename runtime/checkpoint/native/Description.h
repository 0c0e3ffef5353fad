//===- Description.h - What a store holds, for programs ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_NATIVE_DESCRIPTION_H
#define FSDP_RUNTIME_CHECKPOINT_NATIVE_DESCRIPTION_H

#include "runtime/checkpoint/store/TensorStore.h"

namespace fsdp::checkpoint {

/// JSON of path, state, model and tensors, with a line for each.
std::string descriptionText(const TensorStore &store);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_NATIVE_DESCRIPTION_H
