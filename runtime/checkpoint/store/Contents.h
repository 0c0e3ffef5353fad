//===- Contents.h - Boxes of tensors in files -------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_CONTENTS_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_CONTENTS_H

#include "fsdp/Artifact/Box.h"
#include "fsdp/Artifact/RangeRole.h"
#include "fsdp/Runtime/Types.h"
#include <map>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

/// A box of a tensor and where it lies.
struct IndexedChunk : rt::Box {
  std::string file;
  std::string name;                // in the file
  std::vector<uint64_t> checksums; // of its blocks
};

struct IndexedTensor {
  rt::RangeRole role = rt::RangeRole::Parameter;
  rt::DType dtype;
  std::vector<int64_t> shape;
  std::vector<IndexedChunk> chunks;
};

struct IndexedFile {
  uint64_t bytes;
  uint64_t header; // checksum of what stands before the tensors
};

struct Contents {
  std::map<std::string, IndexedTensor> tensors;
  std::map<std::string, IndexedFile> files;
};

/// Adds what another rank has written. Throws fsdp::Error where the two
/// contradict each other.
void addPart(Contents &contents, Contents part, const std::string &origin);
/// Throws fsdp::Error unless the chunks of every tensor are disjoint and
/// together the tensor.
void checkCovering(const Contents &contents, const std::string &origin);

/// "[0, 1024]".
std::string listText(const std::vector<int64_t> &numbers);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_CONTENTS_H
