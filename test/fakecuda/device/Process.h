//===- Process.h - What one process has on the device -----------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_PROCESS_H
#define FSDP_TEST_FAKECUDA_PROCESS_H

#include "../Wire.h"
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::fake {

struct GroupCall;
struct Member;

/// One piece of work at its place in a stream.
struct Operation {
  std::string what;
  uint64_t number = 0; // in the process's order of issue
  /// Why it cannot run yet, empty if it can; null if it always can.
  std::function<std::string()> waitsFor;
  /// Throws std::runtime_error.
  std::function<void()> run;
  std::shared_ptr<GroupCall> group; // of a transfer
};

struct DeviceStream {
  int priority = 0;
  bool isLegacy = false, isDestroyed = false;
  std::deque<Operation> queue;
};

/// The answer that a process waits for.
struct Pending {
  std::string what;
  std::function<bool()> isDone;
  std::function<std::vector<char>()> result; // null: no bytes
};

/// Whether the work before a record is done, and when it was. Every record
/// makes one.
struct Recorded {
  bool isDone = false;
  std::chrono::steady_clock::time_point at;
};
using Mark = std::shared_ptr<Recorded>;

struct Capture;
struct Graph;
struct GraphRun;

/// A record that was captured: what it follows.
struct CapturedRecord {
  std::shared_ptr<Capture> capture;
  std::vector<size_t> nodes;
};

/// A graph that can be launched.
struct Executable {
  std::shared_ptr<const Graph> graph;
  bool keepsPriorities;
};

struct Process {
  int socket = -1; // -1 when it has ended
  int rank = -1;
  uint32_t thread = 0;     // of the last call
  std::vector<char> input; // received and not yet a whole message
  uint64_t issued = 0;     // calls so far
  std::map<uint32_t, DeviceStream> streams;
  std::map<uint32_t, Mark> events; // of their last record
  std::map<uint32_t, Member *> comms;
  std::vector<std::shared_ptr<Capture>> captures; // that have not ended
  uint64_t captureCount = 0;
  std::map<uint32_t, CapturedRecord> captured; // events, of their last record
  std::map<uint32_t, std::shared_ptr<const Graph>> graphs;
  std::map<uint32_t, Executable> executables;
  std::vector<std::shared_ptr<GraphRun>> runs; // that have begun
  std::optional<Pending> pending;
  std::string failure; // empty until something fails

  std::string name() const { return "rank " + std::to_string(rank); }
  bool isIdle() const {
    for (auto &[number, stream] : streams)
      if (!stream.queue.empty())
        return false;
    return true;
  }
  /// From now on every answer is this error, as after a fault on a GPU.
  void fail(const std::string &text);
  /// Nothing that is issued runs any more.
  void dropWork();
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_PROCESS_H
