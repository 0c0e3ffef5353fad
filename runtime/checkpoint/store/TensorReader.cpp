//===- TensorReader.cpp - Parts of a tensor from its boxes ----------------===//
#include "BlockChecksums.h"
#include "Contents.h"
#include "ConvertElements.h"
#include "TensorStore.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

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
  collapse();
}

void TensorReader::collapse() {
  dims = tensor.shape.size();
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
  size_t last = dims - 1;
  int64_t line = view.stored[last] * inner; // elements that are in a row
  std::vector<int64_t> at(dims);
  while (count > 0) {
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
    to += now * sizeOf(as);
    first += now;
    count -= now;
  }
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
  uint64_t bytes = static_cast<uint64_t>(count) * size;
  check(source, first, bytes);
  const std::byte *from = source.chunk->data + first;
  if (as == tensor.dtype)
    return std::memcpy(to, from, bytes), void();
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
