//===- Groups.cpp - The ranks of a group, in order ------------------------===//
#include "Groups.h"
#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <string>

using namespace fsdp;
using namespace fsdp::rt;

static std::vector<Digit> digitsOf(const GroupDesc &group,
                                   const std::vector<int64_t> &meshAxes) {
  std::vector<Digit> digits;
  for (int32_t i = 0; i < group.axes; ++i)
    digits.push_back(digitOf(group.axis[i], meshAxes));
  return digits;
}

std::vector<int> fsdp::rt::groupRanks(const GroupDesc &group,
                                      const std::vector<int64_t> &meshAxes,
                                      int rank) {
  std::vector<Digit> digits = digitsOf(group, meshAxes);
  int64_t start = rank;
  for (const Digit &d : digits)
    start -= start / d.stride % d.size * d.stride;
  std::vector<int> ranks{int(start)};
  for (const Digit &d : digits) {
    std::vector<int> next;
    for (int r : ranks)
      for (int64_t i = 0; i < d.size; ++i)
        next.push_back(int(r + i * d.stride));
    ranks = std::move(next);
  }
  return ranks;
}

RankTree fsdp::rt::rankTree(const GroupDesc &group,
                            const std::vector<int64_t> &meshAxes) {
  struct Axis {
    int64_t stride; // in ranks of the job: what orders axes as the mesh does
    RankTree::Axis inGroup;
  };
  std::vector<Axis> axes;
  int positions = 1;
  std::vector<Digit> digits = digitsOf(group, meshAxes);
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit) {
    if (digit->size > 1)
      axes.push_back({digit->stride, {int(digit->size), positions}});
    positions *= int(digit->size);
  }
  static_assert(RankTree::kMaxAxes == kMaxCollectiveAxes);
  if (axes.size() > RankTree::kMaxAxes)
    throw Error("a collective goes over " + std::to_string(axes.size()) +
                " axes of the mesh; at most " +
                std::to_string(RankTree::kMaxAxes) + " are possible");
  std::sort(axes.begin(), axes.end(),
            [](const Axis &a, const Axis &b) { return a.stride > b.stride; });
  RankTree tree;
  for (const Axis &axis : axes)
    tree.axis[tree.axes++] = axis.inGroup;
  return tree;
}
