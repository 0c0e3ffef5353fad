// RUN: fsdp-compile %s --emit=cpp | FileCheck %s

// Kernels of every shape become loops; every value with one use is spelled
// where it is used.

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 512 : i64} {

// A row kernel: the reduction over columns is a lambda for the runtime's fixed
// order, a row scalar is a variable, exec.map a vector loop. Arguments are
// named by their locations.
// CHECK: /// 4 rows of 8, first for norm.
// CHECK-NEXT: static void k_rms_norm(int64_t begin, int64_t end, const Ptr *args) {
// CHECK-NEXT:   constexpr int64_t cols = 8;
// CHECK-NEXT:   const float *__restrict x_ = reinterpret_cast<const float *>(args[0]);
// CHECK-NEXT:   const float *__restrict weight_ = reinterpret_cast<const float *>(args[1]);
// CHECK-NEXT:   float *__restrict y_ = reinterpret_cast<float *>(args[2]);
// CHECK-NEXT:   float *__restrict rstd_ = reinterpret_cast<float *>(args[3]);
// CHECK-NEXT:   for (int64_t row = begin; row < end; ++row) {
// CHECK-NEXT:     const int64_t first = row * cols;
// CHECK-NEXT:     const float sum = math::sumLanes(cols, [&](int64_t col) {
// CHECK-NEXT:       const float x_v_ = x_[first + col];
// CHECK-NEXT:       return x_v_ * x_v_;
// CHECK-NEXT:     });
// CHECK-NEXT:     const float t = 1.0f / math::sqrt(sum / 8.0f + 1e-05f);
// CHECK-NEXT:     rstd_[row] = t;
// CHECK-NEXT: #pragma omp simd
// CHECK-NEXT:     for (int64_t col = 0; col < cols; ++col) {
// CHECK-NEXT:       y_[first + col] = x_[first + col] * t * weight_[col];
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
exec.kernel @rms_norm over(4, 8) access [element, column, element, row] outputs 2 {
^bb0(%x: memref<4x8xf32> loc("x"), %w: memref<8xf32> loc("weight"), %y: memref<4x8xf32> loc("y"), %rstd: memref<4xf32> loc("rstd")):
  %ss = exec.reduce sum {
    %a = exec.load %x : memref<4x8xf32> -> f32
    %b = arith.mulf %a, %a : f32
    exec.yield %b
  }
  %n = arith.constant 8.0 : f32
  %eps = arith.constant 1.0e-5 : f32
  %one = arith.constant 1.0 : f32
  %mean = arith.divf %ss, %n : f32
  %shifted = arith.addf %mean, %eps : f32
  %root = math.sqrt %shifted : f32
  %r = arith.divf %one, %root : f32
  exec.store %r, %rstd : f32, memref<4xf32>
  exec.map {
    %a = exec.load %x : memref<4x8xf32> -> f32
    %b = arith.mulf %a, %r : f32
    %c = exec.load %w : memref<8xf32> -> f32
    %d = arith.mulf %b, %c : f32
    exec.store %d, %y : f32, memref<4x8xf32>
  }
}

// bf16 is widened when it is loaded and rounded when it is stored; a rounding
// in between stays, because every op rounds to its declared type.
// CHECK: static void k_silu_mul(
// CHECK: const BF16 *__restrict in0
// CHECK: BF16 *__restrict out0
// CHECK: const float in0_v_ = widen(in0[first + col]);
// CHECK-NEXT: out0[first + col] = toBF16(roundBF16(in0_v_ / (1.0f + math::exp(-in0_v_))) * widen(in1[first + col]));
exec.kernel @silu_mul over(2, 16) access [element, element, element] outputs 1 {
^bb0(%x: memref<2x16xbf16>, %y: memref<2x16xbf16>, %z: memref<2x16xbf16>):
  exec.map {
    %one = arith.constant 1.0 : f32
    %a = exec.load %x : memref<2x16xbf16> -> f32
    %minus = arith.negf %a : f32
    %e = math.exp %minus : f32
    %d = arith.addf %one, %e : f32
    %q = arith.divf %a, %d : f32
    %rounded = arith.truncf %q : f32 to bf16
    %silu = arith.extf %rounded : bf16 to f32
    %b = exec.load %y : memref<2x16xbf16> -> f32
    %c = arith.mulf %silu, %b : f32
    exec.store %c, %z : f32, memref<2x16xbf16>
  }
}

// A column reduction gets ranges of columns; each output is one reduction over
// the rows in blocks of 32.
// CHECK: static void k_bias_grad(
// CHECK-NEXT:   constexpr int64_t rows = 64;
// CHECK-NEXT:   constexpr int64_t cols = 8;
// CHECK:   math::sumRows(rows, begin, end, out0, [&](int64_t row, int64_t col) {
// CHECK-NEXT:     const int64_t first = row * cols;
// CHECK-NEXT:     return in0[first + col] * in1[row];
// CHECK-NEXT:   });
// CHECK-NEXT: }
exec.kernel @bias_grad over(64, 8) access [element, row, column] outputs 1 column_reduction {
^bb0(%dy: memref<64x8xf32>, %r: memref<64xf32>, %db: memref<8xf32>):
  exec.reduce_rows sum %db : memref<8xf32> {
    %a = exec.load %dy : memref<64x8xf32> -> f32
    %b = exec.load %r : memref<64xf32> -> f32
    %c = arith.mulf %a, %b : f32
    exec.yield %c
  }
}

// A kernel of rows that also combines them takes block by block. What it stores
// and what it combines is one loop.
// CHECK: static void k_rows_and_blocks(int64_t begin, int64_t end, const Ptr *args) {
// CHECK:        for (int64_t block = begin; block < end; ++block) {
// CHECK-NEXT:     const int64_t top = block * math::kRowBlock;
// CHECK-NEXT:     math::startBlock<math::AddRows>(cols, out1 + block * cols);
// CHECK-NEXT:     math::startBlock<math::MaxRows>(cols, out2 + block * cols);
// CHECK-NEXT:     for (int64_t row = top; row < top + math::kRowBlock; ++row) {
// CHECK-NEXT:       const int64_t first = row * cols;
// CHECK-NEXT: #pragma omp simd
// CHECK-NEXT:       for (int64_t col = 0; col < cols; ++col) {
// CHECK-NEXT:         out0[first + col] = -in0[first + col];
// CHECK-NEXT:         out1[block * cols + col] = math::AddRows::combine(out1[block * cols + col], in0[first + col] * in1[row]);
// CHECK-NEXT:         out2[block * cols + col] = math::MaxRows::combine(out2[block * cols + col], in0[first + col]);
// CHECK-NEXT:       }
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT: }
exec.kernel @rows_and_blocks over(64, 8) access [element, row, element, block, block] outputs 3 {
^bb0(%x: memref<64x8xf32>, %r: memref<64xf32>, %y: memref<64x8xf32>, %s: memref<2x8xf32>, %m: memref<2x8xf32>):
  exec.map {
    %a = exec.load %x : memref<64x8xf32> -> f32
    %b = arith.negf %a : f32
    exec.store %b, %y : f32, memref<64x8xf32>
  }
  exec.reduce_rows sum %s : memref<2x8xf32> {
    %a = exec.load %x : memref<64x8xf32> -> f32
    %b = exec.load %r : memref<64xf32> -> f32
    %c = arith.mulf %a, %b : f32
    exec.yield %c
  }
  exec.reduce_rows max %m : memref<2x8xf32> {
    %a = exec.load %x : memref<64x8xf32> -> f32
    exec.yield %a
  }
}

