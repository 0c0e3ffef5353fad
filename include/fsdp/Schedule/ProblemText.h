//===- ProblemText.h - Problems as text -------------------------*- C++ -*-===//
//
// One line for each op, in order; values are numbered as they come:
//
//   fsdp.problem 1
//   target "cuda"
//   persistent 8273664
//   ranks 2
//   tokens 256
//   runs "train" "train" 1
//   kernel 128 256 fuses results element row reads 0 element 1 column for 0
//   math product bf16 1 128 256 64
//   group 2 1
//   program "train" own 0
//   argument "tokens" 512
//   result "loss"
//   op read fwd name "read" -> 1024 states "norm.weight"
//   op kernel fwd path "norm" name "rms_norm" (4 7) -> 65536 512 kernel 0 …
//
// What is 0, 1 or empty by default is left out. Equal problems have equal
// texts, and what is read and written again is the same text.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PROBLEMTEXT_H
#define FSDP_SCHEDULE_PROBLEMTEXT_H

#include "fsdp/Schedule/Problem.h"

namespace fsdp::problem {

std::string print(const Problem &problem);

/// Throws fsdp::Error, which begins with `place` and the number of the line,
/// for text that is no problem that order() can take.
Problem parse(std::string_view text, const std::string &place);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_PROBLEMTEXT_H
