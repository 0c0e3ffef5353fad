//===- TensorReader.cpp - Parts of a tensor from its boxes ----------------===//
#include "BlockChecksums.h"
#include "Contents.h"
#include "ConvertElements.h"
#include "TensorStore.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cassert>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

/// Rows and columns that are copied together where the elements of a row lie
/// apart in files: a few cache lines of each row of a file.
static constexpr int64_t kSide = 128;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

TensorReader::TensorReader(const StoredTensor &tensor, ShardView wanted,
                           DType as)
    : tensor(tensor), view(std::move(wanted)), as(as) {
  if (!isInside(view, tensor.shape) ||
      view.stored.size() != tensor.shape.size())
    throw Error("the tensor '" + tensor.name + "' has the shape " +
                listText(tensor.shape) + ", not the requested one");
  if (!canBecome(tensor.dtype, as))
    throw Error("the tensor '" + tensor.name + "' has the type " +
                dtypeName(tensor.dtype) + ", which does not become " +
                dtypeName(as));
  // With rows in another order, those of the view may lie anywhere.
  for (const Chunk &chunk : tensor.chunks)
    if (tensor.rowInFile || overlap(chunk, view)) {
      auto bytes =
          static_cast<uint64_t>(chunk.elements() * sizeOf(tensor.dtype));
      sources.push_back({&chunk, std::vector<bool>(blocksOf(bytes))});
    }
  isScattered =
      tensor.rowDim != 0 ||
      std::any_of(sources.begin(), sources.end(),
                  [](const Source &s) { return !s.chunk->strides.empty(); });
  dims = tensor.shape.size();
  assert((!isScattered || dims == 2) && "of two dimensions alone");
  if (!isScattered)
    collapse();
}

