//===- TensorStore.h - Tensors in files, in pieces --------------*- C++ -*-===//
//
// What weights and optimizer states are read from, whatever wrote them: a
// checkpoint of a run, a directory of Hugging Face, one of PyTorch's
// distributed checkpoint. A tensor has a name, a type and a shape, and lies in
// files as boxes that cover it. Files are mapped: who asks for a part of a
// tensor reads that part.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CHECKPOINT_TENSORSTORE_H
#define FSDP_CHECKPOINT_TENSORSTORE_H

#include "fsdp/Checkpoint/RunState.h"
#include "fsdp/Runtime/Manifest.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

/// A checksum is of so many bytes of a chunk; the last one of what is left.
inline constexpr uint64_t kChecksumBlock = uint64_t{1} << 24;

/// A box of a tensor, row-major, in a mapped file.
struct Chunk {
  std::vector<int64_t> offsets, sizes; // in the full tensor
  const std::byte *data;
  std::string file; // for messages
  /// XXH3 (64 bits) of every block of kChecksumBlock bytes; empty: there are
  /// none.
  std::vector<uint64_t> checksums;
};

struct StoredTensor {
  std::string name;
  std::string role; // as of a range: "parameter", "state"; empty: not known
  rt::DType dtype = rt::DType::F32;
  std::vector<int64_t> shape;
  /// Disjoint, and together the tensor.
  std::vector<Chunk> chunks;
  /// The row (index of dimension 0) of the chunks that is the row `i` of the
  /// tensor, where files keep rows in another order; null: the same.
  std::function<int64_t(int64_t i)> rowInFile;
};

class TensorStore {
public:
  virtual ~TensorStore() = default;

  /// What it was opened from.
  const std::string &path() const { return origin; }
  /// By name, ascending.
  const std::vector<StoredTensor> &tensors() const { return all; }
  /// Null if there is none of that name.
  const StoredTensor *find(const std::string &name) const;
  /// What is known of the model; unset: nothing.
  const std::optional<rt::ModelInfo> &model() const { return about; }
  /// Where the run stood that wrote it; unset: there are weights alone.
  const std::optional<RunState> &state() const { return run; }

protected:
  std::string origin;
  std::vector<StoredTensor> all;
  std::optional<rt::ModelInfo> about;
  std::optional<RunState> run;
};

/// Opens what `path` is: a step of a checkpoint folder, the folder (its newest
/// committed step), a directory of Hugging Face. Throws fsdp::Error that names
/// the file, and what else could have been meant.
std::unique_ptr<TensorStore> openTensorStore(const std::string &path);

/// Reads parts of one tensor. Every block that is touched is checked once.
class TensorReader {
public:
  /// `view`: the box that is wanted, as a rank stores it. The store must
  /// outlive the object.
  TensorReader(const StoredTensor &tensor, rt::ShardView view, rt::DType as);

  /// Writes the stored elements first … first + count - 1 of the box to `to`,
  /// row-major and converted; what lies beyond the tensor is zero. Throws
  /// fsdp::Error that names file and tensor if a checksum is another.
  void read(int64_t first, int64_t count, std::byte *to);

private:
  const StoredTensor &tensor;
  rt::ShardView view;
  rt::DType as;
  std::vector<std::vector<bool>> checked; // by chunk and block
};

} // namespace fsdp::checkpoint

#endif // FSDP_CHECKPOINT_TENSORSTORE_H
