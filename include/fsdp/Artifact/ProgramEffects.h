//===- ProgramEffects.h - What programs read and write ----------*- C++ -*-===//
//
// Programs share ranges of the arena by name. Each states what it needs of
// them and what it leaves there, so that a step, which is a list of programs,
// can be checked without a look into any: by the compiler before it writes a
// manifest, and by the runtime when it reads one.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_ARTIFACT_PROGRAMEFFECTS_H
#define FSDP_ARTIFACT_PROGRAMEFFECTS_H

#include <cstdint>
#include <map>
#include <optional>
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
  /// Ranges among both, of which it leaves what was there and something more,
  /// and those among the written ones that it leaves at zero. What a program
  /// adds to is a sum: it is zero when a step begins to add to it.
  std::vector<std::string> adds, clears;
};

/// True if each run of the program takes one slice of a step's batch.
bool takesMicrobatch(const ProgramEffects &program);

/// What is wrong with the statement of one program, or nothing.
std::string faultOf(const ProgramEffects &program);

/// What a range is, whatever programs do to it.
struct SharedRange {
  /// Of the whole tensor, where a rank holds a part.
  std::vector<int64_t> shape;
  /// It is a parameter or a buffer of the model, which holds something before
  /// any program has run.
  bool isOfModel = false;
  bool beginsWithZeros = true;
};

/// Consecutive runs of a program as part of a step.
struct ProgramRuns {
  size_t program; // index
  int64_t times;
};

/// A step as it is listed, and how often it is stated to run programs, by name.
struct StepEffects {
  std::vector<ProgramRuns> list;
  std::map<std::string, int64_t> stated;
};

/// What is wrong with a step, and what to do about it where it is listed.
struct StepFault {
  std::string message, remedy;
  /// Null if it is about none.
  const ProgramEffects *program = nullptr;
};

/// What is wrong with one of `steps`, or nothing. A step runs programs as often
/// as is stated; programs that take slices of an input run once for each slice
/// that an input of the whole step holds; a range that a program produces,
/// which is to write it without reading it, has been written when another reads
/// it; a sum has been added to when it is read, and is zero again when a step
/// ends that begins to add to it.
std::optional<StepFault>
faultOfSteps(const std::vector<const ProgramEffects *> &programs,
             const std::map<std::string, SharedRange> &ranges,
             const std::map<std::string, StepEffects> &steps);

} // namespace fsdp

#endif // FSDP_ARTIFACT_PROGRAMEFFECTS_H