void TensorReader::collapse() {
  auto isWhole = [&](size_t d) {
    int64_t size = tensor.shape[d];
    return view.sizes[d] == size && view.stored[d] == size &&
           std::all_of(sources.begin(), sources.end(), [&](const Source &s) {
             return s.chunk->sizes[d] == size;
           });
  };
  for (; dims > 1 && isWhole(dims - 1); --dims)
    inner *= tensor.shape[dims - 1];
  if (dims == 0) { // a number is a line of one
    view = {wholeBox({1}), {1}};
    dims = 1;
  }
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

void TensorReader::read(int64_t first, int64_t count, std::byte *to) {
  std::vector<int64_t> at(dims);
  while (count > 0) {
    int64_t now = isScattered ? readSquares(first, count, to)
                              : readSegment(first, count, at, to);
    to += now * sizeOf(as);
    first += now;
    count -= now;
  }
}

/// Of these elements those of the first line; `at` has room for its place.
/// Returns how many.
int64_t TensorReader::readSegment(int64_t first, int64_t count,
                                  std::vector<int64_t> &at, std::byte *to) {
  size_t last = dims - 1;
  int64_t line = view.stored[last] * inner; // elements that are in a row
  int64_t index = first / line, begin = first % line;
  int64_t now = std::min(count, line - begin);
  bool isPadding = false;
  for (size_t d = last; d-- > 0;) {
    at[d] = view.offsets[d] + index % view.stored[d];
    isPadding |= at[d] >= view.end(d);
    index /= view.stored[d];
  }
  // Of the line, what the tensor has, then padding.
  int64_t filled = view.sizes[last] * inner;
  int64_t have = isPadding ? 0 : std::clamp<int64_t>(filled - begin, 0, now);
  if (have > 0)
    readLine(at, view.offsets[last] * inner + begin, have, to);
  std::memset(to + have * sizeOf(as), 0,
              static_cast<size_t>((now - have) * sizeOf(as)));
  return now;
}

/// Elements first … of the line at `at`, counted in the full tensor. Where rows
/// are in another order, each is looked for by itself.
void TensorReader::readLine(const std::vector<int64_t> &at, int64_t first,
                            int64_t count, std::byte *to) {
  if (!tensor.rowInFile)
    return copyRun(at, first, count, to);
  std::vector<int64_t> row = at;
  if (dims > 1) {
    row[0] = tensor.rowInFile(at[0]);
    return copyRun(row, first, count, to);
  }
  while (count > 0) {
    int64_t inRow = first % inner, now = std::min(count, inner - inRow);
    copyRun(row, tensor.rowInFile(first / inner) * inner + inRow, now, to);
    first += now;
    count -= now;
    to += now * sizeOf(as);
  }
}

/// The same with rows counted as in the file.
void TensorReader::copyRun(const std::vector<int64_t> &at, int64_t first,
                           int64_t count, std::byte *to) {
  for (Source &source : sources) {
    const Chunk &chunk = *source.chunk;
    if (tensor.shape.empty())
      return copyFrom(source, 0, 1, to);
    size_t last = dims - 1;
    int64_t begin = std::max(first, chunk.offsets[last] * inner);
    int64_t end = std::min(first + count, chunk.end(last) * inner);
    bool isInside = begin < end;
    int64_t line = 0; // of the chunk
    for (size_t d = 0; isInside && d < last; ++d) {
      int64_t index = at[d] - chunk.offsets[d];
      isInside = index >= 0 && index < chunk.sizes[d];
      line = line * chunk.sizes[d] + index;
    }
    if (isInside)
      copyFrom(source,
               (line * chunk.sizes[last] - chunk.offsets[last]) * inner + begin,
               end - begin, to + (begin - first) * sizeOf(as));
  }
}

void TensorReader::copyFrom(Source &source, int64_t element, int64_t count,
                            std::byte *to) {
  auto size = static_cast<uint64_t>(sizeOf(tensor.dtype));
  uint64_t first = static_cast<uint64_t>(element) * size;
  check(source, first, static_cast<uint64_t>(count) * size);
  convert(source.chunk->data + first, count, to);
}

void TensorReader::convert(const std::byte *from, int64_t count,
                           std::byte *to) {
  if (as == tensor.dtype)
    return std::memcpy(to, from, static_cast<size_t>(count * sizeOf(as))),
           void();
  if (double lost = convertElements(tensor.dtype, from, as, to, count))
    failTooLarge(lost);
}

void TensorReader::failTooLarge(double value) const {
  // The largest F32 is hardly beyond the largest BF16.
  bool isRemedy = as == DType::F16 && value < 3e38;
  const char *remedy = isRemedy ? "; bfloat16 and float32 hold it" : "";
  throw Error(format("the tensor '%s' has a value of magnitude %g, which would "
                     "be infinite as %s%s",
                     tensor.name.c_str(), value, dtypeName(as), remedy));
}

//===----------------------------------------------------------------------===//
// Squares
//===----------------------------------------------------------------------===//

/// Of these elements so many whole lines as are copied together, or what they
/// have of the first. Returns how many.
int64_t TensorReader::readSquares(int64_t first, int64_t count, std::byte *to) {
  int64_t line = view.stored[1], row = first / line, begin = first % line;
  int64_t rows = 1, columns = std::min(count, line - begin);
  if (columns == line)
    rows = std::min(kSide, count / line);
  // What the tensor has, the rest is padding.
  int64_t filledRows = std::clamp<int64_t>(view.sizes[0] - row, 0, rows);
  int64_t filled = std::clamp<int64_t>(view.sizes[1] - begin, 0, columns);
  if (filledRows < rows || filled < columns)
    std::memset(to, 0, static_cast<size_t>(rows * columns * sizeOf(as)));
  if (filledRows == 0)
    return rows * columns;
  for (int64_t c = 0; c < filled; c += kSide)
    readSquare({{view.offsets[0] + row, view.offsets[1] + begin + c},
                {filledRows, std::min(kSide, filled - c)}},
               columns, to + c * sizeOf(as));
  return rows * columns;
}

/// Writes a box to rows that are `pitch` elements apart.
void TensorReader::readSquare(const Box &box, int64_t pitch, std::byte *to) {
  int64_t size = sizeOf(tensor.dtype), columns = box.sizes[1];
  square.resize(static_cast<size_t>(kSide * kSide * size));
  for (Source &source : sources)
    gather(source, box, square.data());
  for (int64_t r = 0; r < box.sizes[0]; ++r)
    convert(square.data() + r * columns * size, columns,
            to + r * pitch * sizeOf(as));
}

/// Copies elements of a chunk to the square.
template <typename Place, typename Element>
static void copyPlaces(const std::vector<Place> &far,
                       const std::vector<Place> &near, Element element,
                       const std::byte *chunk, std::byte *square) {
  constexpr int64_t size = sizeof element;
  for (const Place &a : far)
    for (const Place &b : near) {
      std::memcpy(&element, chunk + (a.inChunk + b.inChunk) * size, size);
      std::memcpy(square + (a.inSquare + b.inSquare) * size, &element, size);
    }
}

/// The indices of dimension `d` of the box that the chunk has.
std::vector<TensorReader::Place>
TensorReader::placesAlong(size_t d, const Chunk &chunk, const Box &box) const {
  // A box without strides is row-major.
  int64_t stride = !chunk.strides.empty() ? chunk.strides[d]
                   : d == 0               ? chunk.sizes[1]
                                          : 1;
  std::vector<Place> places;
  for (int64_t i = 0; i < box.sizes[d]; ++i) {
    int64_t index = box.offsets[d] + i;
    if (tensor.rowInFile && d == tensor.rowDim)
      index = tensor.rowInFile(index);
    index -= chunk.offsets[d];
    if (index >= 0 && index < chunk.sizes[d])
      places.push_back({d == 0 ? i * box.sizes[1] : i, index * stride, stride});
  }
  return places;
}

/// Copies what the source has of the box, in the order of the file.
void TensorReader::gather(Source &source, const Box &box, std::byte *to) {
  const Chunk &chunk = *source.chunk;
  if (!tensor.rowInFile && !overlap(chunk, box))
    return;
  std::vector<Place> far = placesAlong(0, chunk, box),
                     near = placesAlong(1, chunk, box);
  if (far.empty() || near.empty())
    return;
  if (far[0].stride < near[0].stride)
    std::swap(far, near);
  auto byPlace = [](const Place &a, const Place &b) {
    return a.inChunk < b.inChunk;
  };
  auto [firstFar, lastFar] =
      std::minmax_element(far.begin(), far.end(), byPlace);
  auto [firstNear, lastNear] =
      std::minmax_element(near.begin(), near.end(), byPlace);
  int64_t first = firstFar->inChunk + firstNear->inChunk;
  int64_t last = lastFar->inChunk + lastNear->inChunk;
  int64_t size = sizeOf(tensor.dtype);
  check(source, static_cast<uint64_t>(first * size),
        static_cast<uint64_t>((last + 1 - first) * size));
  auto copy = [&](auto element) {
    copyPlaces(far, near, element, chunk.data, to);
  };
  switch (size) {
  case 1:
    return copy(uint8_t());
  case 2:
    return copy(uint16_t());
  case 4:
    return copy(uint32_t());
  default:
    return copy(uint64_t());
  }
}

//===----------------------------------------------------------------------===//
// Checksums
//===----------------------------------------------------------------------===//

/// Checks the blocks of these bytes that have not been checked before.
void TensorReader::check(Source &source, uint64_t first, uint64_t bytes) {
  const Chunk &chunk = *source.chunk;
  if (chunk.checksums.empty())
    return;
  std::string_view all(
      reinterpret_cast<const char *>(chunk.data),
      static_cast<size_t>(chunk.elements() * sizeOf(tensor.dtype)));
  for (uint64_t block = first / kChecksumBlock;
       block * kChecksumBlock < first + bytes; ++block) {
    if (source.checked[block])
      continue;
    uint64_t begin = block * kChecksumBlock;
    if (checksumOf(all.substr(begin, kChecksumBlock)) != chunk.checksums[block])
      throw Error("damaged checkpoint: the bytes of '" + tensor.name +
                  "' in '" + chunk.file + "' are not those that were written");
    source.checked[block] = true;
  }
}
