//===- Fault.h - Planted faults ---------------------------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_FAULT_H
#define FSDP_TEST_FAKECUDA_FAULT_H

#include "../FaultText.h"
#include "Capture.h"

namespace fsdp::fake {

struct Message {
  Call call;
  std::vector<char> body;
};

/// One fault in the calls that arrive, counted from a process's first kernel
/// on; see ../README.md for the kinds. Some are planted in the process itself,
/// which says so.
class Fault {
public:
  /// Throws std::runtime_error if the text is none; empty: no fault.
  explicit Fault(const std::string &text);

  /// What arrives where `message` was sent: nothing, it, or other calls.
  std::vector<Message> plant(const Process &process, Message message);
  /// Changes a graph that the process has captured.
  void plantIn(const Process &process, Graph &graph);
  /// True if there is no fault or it has been planted.
  bool wasPlanted() const { return text.kind.empty() || planted; }

  struct Kind;

private:
  std::vector<Message> change(const Process &process, Message message);
  std::vector<Message> plantEarlyRecord(const Process &process,
                                        Message message);

  const FaultText text;
  const Kind *kind = nullptr;               // null: none, or one of the process
  std::map<const Process *, uint64_t> seen; // calls that the kind concerns
  std::map<const Process *, std::vector<Message>> held; // for later
  bool planted = false;
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_FAULT_H
