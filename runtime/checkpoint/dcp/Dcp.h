//===- Dcp.h - Checkpoints of torch.distributed.checkpoint ------*- C++ -*-===//
//
// A directory with a file .metadata, written last, and files __R_N.distcp that
// hold boxes of tensors. Names are those of torchtitan: parameters by their
// names, optimizer.state.NAME.exp_avg for what is NAME.exp_avg here. Neither
// Python nor PyTorch is needed, and nothing that a file says is run.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_DCP_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_DCP_H

#include "runtime/checkpoint/store/TensorStore.h"
#include <memory>
#include <string>

namespace fsdp::checkpoint {

/// Whether a directory has what such a checkpoint is known by.
bool isDcp(const std::string &path);

/// Opens such a checkpoint. What is no tensor with a type of ours is left out;
/// the step is set if the checkpoint says it. Throws fsdp::Error.
std::unique_ptr<TensorStore> openDcp(const std::string &path);

/// Writes all tensors of a store as such a checkpoint, split as they are split
/// there and in torchtitan's rotary layout, which the store has from then on.
/// The directory must be absent or empty, and is whole or not there. Throws
/// fsdp::Error.
void writeDcp(TensorStore &store, const std::string &folder);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_DCP_H
