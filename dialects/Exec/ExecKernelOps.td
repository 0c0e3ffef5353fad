//===- ExecKernelOps.td - The scalar bodies of kernels --------*- tablegen -*-===//
#ifndef FSDP_EXEC_KERNEL_OPS
#define FSDP_EXEC_KERNEL_OPS

include "dialects/Exec/ExecProgramOps.td"

def Exec_Scalar : AnyTypeOf<[F32, I32, I64]>;

def Exec_KernelOp : Exec_Op<"kernel", [Symbol, IsolatedFromAbove, SingleBlock, NoTerminator,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let summary = "A kernel: a space of rows x columns and its scalar code";
  let description = [{
    Block arguments are the buffers; the last `outputs` of them are written. `access` states how each is
    addressed at (row, col): `element` row*cols+col, `row`, `column`, `scalar`, or `block` row/32*cols+col. The body
    runs once per row:

    - ops of arith and math at the top level work on row scalars;
    - `exec.reduce` combines an expression over the columns of the row;
    - `exec.map` runs its body for every column;
    - `exec.reduce_rows` combines an expression over each block of 32 rows.

    In a `column_reduction` kernel the body is one `exec.reduce_rows` per output, over all rows. Scalars are
    f32; loads widen, and stores round. Structurally equal kernels are one kernel.

    Example:
    ```mlir
    exec.kernel @rms_norm over(512, 256) access [element, column, element, row] outputs 2 {
    ^bb0(%x: memref<2x256x256xf32>, %w: memref<256xf32>, %y: memref<2x256x256xf32>, %rstd: memref<2x256xf32>):
      %ss = exec.reduce sum {
        %a = exec.load %x : memref<2x256x256xf32> -> f32
        %b = arith.mulf %a, %a : f32
        exec.yield %b
      }
      %n = arith.constant 2.56e+02 : f32
      %mean = arith.divf %ss, %n : f32
      %eps = arith.constant 1.0e-05 : f32
      %shifted = arith.addf %mean, %eps : f32
      %r = math.rsqrt %shifted : f32
      exec.store %r, %rstd : f32, memref<2x256xf32>
      exec.map {
        %a = exec.load %x : memref<2x256x256xf32> -> f32
        %b = exec.load %w : memref<256xf32> -> f32
        %c = arith.mulf %a, %r : f32
        %v = arith.mulf %c, %b : f32
        exec.store %v, %y : f32, memref<2x256x256xf32>
      }
    }
    ```

    Constraints: 1. one access per argument; 2. sizes fit the space: element rows*cols, row rows, column cols,
    scalar 1, block rows/32*cols; 3. rows and cols are positive; 4. `outputs` is at least 1 and at most the number
    of arguments; 5. the body of a `column_reduction` kernel holds exec.reduce_rows alone; 6. the space has at most
    2^56 elements; 7. with a `block` argument, rows are a multiple of 32.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$rows, I64Attr:$cols,
      TypedArrayAttrBase<Exec_AccessAttr, "accesses">:$access, I64Attr:$outputs,
      UnitAttr:$column_reduction);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $sym_name `over` `(` $rows `,` $cols `)` `access` custom<Accesses>($access) `outputs` $outputs
    (`column_reduction` $column_reduction^)? attr-dict-with-keyword $body
  }];
  let hasVerifier = 1;
}

def Exec_LoadOp : Exec_Op<"load", [Pure]> {
  let summary = "The element of a kernel argument at the current position";
  let description = [{
    Floats are widened to f32, i64 stays i64, and other integers become i32. `at` names another column of an
    `element` argument.

    Example: `%a = exec.load %x : memref<4x8xbf16> -> f32`

    Constraints: 1. the source is an argument of the kernel, and no `block`; 2. the value is f32 for floats, i64
    for i64, and i32 for other integers; 3. only an `element` argument takes `at`.
  }];
  let hasVerifier = 1;
  let arguments = (ins Exec_Buffer:$source, Optional<I32>:$column);
  let results = (outs Exec_Scalar:$value);
  let assemblyFormat = "$source (`at` $column^)? attr-dict `:` type($source) `->` type($value)";
}

