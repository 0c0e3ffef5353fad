//===- ProblemEvaluator.h - Many candidates of one problem ------*- C++ -*-===//
//
// order() and live() for those who search: what follows from the problem alone
// is found once, and memory is used again from candidate to candidate. Not for
// several threads at once.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PROBLEMEVALUATOR_H
#define FSDP_SCHEDULE_PROBLEMEVALUATOR_H

#include "fsdp/Schedule/ProblemLive.h"
#include <memory>

namespace fsdp::problem {

class Evaluator {
public:
  /// Of `problem`, which stays as it is. Throws fsdp::Error if its target is
  /// unknown.
  explicit Evaluator(const Problem &problem);
  ~Evaluator();

  /// The order of issue of program number `program`, until the next one of that
  /// program.
  Sequence &order(const Candidate &candidate, size_t program);

  /// The live bytes of the order that order() gave for `program` last, until
  /// the next of that program.
  Live &live(size_t program);

private:
  struct Memory;

  const Problem &problem;
  int64_t alignment = 0;
  std::unique_ptr<Memory> memory;
};

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_PROBLEMEVALUATOR_H
