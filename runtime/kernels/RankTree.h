//===- RankTree.h - The order of a reduction over ranks ---------*- C++ -*-===//
//
// Shared by the kernels of both targets.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_KERNELS_RANKTREE_H
#define FSDP_RUNTIME_KERNELS_RANKTREE_H

namespace fsdp::rt {

/// Trees nest by mesh axis: the ranks along the last axis, which are
/// neighbours, are combined first, then their results along the axis before,
/// and so on. The tree along one axis is binary, its left side the largest
/// power of two below the number of ranks. A reduction over some axes followed
/// by one over axes before them is therefore one reduction over all of them,
/// to the bit.
struct RankTree {
  static constexpr int kMaxAxes = 8;
  struct Axis {
    int size;   // ranks along the axis, at least 2
    int stride; // positions in the group from one rank to the next
  };
  Axis axis[kMaxAxes]; // in the order of the mesh
  int axes = 0;        // 0: one rank

  int ranks() const {
    int product = 1;
    for (int i = 0; i < axes; ++i)
      product *= axis[i].size;
    return product;
  }
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_KERNELS_RANKTREE_H
