//===- RunPrograms.h - A step whose programs run one by one -----*- C++ -*-===//
#ifndef FSDP_RUNTIME_CORE_RUNPROGRAMS_H
#define FSDP_RUNTIME_CORE_RUNPROGRAMS_H

#include "fsdp/Core/Context.h"

namespace fsdp::rt {

/// Who is told of the calls of a program.
class CallObserver {
public:
  explicit CallObserver(const ObserveCall &observe) : observe(observe) {}

  void beginCall() { ++depth; }
  /// `wait` makes all streams idle; a call within another one is a part of it.
  template <typename Wait> void endCall(const Wait &wait) {
    if (--depth > 0)
      return;
    wait();
    observe(calls++);
  }

private:
  const ObserveCall &observe;
  int64_t calls = 0;
  int depth = 0;
};

/// Runs a program while the context's `observer` is one that tells `observe`.
inline bool runObserved(Context &c, CallObserver *&observer, int index,
                        const ObserveCall &observe, std::string &error) {
  CallObserver one(observe);
  observer = &one;
  bool isGood = runProgram(c, index, error);
  observer = nullptr;
  return isGood;
}

/// An error in a program's data, with its name.
inline std::string describeRun(const fsdp_artifact &artifact, int program,
                               const std::string &error) {
  return std::string("program '") + artifact.program[program].name +
         "': " + error;
}

/// Runs the programs of a step, each to its end, until one finds wrong data.
/// Returns what that was; empty for nothing.
inline std::string runPrograms(Context &c, const fsdp_artifact &artifact,
                               const std::vector<int> &step,
                               const SetInputs &set) {
  std::string error;
  for (size_t run = 0; run < step.size(); ++run) {
    set(run);
    if (!runProgram(c, step[run], error))
      return describeRun(artifact, step[run], error);
  }
  return {};
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CORE_RUNPROGRAMS_H