// Blocks are combined in order.
// CHECK: static void k_sum_of_blocks(
// CHECK: math::sumBlocks(rows, begin, end, out0, [&](int64_t row, int64_t col) {
exec.kernel @sum_of_blocks over(2, 8) access [element, column] outputs 1 column_reduction {
^bb0(%b: memref<2x8xf32>, %s: memref<8xf32>):
  exec.reduce_rows sum %s in_order : memref<8xf32> {
    %a = exec.load %b : memref<2x8xf32> -> f32
    exec.yield %a
  }
}

// Comparison, selection, integers, a load from another column. Subtraction
// from a difference keeps its parentheses: order of operations is the IR's.
// CHECK: static void k_pick(
// CHECK: const float max = math::maxLanes(cols, [&](int64_t col) {
// CHECK: const float t = in0[first + col] - (max - in0[first + (in1[row] & 7)]);
// CHECK-NEXT: out0[first + col] = t > in2[0] ? t : (int32_t(col) == in1[row] ? 1.0f : 0.0f);
exec.kernel @pick over(4, 8) access [element, row, scalar, element] outputs 1 {
^bb0(%x: memref<4x8xf32>, %ids: memref<4xi32>, %low: memref<f32>, %y: memref<4x8xf32>):
  %max = exec.reduce max {
    %a = exec.load %x : memref<4x8xf32> -> f32
    exec.yield %a
  }
  exec.map {
    %zero = arith.constant 0.0 : f32
    %one = arith.constant 1.0 : f32
    %a = exec.load %x : memref<4x8xf32> -> f32
    %id = exec.load %ids : memref<4xi32> -> i32
    %last = arith.constant 7 : i32
    %in_row = arith.andi %id, %last : i32
    %b = exec.load %x at %in_row : memref<4x8xf32> -> f32
    %c = arith.subf %max, %b : f32
    %d = arith.subf %a, %c : f32
    %col = exec.column
    %id2 = exec.load %ids : memref<4xi32> -> i32
    %hit = arith.cmpi eq, %col, %id2 : i32
    %e = arith.select %hit, %one, %zero : f32
    %l = exec.load %low : memref<f32> -> f32
    %above = arith.cmpf ogt, %d, %l : f32
    %f = arith.select %above, %d, %e : f32
    exec.store %f, %y : f32, memref<4x8xf32>
  }
}

