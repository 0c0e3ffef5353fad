//===- TensorFile.h - Inputs and outputs as safetensors ---------*- C++ -*-===//
#ifndef FSDP_TOOLS_FSDP_INTERPRET_TENSORFILE_H
#define FSDP_TOOLS_FSDP_INTERPRET_TENSORFILE_H

#include "fsdp/Interpreter/Grid.h"

namespace fsdp {

/// Adds the tensors of a safetensors file: `rank<N>/NAME` is an argument of
/// rank N, `NAME` a parameter, a buffer, or an argument of all ranks that have
/// none of their own. `inputs` has one map of arguments per rank. Throws
/// fsdp::Error that names the file, also for a name that `program` lacks.
void readInputs(const std::string &path, mlir::func::FuncOp program,
                interpret::GridInputs &inputs);

/// Writes what was written whole, and results as `rank<N>/NAME`; all in F64.
void writeOutputs(const std::string &path,
                  const interpret::GridOutputs &outputs);

} // namespace fsdp

#endif // FSDP_TOOLS_FSDP_INTERPRET_TENSORFILE_H
