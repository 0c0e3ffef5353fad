//===- Passes.h - The passes and pipelines ----------------------*- C++ -*-===//
#ifndef FSDP_PASSES_PASSES_H
#define FSDP_PASSES_PASSES_H

#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>

namespace fsdp {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

} // namespace fsdp

#endif // FSDP_PASSES_PASSES_H
