//===- DcpMetadata.h - What a checkpoint of PyTorch consists of -*- C++ -*-===//
//
// The file .metadata of torch.distributed.checkpoint: a pickle of every item's
// name, and of a tensor's type, shape and boxes with the places where they lie.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_DCPMETADATA_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_DCPMETADATA_H

#include "fsdp/Artifact/Box.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::checkpoint {

/// The box of a tensor that a torch.save archive within a file holds; of an
/// object of Python without dimensions.
struct DcpBox : rt::Box {
  std::string file; // in the directory
  uint64_t offset = 0, length = 0;
};

struct DcpItem {
  std::string name;
  /// The dictionaries that it lies in, and its key; as PyTorch nests them.
  std::vector<std::string> path;
  std::string dtype; // "float32"; empty: an object of Python
  std::vector<int64_t> shape;
  std::vector<DcpBox> boxes; // one of an object
};

/// Throws fsdp::Error that begins with `origin`. Files are names of this
/// directory, shapes and boxes are no larger than tensors may be; whether the
/// boxes cover the tensor is not checked. `path` is left empty.
std::vector<DcpItem> readDcpMetadata(std::string_view bytes,
                                     const std::string &origin);

std::string writeDcpMetadata(const std::vector<DcpItem> &items);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_DCPMETADATA_H
