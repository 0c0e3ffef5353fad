//===- ProblemWords.h - What text calls parts of a problem ------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_PROBLEM_PROBLEMWORDS_H
#define FSDP_LIB_SCHEDULE_PROBLEM_PROBLEMWORDS_H

#include "fsdp/Schedule/Problem.h"

namespace fsdp::problem {

inline constexpr int kPhases = 4;

// Each in the order of its enumeration.
inline constexpr std::string_view kKindWords[] = {
    "constant",   "seed",  "read",  "view",   "box",        "kernel",
    "work",       "add",   "pad",   "join",   "collective", "gradient",
    "accumulate", "write", "clear", "update", "return"};
static_assert(std::size(kKindWords) == kOpKinds);

inline constexpr std::string_view kFlagWords[] = {
    "addressed",    "pure",       "moves",   "cloned",
    "movable",      "aligned",    "narrows", "contiguous",
    "recomputable", "regathered", "adjacent"};
static_assert(std::size(kFlagWords) == kOpFlags);

inline constexpr std::string_view kAccessWords[] = {"element", "row", "column",
                                                    "scalar"};
inline constexpr std::string_view kFormWords[] = {"element", "row", "columns"};
inline constexpr std::string_view kMathWords[] = {"product", "attention",
                                                  "attention_grad"};
static_assert(std::size(kMathWords) == kMathKinds);

inline constexpr std::string_view kReduceWords[] = {"sum", "max"};
inline constexpr std::string_view kTypeWords[] = {"f32", "bf16", "f64", "i8",
                                                  "i32", "i64",  "f16"};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_PROBLEM_PROBLEMWORDS_H
