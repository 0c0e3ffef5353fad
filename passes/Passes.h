//===- Passes.h - The passes and pipelines ----------------------*- C++ -*-===//
#ifndef FSDP_PASSES_PASSES_H
#define FSDP_PASSES_PASSES_H

#include "fsdp/Config/CompileOptions.h"
#include "fsdp/Schedule/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>

namespace fsdp {

/// What nn-precision lets a program compute in.
enum class ComputeType { F32, BF16 };
template <> struct Spellings<ComputeType> {
  static constexpr Spelling<ComputeType> all[] = {
      {ComputeType::F32, "f32", "nothing: programs stay as they are"},
      {ComputeType::BF16, "bf16", "bfloat16"}};
};

/// Of an option of a pass: the values of its enumeration, by their spellings.
template <typename E> struct SpelledValues {
  template <typename OptionT> void apply(OptionT &option) const {
    for (const Spelling<E> &row : Spellings<E>::all)
      option.getParser().addLiteralOption(row.name, row.value, row.doc);
  }
};

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace fsdp

#endif // FSDP_PASSES_PASSES_H
