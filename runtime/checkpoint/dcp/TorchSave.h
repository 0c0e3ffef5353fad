//===- TorchSave.h - What torch.save writes ---------------------*- C++ -*-===//
//
// A tensor or an object of Python in an archive of torch.save: data.pkl says
// what it is, data/0 has the bytes of a tensor.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_TORCHSAVE_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_TORCHSAVE_H

#include "fsdp/Runtime/Types.h"
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::checkpoint {

/// PyTorch's own limit.
inline constexpr size_t kMaxTorchDims = 64;

/// The type that PyTorch calls "float32"; unset: we have none.
std::optional<rt::DType> dtypeOfTorch(std::string_view name);
const char *torchNameOf(rt::DType type);

struct TorchTensor {
  rt::DType dtype;
  std::vector<int64_t> shape;
  const std::byte *data; // in the archive, row-major
  /// Of its bytes; unset: there is none, or others lie beside them.
  std::optional<uint32_t> crc32;
};

/// The tensor of an archive. Throws fsdp::Error that begins with `origin`.
TorchTensor readTorchTensor(std::string_view archive,
                            const std::string &origin);

/// The whole number that an archive holds, as an object or as a tensor of one
/// element, which may be a float; unset: it holds something else. Throws
/// fsdp::Error.
std::optional<int64_t> readTorchInteger(std::string_view archive,
                                        const std::string &origin);

using WriteBytes = std::function<void(std::string_view)>;

/// Writes the archive of a tensor, whose bytes `data` hands to its argument,
/// and returns the archive's size.
uint64_t writeTorchTensor(rt::DType dtype, const std::vector<int64_t> &shape,
                          const std::function<void(const WriteBytes &)> &data,
                          const WriteBytes &write);

/// Writes the archive of an object that is pickled already.
uint64_t writeTorchObject(std::string_view pickle, const WriteBytes &write);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_TORCHSAVE_H
