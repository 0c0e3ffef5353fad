//===- Mesh.h - A rank's place among others ---------------------*- C++ -*-===//
//
// Rank to coordinate is row-major: the last axis of the mesh varies fastest.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_ARTIFACT_MESH_H
#define FSDP_ARTIFACT_MESH_H

#include "fsdp/Runtime/Types.h"
#include <vector>

namespace fsdp::rt {

/// An axis of the mesh, or a part of one, as a digit of the rank:
/// rank / stride % size.
struct Digit {
  int64_t stride, size;
};
/// `mesh` holds the sizes of the mesh's axes in order.
Digit digitOf(const AxisRef &axis, const std::vector<int64_t> &mesh);

/// Place `index` of `count`.
struct Coordinate {
  int64_t index = 0, count = 1;
};

/// Where `rank` stands along a group's axes, the first of them slowest. Without
/// an axis it stands alone.
Coordinate coordinateOf(const GroupDesc &group,
                        const std::vector<int64_t> &mesh, int64_t rank);
inline Coordinate coordinateOf(const std::vector<AxisRef> &axes,
                               const std::vector<int64_t> &mesh, int64_t rank) {
  return coordinateOf({static_cast<int32_t>(axes.size()), axes.data()}, mesh,
                      rank);
}

} // namespace fsdp::rt

#endif // FSDP_ARTIFACT_MESH_H
