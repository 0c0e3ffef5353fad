//===- Trace.h - What was issued and what ran -------------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_TRACE_H
#define FSDP_TEST_FAKECUDA_TRACE_H

#include "Capture.h"
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
  /// The nodes of a graph and its edges, pairs of nodes one after the other.
  void captured(const Process &process, const EndCapture &call,
                const Graph &graph);
  void executed(const Process &process, const Operation &operation);

private:
  std::ofstream &fileOf(const Process &process);

  const std::string prefix; // empty: nothing is written
  std::map<int, std::ofstream> files;
  std::ofstream order;
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_TRACE_H
