//===- Memory.h - The device's memory ---------------------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_MEMORY_H
#define FSDP_TEST_FAKECUDA_MEMORY_H

#include "Process.h"

namespace fsdp::fake {

/// All allocations of all processes, each a file in memory at an address of
/// its own, with a page between them that nobody may touch.
class Memory {
public:
  struct Allocation {
    uint64_t bytes;
    bool isHost;
    const Process *owner;
    int file;
  };

  /// Returns the address, or 0 if there is no memory.
  uint64_t allocate(const Process &owner, uint64_t bytes, bool isHost);
  int fileOf(uint64_t address) const { return all.at(address).file; }
  void free(uint64_t address);
  void freeAllOf(const Process &owner);

  /// Throws unless the bytes lie in one allocation of the process.
  void require(const Process &owner, uint64_t address, uint64_t bytes,
               const std::string &what) const;

private:
  std::map<uint64_t, Allocation> all;
  uint64_t next = kFirstAddress;
};

template <typename T = std::byte> T *pointerTo(uint64_t address) {
  return reinterpret_cast<T *>(address);
}

/// The first bytes of new memory are not zero, nor are those of a workspace
/// that a library may have used.
inline constexpr uint64_t kPoisoned = 1 << 20;
inline constexpr int kPoison = 0xa5;

/// Overwrites what a library may overwrite: the beginning in full, of the rest
/// a cache line in every page, so that live data of any size is hit.
void poison(uint64_t address, uint64_t bytes);

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_MEMORY_H
