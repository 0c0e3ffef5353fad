//===- Liveness.h - Live ranges of a sequence -------------------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_LIVENESS_H
#define FSDP_LIB_SCHEDULE_PROBLEM_LIVENESS_H

#include "fsdp/Schedule/ProblemLive.h"

namespace fsdp::problem {

/// Finds what is alive, and keeps its memory.
class Liveness {
public:
  void run(const Sequence &sequence, int64_t alignment, Live &into);

private:
  void use(const Step &step, Id number);
  void finish(Id start, Id number);
  void classify(const Step &step);
  void measure(int64_t alignment);

  const Sequence *sequence = nullptr;
  Live *live = nullptr;
  std::vector<Id> inFlight;    // starts, in order
  std::vector<int64_t> change; // at each step
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_LIVENESS_H
