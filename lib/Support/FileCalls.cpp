//===- FileCalls.cpp - What waits for a file system -----------------------===//
#include "fsdp/Support/FileCalls.h"
#include <array>
#include <chrono>
#include <mutex>

using namespace fsdp;
using Clock = std::chrono::steady_clock;

namespace {

struct Slot {
  const char *call = nullptr; // null: free
  const std::string *path = nullptr;
  Clock::time_point begin;
  uint64_t number = 0;
};

/// Few threads of a process write files; one beyond the table is not seen.
struct Table {
  std::mutex mutex;
  std::array<Slot, 32> slots;
  uint64_t calls = 0;
};

} // namespace

/// Lives as long as the process: its last files are closed by destructors.
static Table &table() {
  static Table *all = new Table;
  return *all;
}

FileCall::FileCall(const char *call, const std::string &path) : slot(-1) {
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (size_t i = 0; i < all.slots.size() && slot < 0; ++i) {
    if (all.slots[i].call)
      continue;
    all.slots[i] = {call, &path, Clock::now(), ++all.calls};
    slot = static_cast<int>(i);
  }
}

FileCall::~FileCall() {
  if (slot < 0)
    return;
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  all.slots[static_cast<size_t>(slot)].call = nullptr;
}

std::optional<WaitingCall> fsdp::longestFileCall() {
  Table &all = table();
  std::lock_guard<std::mutex> lock(all.mutex);
  const Slot *oldest = nullptr;
  for (const Slot &slot : all.slots)
    if (slot.call && (!oldest || slot.begin < oldest->begin))
      oldest = &slot;
  if (!oldest)
    return std::nullopt;
  double seconds =
      std::chrono::duration<double>(Clock::now() - oldest->begin).count();
  return WaitingCall{oldest->call, *oldest->path, seconds, oldest->number};
}
