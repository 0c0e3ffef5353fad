//===- Contents.cpp - Boxes of tensors in files ---------------------------===//
#include "Contents.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <tuple>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

std::string checkpoint::listText(const std::vector<int64_t> &numbers) {
  std::string text = "[";
  for (size_t i = 0; i < numbers.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::to_string(numbers[i]);
  return text + "]";
}

//===----------------------------------------------------------------------===//
// Names of files
//===----------------------------------------------------------------------===//

void checkpoint::addPart(Contents &contents, Contents part,
                         const std::string &origin) {
  for (auto &[name, tensor] : part.tensors) {
    auto [known, isNew] = contents.tensors.try_emplace(name, tensor);
    if (isNew)
      continue;
    IndexedTensor &before = known->second;
    if (before.role != tensor.role || before.dtype != tensor.dtype ||
        before.shape != tensor.shape)
      throw Error(origin + ": '" + name +
                  "' has another role, type or shape than other ranks say");
    std::move(tensor.chunks.begin(), tensor.chunks.end(),
              std::back_inserter(before.chunks));
  }
  contents.files.merge(part.files);
}

/// The dimension along which the boxes begin at the most places.
static size_t mostCutDimension(const IndexedTensor &tensor) {
  size_t best = 0, most = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    std::vector<int64_t> begins;
    for (const IndexedChunk &chunk : tensor.chunks)
      begins.push_back(chunk.offsets[d]);
    std::sort(begins.begin(), begins.end());
    auto count = static_cast<size_t>(std::unique(begins.begin(), begins.end()) -
                                     begins.begin());
    if (count > most)
      std::tie(best, most) = std::pair(d, count);
  }
  return best;
}

/// A pair of boxes that share an element; null if there is none. They are
/// visited along one dimension, with those at hand that reach so far.
static std::pair<const IndexedChunk *, const IndexedChunk *>
findOverlap(const IndexedTensor &tensor) {
  std::vector<const IndexedChunk *> sorted, open;
  for (const IndexedChunk &chunk : tensor.chunks)
    sorted.push_back(&chunk);
  if (tensor.shape.empty())
    return sorted.size() > 1 ? std::pair(sorted[0], sorted[1])
                             : std::pair(nullptr, nullptr);
  size_t d = mostCutDimension(tensor);
  std::sort(sorted.begin(), sorted.end(), [d](const auto *a, const auto *b) {
    return a->offsets[d] < b->offsets[d];
  });
  for (const IndexedChunk *chunk : sorted) {
    auto isPast = [&](const IndexedChunk *other) {
      return other->end(d) <= chunk->offsets[d];
    };
    open.erase(std::remove_if(open.begin(), open.end(), isPast), open.end());
    for (const IndexedChunk *other : open)
      if (overlap(*chunk, *other))
        return {other, chunk};
    open.push_back(chunk);
  }
  return {nullptr, nullptr};
}

void checkpoint::checkCovering(const Contents &contents,
                               const std::string &origin) {
  for (const auto &[name, tensor] : contents.tensors) {
    auto fail = [&, &name = name](const std::string &what) {
      throw Error(origin + ": '" + name + "' " + what);
    };
    int64_t elements = elementCount(tensor.shape);
    CheckedSize covered = 0;
    for (const IndexedChunk &chunk : tensor.chunks) {
      covered += chunk.elements();
      if (chunk.elements() == 0 && elements > 0)
        fail("has a box without elements in '" + chunk.file + "'");
    }
    if (!covered.fits(elements) || covered.get() != elements)
      fail("has " + std::to_string(elements) + " elements, its boxes " +
           std::to_string(covered.saturated()));
    auto [a, b] = findOverlap(tensor);
    if (a)
      fail("has boxes that overlap, in '" + a->file + "' at " +
           listText(a->offsets) + " and in '" + b->file + "' at " +
           listText(b->offsets));
  }
}
