//===- Safetensors.h - Tensors in a file ------------------------*- C++ -*-===//
//
// The safetensors format: a JSON header of names, types, shapes and offsets,
// then the data. The writer's bytes equal the reference writer's for the same
// tensors; the reader checks every length before it uses it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_SAFETENSORS_H
#define FSDP_RUNTIME_SAFETENSORS_H

#include "fsdp/Runtime/Types.h"
#include <map>
#include <string>
#include <vector>

namespace fsdp::rt {

/// A tensor whose bytes belong to somebody else.
struct TensorView {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  const std::byte *data;
};

/// Writes the file whole or not at all. Throws fsdp::Error.
void writeSafetensors(const std::string &path, std::vector<TensorView> tensors,
                      const std::map<std::string, std::string> &metadata);

/// A file read into memory.
class SafetensorsFile {
public:
  /// Throws fsdp::Error that names the path and what is wrong with it.
  explicit SafetensorsFile(const std::string &path);

  const std::vector<TensorView> &tensors() const { return views; }

private:
  std::string bytes;
  std::vector<TensorView> views;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_SAFETENSORS_H
