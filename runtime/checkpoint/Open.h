//===- Open.h - Finding what a path is --------------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_OPEN_H
#define FSDP_RUNTIME_CHECKPOINT_OPEN_H

#include "runtime/checkpoint/store/TensorStore.h"

namespace fsdp::checkpoint {

/// Opens what `path` is: a step of a checkpoint folder, the folder (its newest
/// committed step), a directory of Hugging Face, a checkpoint of
/// torch.distributed.checkpoint. Throws fsdp::Error that names
/// the file, and what else could have been meant.
std::unique_ptr<TensorStore> openTensorStore(const std::string &path);

/// What openTensorStore would open there now, as a path that stays the same
/// while a run saves: of a folder of steps the newest, else `path` itself.
std::string findCheckpoint(const std::string &path);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_OPEN_H
