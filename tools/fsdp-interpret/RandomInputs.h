//===- RandomInputs.h - What a program reads, made up -----------*- C++ -*-===//
#ifndef FSDP_TOOLS_FSDP_INTERPRET_RANDOMINPUTS_H
#define FSDP_TOOLS_FSDP_INTERPRET_RANDOMINPUTS_H

#include "fsdp/Interpreter/Grid.h"

namespace fsdp {

/// Fills in what `program` reads and `inputs` lacks. Values depend on the seed,
/// the name and, unless `sameOnAllRanks`, the rank: not on the passes that ran.
/// An argument of which ranks take parts is one tensor for all of them.
///
/// Parameters are as their initialisers say. Scalar arguments are 1 (integers)
/// or 0.01; other floating ones are uniform in [-1, 1), and integers are valid
/// indices where they are used as such, else 0 or 1.
void addRandomInputs(mlir::func::FuncOp program, uint64_t seed,
                     bool sameOnAllRanks, interpret::GridInputs &inputs);

} // namespace fsdp

#endif // FSDP_TOOLS_FSDP_INTERPRET_RANDOMINPUTS_H
