//===- TorchZip.h - The archives of torch.save ------------------*- C++ -*-===//
//
// A zip archive whose entries are stored, not compressed, so that tensors can
// be used where they lie. Everything is checked against the archive's size
// before it is used; entries lie one after another and never overlap.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_TORCHZIP_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_TORCHZIP_H

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::checkpoint {

struct ZipEntry {
  std::string_view name, data;
  uint32_t crc; // 0: PyTorch was told to write none
};

/// Reads an archive in memory, which must outlive the object. Throws
/// fsdp::Error that begins with `origin`.
class TorchZip {
public:
  TorchZip(std::string_view bytes, std::string origin);

  const std::vector<ZipEntry> &entries() const { return all; }
  /// The entry "ROOT/name", where ROOT is the folder of all entries; null if
  /// there is none.
  const ZipEntry *find(std::string_view name) const;
  /// Throws if the entry's bytes are not those that were written. Nothing else
  /// here compares checksums.
  void checkCrc(const ZipEntry &entry) const;

private:
  friend class ZipDirectoryReader;
  std::string origin;
  std::vector<ZipEntry> all;
  std::string_view root; // with its slash
};

/// An entry that is written: `write` hands its bytes to its argument, in order.
struct ZipSource {
  std::string name; // after "archive/"
  uint64_t size;
  std::function<void(const std::function<void(std::string_view)> &)> write;
};

/// Writes an archive as torch.save does, every entry's data at a multiple of 64
/// bytes from its beginning, and returns its size.
uint64_t writeTorchZip(const std::vector<ZipSource> &entries,
                       const std::function<void(std::string_view)> &write);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_TORCHZIP_H
