//===- Box.h - Parts of tensors ---------------------------------*- C++ -*-===//
//
// The parts of tensors that ranks hold, that files keep and that programs copy
// are boxes. What follows from the numbers of a box is here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_ARTIFACT_BOX_H
#define FSDP_ARTIFACT_BOX_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Elements of a tensor of this shape.
int64_t elementCount(const std::vector<int64_t> &shape);

/// "[0, 3, 17]": the place of a row-major element.
std::string indexText(int64_t element, const std::vector<int64_t> &shape);

/// Of every dimension of a tensor the indices [offset, offset + size).
struct Box {
  std::vector<int64_t> offsets, sizes;

  int64_t end(size_t dim) const { return offsets[dim] + sizes[dim]; }
  int64_t elements() const { return elementCount(sizes); }
};

/// All of a tensor of this shape.
Box wholeBox(const std::vector<int64_t> &shape);

/// Whether the box, of numbers from 0 on, has the dimensions of the shape and
/// ends within it.
bool isInside(const Box &box, const std::vector<int64_t> &shape);

/// Whether two boxes share an element. Both are inside one tensor.
bool overlap(const Box &a, const Box &b);

/// The box of a full tensor that a rank holds. Of every dimension it has room
/// for `stored` >= size indices: the box comes first, the rest is zero.
struct ShardView : Box {
  std::vector<int64_t> stored;
};

/// A run of elements that lie one after another both where they are stored and
/// in the full tensor: the first one's place there and there, and how many.
using TakeRun =
    std::function<void(int64_t stored, int64_t whole, int64_t count)>;

/// Calls `run` with the longest runs of the box, in order.
void forEachRun(const ShardView &view, const std::vector<int64_t> &full,
                const TakeRun &run);

/// The same for the `count` stored elements from `first` on alone: a run that
/// is only partly there is cut.
void forEachRunWithin(int64_t first, int64_t count, const ShardView &view,
                      const std::vector<int64_t> &full, const TakeRun &run);

/// How many runs a box has that is not empty, or the largest number if they
/// are more.
int64_t countRuns(const ShardView &view, const std::vector<int64_t> &full);

} // namespace fsdp::rt

#endif // FSDP_ARTIFACT_BOX_H