// A count of 64 bits stays one until it is a float.
// CHECK: static void k_divide(
// CHECK: const int64_t count_v_ = count_[0];
// CHECK-NEXT: out0[first + col] = in0[first + col] / float(count_v_);
// CHECK-NEXT: out1[first + col] = count_v_ + 1;
exec.kernel @divide over(1, 4) access [element, scalar, element, element] outputs 2 {
^bb0(%x: memref<4xf32>, %n: memref<i64> loc("count"), %y: memref<4xf32>, %m: memref<4xi64>):
  exec.map {
    %count = exec.load %n : memref<i64> -> i64
    %a = exec.load %x : memref<4xf32> -> f32
    %f = arith.sitofp %count : i64 to f32
    %q = arith.divf %a, %f : f32
    exec.store %q, %y : f32, memref<4xf32>
    %one = arith.constant 1 : i64
    %next = arith.addi %count, %one : i64
    exec.store %next, %m : i64, memref<4xi64>
  }
}

// Every function of math that kernels use, and a constant that is no number of
// C++.
// CHECK: static void k_functions(
// CHECK: const float t = math::tanh(math::erf(math::abs(in0[first + col])));
// CHECK-NEXT: out0[first + col] = math::log(t);
// CHECK: out1[first + col] = math::max(in0[first + col], -__builtin_inff());
exec.kernel @functions over(1, 4) access [element, element, element] outputs 2 {
^bb0(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>):
  exec.map {
    %a = exec.load %x : memref<4xf32> -> f32
    %b = math.absf %a : f32
    %c = math.erf %b : f32
    %d = math.tanh %c : f32
    %e = math.log %d : f32
    exec.store %e, %y : f32, memref<4xf32>
    %low = arith.constant 0xFF800000 : f32
    %g = exec.load %x : memref<4xf32> -> f32
    %h = arith.maximumf %g, %low : f32
    exec.store %h, %z : f32, memref<4xf32>
  }
}

exec.program @nothing arena 0 attributes {exec.reads = [], exec.writes = []} {
}

// The first launch says whose kernel it is.
exec.program @norm arena 512 attributes {exec.reads = [], exec.writes = []} {
  %x = exec.alloc at 0 : memref<4x8xf32>
  %w = exec.alloc at 128 : memref<8xf32>
  exec.fill_zero on compute () outs(%x : memref<4x8xf32>)
  exec.fill_zero on compute () outs(%w : memref<8xf32>)
  %y = exec.alloc at 192 : memref<4x8xf32>
  %r = exec.alloc at 320 : memref<4xf32>
  exec.launch @rms_norm on compute (%x, %w : memref<4x8xf32>, memref<8xf32>) outs(%y, %r : memref<4x8xf32>, memref<4xf32>) {nn.module = "norm"}
}
}
