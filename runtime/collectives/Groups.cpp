//===- Groups.cpp - The ranks of a group, in order ------------------------===//
#include "Groups.h"
#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Runtime/Runtime.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <string>
#include <tuple>

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

//===----------------------------------------------------------------------===//
// Two levels
//===----------------------------------------------------------------------===//

namespace {

/// The axes of a tree, the last of them first, with strides in the group.
using AxesInward = std::vector<RankTree::Axis>;

} // namespace

/// The same axes over consecutive numbers.
static RankTree compact(const AxesInward &axes) {
  RankTree tree;
  if (axes.size() > RankTree::kMaxAxes)
    throw Error("a sum in two levels goes over more axes than a tree has");
  tree.axes = int(axes.size());
  int stride = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    tree.axis[axes.size() - 1 - i] = {axes[i].size, stride};
    stride *= axes[i].size;
  }
  return tree;
}

/// The position in the group of number `index` along these axes.
static int positionOf(const AxesInward &axes, int index) {
  int position = 0;
  for (const RankTree::Axis &axis : axes) {
    position += index % axis.size * axis.stride;
    index /= axis.size;
  }
  return position;
}

/// Gives the axes of nodes and takes them off `axes`, which are those of a
/// whole group.
static AxesInward takeNode(AxesInward &axes, int nodeRanks) {
  AxesInward inside;
  int rest = nodeRanks;
  while (rest > 1 && !axes.empty()) {
    RankTree::Axis &axis = axes.front();
    if (rest >= axis.size) {
      if (rest % axis.size != 0)
        break;
      rest /= axis.size;
      inside.push_back(axis);
      axes.erase(axes.begin());
      continue;
    }
    // The tree along an axis splits at powers of two.
    if ((rest & (rest - 1)) != 0 || axis.size % rest != 0)
      break;
    inside.push_back({rest, axis.stride});
    axis = {axis.size / rest, axis.stride * rest};
    rest = 1;
  }
  if (rest != 1)
    throw Error("a sum over ranks in two levels: " + std::to_string(nodeRanks) +
                " ranks in each node are no part of its fixed order");
  return inside;
}

std::vector<int> fsdp::rt::nodeRanksOfGroups(const fsdp_artifact &artifact) {
  std::vector<int> nodeRanks(size_t(artifact.groups), 0);
  for (int32_t i = 0; i < artifact.collectives; ++i) {
    const CollectiveDesc &desc = artifact.collective[i];
    int &known = nodeRanks[size_t(desc.group)];
    known = std::max(known, int(desc.nodeRanks));
  }
  return nodeRanks;
}

NodeLevels fsdp::rt::nodeLevels(const RankTree &tree, int nodeRanks, int me) {
  AxesInward axes(tree.axis, tree.axis + tree.axes);
  std::reverse(axes.begin(), axes.end());
  AxesInward inside = takeNode(axes, nodeRanks);
  NodeLevels levels;
  levels.inside = compact(inside);
  levels.between = compact(axes);
  for (int node = 0; node < levels.nodes(); ++node)
    for (int place = 0; place < levels.places(); ++place) {
      int position = positionOf(axes, node) + positionOf(inside, place);
      levels.positions.push_back(position);
      if (position == me)
        std::tie(levels.node, levels.place) = std::tie(node, place);
    }
  return levels;
}
