//===- ExecDialect.td - The exec dialect: when, in which bytes *- tablegen -*-===//
//
// Split by role: this file (dialect), ExecAttrs.td (enums and types),
// ExecInterfaces.td (what readers ask work for), ExecBase.td (base classes),
// ExecProgramOps.td (programs, ranges, launches, events), ExecRuntimeBase.td,
// ExecLayerOps.td and ExecRuntimeOps.td (one record per operation of the
// runtime), ExecKernelOps.td (the scalar bodies of kernels). ExecOps.td includes
// them all.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EXEC_DIALECT
#define FSDP_EXEC_DIALECT

include "mlir/IR/OpBase.td"

def Exec_Dialect : Dialect {
  let name = "exec";
  let summary = "When each piece runs, in which bytes: streams, events, offsets, launches";
  let description = [{
    A value is a range of one arena: a `memref` of static shape and identity layout. `exec.get` (a persistent
    range), `exec.alloc` (a transient buffer) and `exec.view` (a part of another buffer) produce values. Operands are
    inputs first, outputs last.

    ```
      exec-lower          streams by role, kernels, transient buffers without offsets
      exec-plan-memory    every exec.alloc and exec.range gets its offset
      exec-synchronize    exec.await becomes exec.record / exec.wait
      exec-verify         happens-before over overlapping byte ranges
      exec-outline        repeated blocks become exec.func + exec.call
      exec-verify         the same, through the calls
    ```

    Every operation of the runtime (`exec.gemm`, `exec.attention`, `exec.collective`, …) is one record: its
    buffers with their types and shapes, its attributes, its workspace and the function it calls. `T` is f32 or
    bf16, and `E` is any type; each is the same type throughout an op. `float` is f32 or bf16. A shape lists
    dimensions. Dimensions with the same name are equal throughout an op, `>=n` is at least n, `n/2` is half of
    n, and `rows...` is any number of dimensions. Constraints of every such op: 1. it has the buffers of its
    table, inputs before outputs; 2. they have these types; 3. they have these shapes; 4. it has at most one
    workspace, of i8, and only if the function takes one; 5. an output that is updated in place is also an
    input.

    `exec.target` (a string) and `exec.threads` (an i64 from 1 to 4096) of a module name the target and the
    threads of the workspaces of its programs. `exec.steps` (numbers by program, by step) states how often its
    steps run each program.

    Iteration spaces are stated, never grids, blocks or threads: CPU and CUDA share one text.
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
