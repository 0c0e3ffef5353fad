//===- TensorStore.h - Tensors in files, in pieces --------------*- C++ -*-===//
//
// What weights and optimizer states are read from, whatever wrote them: a
// checkpoint of a run, a directory of Hugging Face, one of PyTorch's
// distributed checkpoint. A tensor has a name, a type and a shape, and lies in
// files as boxes that cover it. Files are mapped: who asks for a part of a
// tensor reads that part.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_TENSORSTORE_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_TENSORSTORE_H

#include "RunState.h"
#include "fsdp/Artifact/Manifest.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

/// A checksum is of so many bytes of a chunk; the last one of what is left.
inline constexpr uint64_t kChecksumBlock = uint64_t{1} << 24;

/// A box of a tensor in a mapped file.
struct Chunk : rt::Box {
  const std::byte *data; // of its first element
  std::string file;      // for messages
  /// XXH3 (64 bits) of every block of kChecksumBlock bytes; empty: there are
  /// none.
  std::vector<uint64_t> checksums;
  /// CRC-32 of all its bytes, as archives have it; only who verifies reads it.
  std::optional<uint32_t> crc32 = std::nullopt;
  /// Of a box of two dimensions, the elements from one index of each dimension
  /// to the next; empty: the box is row-major, without gaps. There are no gaps
  /// in a box with checksums.
  std::vector<int64_t> strides = {};
};

struct StoredTensor {
  std::string name;
  rt::RangeRole role = rt::RangeRole::Parameter;
  rt::DType dtype = rt::DType::F32;
  std::vector<int64_t> shape;
  /// Disjoint, and together the tensor.
  std::vector<Chunk> chunks;
  /// The row (index of dimension `rowDim`) of the chunks that is the row `i` of
  /// the tensor, where files keep rows in another order; null: the same.
  std::function<int64_t(int64_t i)> rowInFile = nullptr;
  size_t rowDim = 0; // 1 only of two dimensions
};

/// The transpose of a tensor of two dimensions, in the same bytes.
StoredTensor transposed(StoredTensor tensor);

/// Of the full tensor.
int64_t bytesOf(const StoredTensor &tensor);
/// "2048 x 256"; of no dimensions "a scalar".
std::string shapeText(const std::vector<int64_t> &shape);
bool isFloat(rt::DType type);
/// The box that is the full tensor.
rt::ShardView wholeView(const StoredTensor &tensor);

/// What files have besides: no tensor, or one of a type that we have not.
struct LeftOut {
  std::string name;
  std::string what; // "an object of Python"
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
  /// What is there and cannot be read.
  const std::vector<LeftOut> &leftOut() const { return others; }
  /// What is known of the model; unset: nothing.
  const std::optional<rt::ModelInfo> &model() const { return about; }
  /// Where the run stood that wrote it; unset: there are weights alone.
  const std::optional<RunState> &state() const { return run; }
  /// Why nothing can go on with the states of the optimizer; empty: it can.
  const std::string &optimizerProblem() const { return noOptimizer; }

  /// Makes the tensors those of a program of `artifact`: rows of heads come in
  /// its rotary layout (`rope_halves`), whatever layout the files have. Called
  /// after opening by whoever loads into an artifact that knows its model.
  /// Where the store knows neither its model nor its layout, nothing is
  /// changed. Throws fsdp::Error with all fields in which the models differ.
  void adaptTo(const rt::ModelInfo &artifact);

protected:
  std::string origin;
  std::vector<StoredTensor> all;
  std::vector<LeftOut> others;
  std::optional<rt::ModelInfo> about;
  /// Whether rotary pairs are the halves of a head, where the format says it
  /// and there is no model that does; unset: not known.
  std::optional<bool> halvesOfFormat;
  std::optional<RunState> run;
  std::string noOptimizer;
};

/// Reads parts of one tensor. Every block that is touched is checked once.
/// Where the tensor and its boxes are whole along the last dimensions, these
/// count as one, so that rows are copied many at a time. Where elements of a
/// row lie apart in files, as in a transpose, squares of rows and columns are
/// copied, so that what is near in a file is read together.
class TensorReader {
public:
  /// `view`: the box that is wanted, as a rank stores it. The store must
  /// outlive the object. Throws fsdp::Error if the shape is another or the type
  /// cannot become `as`: floating-point types can become each other, rounded to
  /// the nearest even, and every type can become F64.
  TensorReader(const StoredTensor &tensor, rt::ShardView view, rt::DType as);

  /// Writes the stored elements first … first + count - 1 of the box to `to`,
  /// row-major and converted; what lies beyond the tensor is zero. Throws
  /// fsdp::Error that names file and tensor if a checksum is another, and the
  /// tensor if a finite value would become infinite.
  void read(int64_t first, int64_t count, std::byte *to);

private:
  /// A box of the tensor that has something of the view.
  struct Source {
    const Chunk *chunk;
    std::vector<bool> checked; // by block
  };
  /// An index of a dimension of a square: where it lies in the square and in
  /// the chunk, and how far the next one is in the chunk, all in elements.
  struct Place {
    int64_t inSquare, inChunk, stride;
  };
  void collapse();
  int64_t readSegment(int64_t first, int64_t count, std::vector<int64_t> &at,
                      std::byte *to);
  void readLine(const std::vector<int64_t> &at, int64_t first, int64_t count,
                std::byte *to);
  void copyRun(const std::vector<int64_t> &at, int64_t first, int64_t count,
               std::byte *to);
  void copyFrom(Source &source, int64_t element, int64_t count, std::byte *to);
  int64_t readSquares(int64_t first, int64_t count, std::byte *to);
  void readSquare(const rt::Box &box, int64_t pitch, std::byte *to);
  std::vector<Place> placesAlong(size_t d, const Chunk &chunk,
                                 const rt::Box &box) const;
  void gather(Source &source, const rt::Box &box, std::byte *to);
  void convert(const std::byte *from, int64_t count, std::byte *to);
  void check(Source &source, uint64_t first, uint64_t bytes);
  [[noreturn]] void failTooLarge(double value) const;

  const StoredTensor &tensor;
  rt::ShardView view; // of the first `dims` dimensions
  rt::DType as;
  std::vector<Source> sources;
  size_t dims = 0;          // at least one; the rest is whole
  int64_t inner = 1;        // elements of the rest
  bool isScattered = false; // elements of a row lie apart in files
  std::vector<std::byte> square;
};

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_TENSORSTORE_H
