//===- ExecDialect.td - The exec dialect: when, in which bytes *- tablegen -*-===//
//
// Split by role: this file (dialect), ExecAttrs.td (enums and types),
// ExecInterfaces.td (what readers ask work for), ExecBase.td (base classes),
// ExecProgramOps.td (programs, ranges, launches, events), ExecRuntimeBase.td
// and ExecRuntimeOps.td (one record per operation of the runtime),
// ExecKernelOps.td (the scalar bodies of kernels). ExecOps.td includes them all.
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

    Every operation of the runtime (`exec.gemm`, `exec.attention`,
    `exec.collective`, …) is one record: its buffers with their types and
    shapes, its attributes, its workspace and the function it calls. `T` is
    f32 or bf16 and `E` any type, the same wherever an op says so; `float` is
    f32 or bf16. A shape lists dimensions: one of a name is equal wherever the
    op has it, `>=n` is at least n, `n/2` half of it, and `rows...` any number
    of dimensions. Constraints of every such op: 1. it has the buffers of its
    table, inputs in front of outputs; 2. they have these types; 3. and these
    shapes; 4. there is at most one workspace, of i8, and only where the
    function takes one; 5. an output that is updated in place is the input
    again.

    `exec.target` (a string) and `exec.threads` (an i64 from 1 to 4096) of a
    module say whose workspaces its programs have, `exec.steps` (numbers by
    program, by step) how often its steps are to run them.

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
  let hasOperationAttrVerify = 1;
}

#endif // FSDP_EXEC_DIALECT
