//===- Safetensors.h - Tensors in a file ------------------------*- C++ -*-===//
//
// The safetensors format: a JSON header of names, types, shapes and offsets,
// then the data. The writer's bytes equal the reference writer's for the same
// tensors; the reader checks every length before it uses it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DATA_SAFETENSORS_H
#define FSDP_DATA_SAFETENSORS_H

#include "fsdp/Runtime/Types.h"
#include "fsdp/Support/MappedFile.h"
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::rt {

/// A tensor whose bytes belong to somebody else.
struct TensorView {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  const std::byte *data;
};

/// A tensor whose bytes are made while they are written: `write` hands them to
/// its argument, in order.
struct TensorSource {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::function<void(const std::function<void(std::string_view)> &)> write;
};

/// Puts the tensors into the format's order and returns all that stands before
/// their bytes: the header and its length.
std::string
beginSafetensors(std::vector<TensorSource> &tensors,
                 const std::map<std::string, std::string> &metadata);

/// Writes the file whole or not at all. Throws fsdp::Error.
void writeSafetensors(const std::string &path,
                      std::vector<TensorSource> tensors,
                      const std::map<std::string, std::string> &metadata);
void writeSafetensors(const std::string &path, std::vector<TensorView> tensors,
                      const std::map<std::string, std::string> &metadata);

/// The type that the format calls so; unset: there is none, or none of ours.
std::optional<DType> dtypeNamed(std::string_view name);

/// A mapped file.
class SafetensorsFile {
public:
  /// Throws fsdp::Error that names the path and what is wrong with it. Tensors
  /// that are left out by their names may have any type; only their places are
  /// looked at.
  explicit SafetensorsFile(
      const std::string &path, FileKind kind = FileKind::Any,
      const std::function<bool(const std::string &name)> &isLeftOut = nullptr);

  /// Those that are not left out.
  const std::vector<TensorView> &tensors() const { return views; }
  /// What the writer said beside the tensors.
  const std::map<std::string, std::string> &metadata() const { return said; }
  /// The whole file.
  std::string_view bytes() const { return file.bytes(); }
  /// What stands before the bytes of tensors, as beginSafetensors makes it.
  std::string_view header() const;

private:
  MappedFile file;
  std::map<std::string, std::string> said;
  std::vector<TensorView> views;
};

} // namespace fsdp::rt

#endif // FSDP_DATA_SAFETENSORS_H
