//===- ExecOps.td - All ops of the exec dialect ---------------*- tablegen -*-===//
#ifndef FSDP_EXEC_OPS
#define FSDP_EXEC_OPS

include "dialects/Exec/ExecProgramOps.td"
include "dialects/Exec/ExecRuntimeOps.td"
include "dialects/Exec/ExecKernelOps.td"

#endif // FSDP_EXEC_OPS
