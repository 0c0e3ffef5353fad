//===- Mesh.cpp - A rank's place among others -----------------------------===//
#include "fsdp/Artifact/Mesh.h"

using namespace fsdp::rt;

Digit fsdp::rt::digitOf(const AxisRef &axis, const std::vector<int64_t> &mesh) {
  int64_t stride = 1;
  for (size_t a = size_t(axis.axis) + 1; a < mesh.size(); ++a)
    stride *= mesh[a];
  int64_t whole = mesh[size_t(axis.axis)];
  int64_t size = axis.size == 0 ? whole : axis.size;
  int64_t pre = axis.size == 0 ? 1 : axis.pre;
  return {stride * (whole / (pre * size)), size};
}

Coordinate fsdp::rt::coordinateOf(const GroupDesc &group,
                                  const std::vector<int64_t> &mesh,
                                  int64_t rank) {
  Coordinate place;
  for (int32_t i = 0; i < group.axes; ++i) {
    Digit digit = digitOf(group.axis[i], mesh);
    place.index = place.index * digit.size + rank / digit.stride % digit.size;
    place.count *= digit.size;
  }
  return place;
}
