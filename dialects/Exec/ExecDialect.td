//===- ExecDialect.td - The exec dialect: when, in which bytes *- tablegen -*-===//
//
// Split by role: this file (dialect), ExecAttrs.td (enums and types),
// ExecProgramOps.td (programs, ranges, work, events), ExecKernelOps.td (the
// scalar bodies of kernels). ExecOps.td includes them all.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EXEC_DIALECT
#define FSDP_EXEC_DIALECT

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let summary = "When each piece runs, in which bytes: streams, events, offsets, launches";
  let description = [{
    A value is a range of one arena: a `memref` of static shape and identity
    layout, born by `exec.get` (persistent range), `exec.alloc` (interval) or
    `exec.view` (part of another). Operands are inputs first, outputs last.

    ```
      exec-lower          streams by role, kernels, intervals without offsets
      exec-plan-memory    every exec.alloc and exec.range gets its offset
      exec-synchronize    exec.await becomes exec.record / exec.wait
      exec-verify         happens-before over overlapping byte ranges
      exec-outline        repeated blocks become exec.func + exec.call
      exec-verify         the same, through the calls
    ```

    Iteration spaces are stated, never grids, blocks or threads: the same text
    is emitted for CPU and CUDA.
  }];
  let cppNamespace = "::fsdp::exec";
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::memref::MemRefDialect",
                           "::fsdp::dist::FsdpDialect"];
}

#endif // FSDP_EXEC_DIALECT
