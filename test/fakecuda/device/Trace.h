//===- Trace.h - What was issued, and planted faults ------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_TRACE_H
#define FSDP_TEST_FAKECUDA_TRACE_H

#include "Process.h"
#include <fstream>

namespace fsdp::fake {

/// Writes the calls of every rank in the order of issue to
/// PREFIX.rank<r>.jsonl, and the operations in the order in which they ran to
/// PREFIX.executed.jsonl, an object a line.
class Trace {
public:
  explicit Trace(std::string prefix);

  void issued(const Process &process, Call call, const std::vector<char> &body);
  /// Where new memory lies, which only the answer to the call says.
  void allocated(const Process &process, const Allocate &call,
                 uint64_t address);
  void executed(const Process &process, const Operation &operation);

private:
  std::ofstream &fileOf(const Process &process);

  const std::string prefix; // empty: nothing is written
  std::map<int, std::ofstream> files;
  std::ofstream order;
};

/// One fault in the calls that arrive: "KIND:N" or "KIND:N@RANK" for the N-th
/// call of its kind, from 0, of every rank or of one. Counted from a process's
/// first kernel on. The kinds:
///
///   drop-wait     a wait for an event is left out
///   drop-record   a record of an event is left out
///   short-copy    a copy or fill does the first half of its bytes
///   wrong-stream  a kernel goes to the legacy stream
///   wrong-grid    a kernel has one block less
///   swap-group    two transfers of a group call change places
class Fault {
public:
  /// Throws std::runtime_error if the text is none; empty: no fault.
  explicit Fault(const std::string &text);

  /// Changes `body` where the fault is; false if the call is left out.
  bool plant(const Process &process, Call call, std::vector<char> &body);
  /// True if there is no fault or it has been planted.
  bool wasPlanted() const { return kind.empty() || planted; }

private:
  bool concerns(Call call) const;
  bool change(Call call, std::vector<char> &body) const;

  std::string kind;
  uint64_t index = 0;
  int rank = -1;                            // -1: all
  std::map<const Process *, uint64_t> seen; // calls of the kind
  bool planted = false;
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_TRACE_H