def Exec_StoreOp : Exec_Op<"store"> {
  let summary = "Writes an output at the current position, rounding to its type";
  let description = [{
    Example: `exec.store %v, %y : f32, memref<4x8xbf16>`

    Constraints: 1. the target is an output of the kernel, and no `block`; 2. the value is f32 for floats, i64 for
    i64, and i32 for other integers.
  }];
  let hasVerifier = 1;
  let arguments = (ins Exec_Scalar:$value, Arg<Exec_Buffer, "", [MemWrite]>:$target);
  let assemblyFormat = "$value `,` $target attr-dict `:` type($value) `,` type($target)";
}

def Exec_ColumnOp : Exec_Op<"column", [Pure]> {
  let summary = "The current column";
  let description = "Example: `%j = exec.column`\n\n"
    "Constraints: 1. the kernel has at most 2^31 columns, so that the number is an i32.";
  let hasVerifier = 1;
  let results = (outs I32:$value);
  let assemblyFormat = "attr-dict";
}

def Exec_ReduceOp : Exec_Op<"reduce", [SingleBlock]> {
  let summary = "Combines an expression over the columns of the row: 16 lanes, then a tree";
  let description = [{
    Element j is combined into lane j mod 16, in order of j. Then the lanes are combined as a binary tree (i
    with i+8, i+4, i+2, i+1). The order does not depend on vector width and threads.

    Example:
    ```mlir
    %s = exec.reduce sum {
      %a = exec.load %x : memref<4x8xf32> -> f32
      %b = arith.mulf %a, %a : f32
      exec.yield %b
    }
    ```

    Constraints: 1. at the top level of a kernel; 2. the body ends in
    exec.yield.
  }];
  let hasVerifier = 1;
  let arguments = (ins Exec_ReduceKindAttr:$kind);
  let regions = (region SizedRegion<1>:$body);
  let results = (outs F32:$result);
  let assemblyFormat = "`` $kind attr-dict-with-keyword $body";
}

def Exec_MapOp : Exec_Op<"map", [SingleBlock, NoTerminator]> {
  let summary = "Runs its body for every column of the row";
  let description = [{
    Example:
    ```mlir
    exec.map {
      %a = exec.load %x : memref<4x8xf32> -> f32
      %v = math.exp %a : f32
      exec.store %v, %y : f32, memref<4x8xf32>
    }
    ```

    Constraints: 1. at the top level of a kernel.
  }];
  let hasVerifier = 1;
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "attr-dict-with-keyword $body";
}

def Exec_ReduceRowsOp : Exec_Op<"reduce_rows", [SingleBlock]> {
  let summary = "Combines an expression over rows, for every column, into an output";
  let description = [{
    Rows are split into blocks of 32. The rows of a block are combined in order, then the blocks in order. The
    order does not depend on vector width and threads.

    In another kernel than a `column_reduction` each block is combined apart, into its row of a `block` output. A
    `column_reduction` whose rows are such blocks combines them `in_order`, one after another. So both kernels
    together give the bits of one over all rows.

    Example:
    ```mlir
    exec.reduce_rows sum %dw : memref<8xf32> {
      %a = exec.load %dy : memref<4x8xf32> -> f32
      exec.yield %a
    }
    ```

    Constraints: 1. at the top level of a kernel; 2. the target is an output of the kernel, in a `column_reduction`
    a `column` of f32 or bf16, in another a `block` of f32; 3. the body ends in exec.yield; 4. `in_order` only in a
    `column_reduction` with one output.
  }];
  let hasVerifier = 1;
  let arguments = (ins Exec_ReduceKindAttr:$kind, Arg<Exec_Buffer, "", [MemWrite]>:$target, UnitAttr:$in_order);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`` $kind $target (`in_order` $in_order^)? attr-dict `:` type($target) $body";
}

def Exec_YieldOp : Exec_Op<"yield", [Pure, Terminator, ParentOneOf<["ReduceOp", "ReduceRowsOp"]>]> {
  let summary = "The expression that a reduction combines";
  let description = [{
    Example:
    ```mlir
    %largest = exec.reduce max {
      %a = exec.load %x : memref<4x8xf32> -> f32
      exec.yield %a
    }
    ```
  }];
  let arguments = (ins F32:$value);
  let assemblyFormat = "$value attr-dict";
}

#endif // FSDP_EXEC_KERNEL_OPS
