//===- Memory.cpp - The device's memory -----------------------------------===//
#include "Memory.h"
#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <sys/mman.h>
#include <unistd.h>

using namespace fsdp::fake;

/// Allocations begin at a multiple of this, as huge pages of a GPU do.
static constexpr uint64_t kGranule = 2 << 20;

uint64_t Memory::allocate(const Process &owner, uint64_t bytes, bool isHost) {
  uint64_t size = pagesOf(bytes);
  int file = memfd_create("fsdp-fakecuda", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, off_t(size)) != 0)
    return 0;
  void *wanted = pointerTo<void>(next);
  void *memory = mmap(wanted, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED_NOREPLACE, file, 0);
  if (memory != wanted) {
    ::close(file);
    return 0;
  }
  uint64_t address = next;
  next = (next + size + kPage + kGranule - 1) / kGranule * kGranule;
  all[address] = {bytes, isHost, &owner, file};
  std::memset(memory, kPoison, std::min(bytes, kPoisoned));
  return address;
}

void Memory::free(uint64_t address) {
  auto found = all.find(address);
  if (found == all.end())
    throw std::runtime_error("freed memory is not allocated");
  munmap(pointerTo<void>(address), pagesOf(found->second.bytes));
  ::close(found->second.file);
  all.erase(found);
}

void Memory::freeAllOf(const Process &owner) {
  std::vector<uint64_t> mine;
  for (auto &[address, allocation] : all)
    if (allocation.owner == &owner)
      mine.push_back(address);
  for (uint64_t address : mine)
    free(address);
}

void Memory::require(const Process &owner, uint64_t address, uint64_t bytes,
                     const std::string &what) const {
  auto next = all.upper_bound(address);
  if (next != all.begin()) {
    auto &[first, allocation] = *std::prev(next);
    uint64_t offset = address - first;
    if (allocation.owner == &owner && offset <= allocation.bytes &&
        bytes <= allocation.bytes - offset)
      return;
  }
  char text[160];
  std::snprintf(text, sizeof text,
                "%s: %llu bytes at %#llx are not in one allocation of %s",
                what.c_str(), static_cast<unsigned long long>(bytes),
                static_cast<unsigned long long>(address), owner.name().c_str());
  throw std::runtime_error(text);
}

void fsdp::fake::poison(uint64_t address, uint64_t bytes) {
  constexpr uint64_t kLine = 64;
  std::memset(pointerTo(address), kPoison, std::min(bytes, kPoisoned));
  for (uint64_t at = kPoisoned; at + kLine <= bytes; at += kPage)
    std::memset(pointerTo(address + at), kPoison, kLine);
}
