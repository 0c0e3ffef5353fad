//===- ProgramEffects.h - What programs read and write ----------*- C++ -*-===//
//
// Programs share ranges of the arena by name. Each states what it needs of
// them and what it leaves there, so that a step, which is a list of programs,
// can be checked without a look into any: by the compiler before it writes a
// manifest, and by the runtime when it reads one.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_PROGRAMEFFECTS_H
#define FSDP_SUPPORT_PROGRAMEFFECTS_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace fsdp {

/// All are names of ranges.
struct ProgramEffects {
  std::string name;
  /// Of arguments and results, in order.
  std::vector<std::string> inputs, outputs;
  /// Ranges of which it reads what is there before it, and those that it
  /// writes, whole.
  std::vector<std::string> reads, writes;
  /// The sums among both, to which it adds: they are zero when a step begins
  /// and when it ends.
  std::vector<std::string> adds;
};

/// What is wrong with the statement of one program, or nothing.
std::string faultOf(const ProgramEffects &program);

/// Consecutive runs of a program as part of a step.
struct ProgramRuns {
  size_t program; // index
  int64_t times;
};

/// What is wrong with the step called `step`, or nothing. A step runs programs
/// as often as `stated` says, by name; a range that a program makes, which is
/// to write it without reading it, has been written when another reads it; and
/// a sum has been added to when it is read, and is zero again at the end.
std::string faultOfStep(const std::string &step,
                        const std::vector<const ProgramEffects *> &programs,
                        const std::vector<ProgramRuns> &list,
                        const std::map<std::string, int64_t> &stated);

} // namespace fsdp

#endif // FSDP_SUPPORT_PROGRAMEFFECTS_H
