//===- TensorStore.cpp - Tensors in files, in pieces ----------------------===//
#include "TensorStore.h"
#include <algorithm>
#include <cassert>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

int64_t checkpoint::bytesOf(const StoredTensor &tensor) {
  return elementCount(tensor.shape) * sizeOf(tensor.dtype);
}

std::string checkpoint::shapeText(const std::vector<int64_t> &shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "a scalar" : text;
}

ShardView checkpoint::wholeView(const StoredTensor &tensor) {
  return {wholeBox(tensor.shape), tensor.shape};
}

StoredTensor checkpoint::transposed(StoredTensor tensor) {
  assert(tensor.shape.size() == 2 && "of two dimensions alone");
  std::swap(tensor.shape[0], tensor.shape[1]);
  tensor.rowDim = 1 - tensor.rowDim;
  for (Chunk &chunk : tensor.chunks) {
    if (chunk.strides.empty())
      chunk.strides = {chunk.sizes[1], 1};
    for (std::vector<int64_t> *two :
         {&chunk.offsets, &chunk.sizes, &chunk.strides})
      std::swap(two->front(), two->back());
  }
  return tensor;
}

const StoredTensor *TensorStore::find(const std::string &name) const {
  auto at =
      std::lower_bound(all.begin(), all.end(), name,
                       [](const StoredTensor &tensor, const std::string &name) {
                         return tensor.name < name;
                       });
  return at != all.end() && at->name == name ? &*at : nullptr;
}
