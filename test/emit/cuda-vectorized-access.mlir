// RUN: rm -rf %t && mkdir %t
// RUN: fsdp-compile %s --emit=cuda -o %t/step.cu
// RUN: FileCheck %s < %t/step.cu

// A thread takes 16 bytes of the narrowest operand at a time, where sizes and
// places allow it; the CPU's bits are the same.
// RUN: fsdp-compile %s --emit=object -o %t/cpu.o
// RUN: g++ -shared -o %t/cpu.so %t/cpu.o
// RUN: g++ -std=c++17 -O2 -rdynamic -I%source/include %source/test/shim/CompareKernels.cpp -o %t/compare-kernels -ldl
// RUN: g++ -std=c++17 -O2 -ffp-contract=off -Wall -Werror -x c++ -include %source/test/shim/CudaShim.h -I%source/include -fPIC -shared -o %t/cuda.so %t/step.cu
// RUN: %t/compare-kernels %t/cpu.so %t/cuda.so | FileCheck %s --check-prefix=SAME
// SAME: 10 kernels, 0 different

module attributes {exec.persistent_bytes = 0 : i64, exec.arena_bytes = 524288 : i64} {

// Neither rows nor columns matter: 24 elements are three vectors, whatever the
// rows. An f32 among bf16 is two accesses.
// CHECK-LABEL: __global__ void k_flat(
// CHECK:       gpu::packets<8>(rows * cols, [&](int64_t first) {
// CHECK-NEXT:    const auto x_8 = gpu::load<8>(x_ + first);
// CHECK-NEXT:    const auto in1_8 = gpu::load<8>(in1 + first);
// CHECK-NEXT:    gpu::Packet<BF16, 8> y_8;
// CHECK-NEXT:    FSDP_UNROLL
// CHECK-NEXT:    for (int i = 0; i < 8; ++i) {
// CHECK-NEXT:      y_8[i] = toBF16(widen(x_8[i]) * in1_8[i] * in2[0]);
// CHECK-NEXT:    }
// CHECK-NEXT:    gpu::store(y_ + first, y_8);
// CHECK-NEXT:  });
exec.kernel @flat over(6, 4) access [element, element, scalar, element] outputs 1 {
^bb0(%x: memref<6x4xbf16> loc("x"), %f: memref<6x4xf32>, %s: memref<f32>, %y: memref<6x4xbf16> loc("y")):
  exec.map {
    %a = exec.load %x : memref<6x4xbf16> -> f32
    %b = exec.load %f : memref<6x4xf32> -> f32
    %c = arith.mulf %a, %b : f32
    %d = exec.load %s : memref<f32> -> f32
    %e = arith.mulf %c, %d : f32
    exec.store %e, %y : f32, memref<6x4xbf16>
  }
}

// A vector is of one row where rows or columns matter: a row's number is read
// once for it. Another column is no part of a vector.
// CHECK-LABEL: __global__ void k_rows_and_columns(
// CHECK:       gpu::packets<4>(rows, cols, [&](int64_t row, int64_t left) {
// CHECK-NEXT:    const int64_t first = row * cols;
// CHECK-NEXT:    const float [[R:[a-z0-9_]+]] = r_[row];
// CHECK-NEXT:    const auto x_4 = gpu::load<4>(x_ + first + left);
// CHECK-NEXT:    const auto w_4 = gpu::load<4>(w_ + left);
// CHECK-NEXT:    gpu::Packet<float, 4> y_4;
// CHECK-NEXT:    FSDP_UNROLL
// CHECK-NEXT:    for (int i = 0; i < 4; ++i) {
// CHECK-NEXT:      const int64_t col = left + i;
// CHECK-NEXT:      y_4[i] = int32_t(col) == id_[row] ? x_4[i] * w_4[i] * [[R]] : x_[first + 1];
// CHECK:         gpu::store(y_ + first + left, y_4);
exec.kernel @rows_and_columns over(5, 12) access [element, row, column, row, element] outputs 1 {
^bb0(%x: memref<5x12xf32> loc("x"), %r: memref<5xf32> loc("r"), %w: memref<12xf32> loc("w"), %id: memref<5xi32> loc("id"), %y: memref<5x12xf32> loc("y")):
  %scale = exec.load %r : memref<5xf32> -> f32
  exec.map {
    %a = exec.load %x : memref<5x12xf32> -> f32
    %b = exec.load %w : memref<12xf32> -> f32
    %c = arith.mulf %a, %b : f32
    %d = arith.mulf %c, %scale : f32
    %col = exec.column
    %i = exec.load %id : memref<5xi32> -> i32
    %hit = arith.cmpi eq, %col, %i : i32
    %one = arith.constant 1 : i32
    %e = exec.load %x at %one : memref<5x12xf32> -> f32
    %f = arith.select %hit, %d, %e : f32
    exec.store %f, %y : f32, memref<5x12xf32>
  }
}

// Maps of a kernel of rows take vectors, the reduction keeps its lanes.
// CHECK-LABEL: __global__ void k_normed(
// CHECK:       const float sum = math::sumLanes(cols, [&](int64_t col) {
// CHECK:       for (int64_t left = gpu::lane() * 8; left < cols; left += math::kLanes * 8) {
// CHECK-NEXT:    const auto x_8 = gpu::load<8>(x_ + first + left);
// CHECK:         gpu::store(y_ + first + left, y_8);
exec.kernel @normed over(3, 264) access [element, element] outputs 1 {
^bb0(%x: memref<3x264xbf16> loc("x"), %y: memref<3x264xbf16> loc("y")):
  %s = exec.reduce sum {
    %a = exec.load %x : memref<3x264xbf16> -> f32
    exec.yield %a
  }
  exec.map {
    %a = exec.load %x : memref<3x264xbf16> -> f32
    %b = arith.mulf %a, %s : f32
    exec.store %b, %y : f32, memref<3x264xbf16>
  }
}

// A long row has a block: all threads compute the terms of a sum.
// CHECK-LABEL: __global__ void k_long(
// CHECK:       const int64_t row = blockIdx.x;
// CHECK-NEXT:  const int64_t first = row * cols;
// CHECK-NEXT:  const float sum = math::sumOfRow<4>(cols, [&](int64_t left) {
// CHECK-NEXT:    const auto x_4 = gpu::load<4>(x_ + first + left);
// CHECK-NEXT:    gpu::Packet<float, 4> term;
// CHECK:         return term;
// CHECK:       const float max = math::maxOfRow<4>(cols, [&](int64_t left) {
// CHECK:       const float sum_2 = math::sumOfRow<4>(cols, [&](int64_t left) {
// CHECK:       for (int64_t left = int64_t(threadIdx.x) * 4; left < cols; left += gpu::kThreads * 4) {
// CHECK:         gpu::store(y_ + first + left, y_4);
// CHECK:       if (threadIdx.x == 0)
// CHECK-NEXT:    z_[row] = sum;
exec.kernel @long over(3, 2564) access [element, element, row] outputs 2 {
^bb0(%x: memref<3x2564xf32> loc("x"), %y: memref<3x2564xf32> loc("y"), %z: memref<3xf32> loc("z")):
  %s = exec.reduce sum {
    %a = exec.load %x : memref<3x2564xf32> -> f32
    exec.yield %a
  }
  %m = exec.reduce max {
    %a = exec.load %x : memref<3x2564xf32> -> f32
    exec.yield %a
  }
  %q = exec.reduce sum {
    %a = exec.load %x : memref<3x2564xf32> -> f32
    %b = arith.mulf %a, %m : f32
    exec.yield %b
  }
  exec.map {
    %a = exec.load %x : memref<3x2564xf32> -> f32
    %b = arith.addf %a, %q : f32
    exec.store %b, %y : f32, memref<3x2564xf32>
  }
  exec.store %s, %z : f32, memref<3xf32>
}

// A kernel of rows that also combines blocks of them has the threads of a block:
// all of its rows' sums pass through them.
// CHECK:       __launch_bounds__(gpu::kRowBlockThreads, math::RowBlock<8, 24>::atOnce(1))
// CHECK-NEXT:  __global__ void k_blocks(
// CHECK:       using Block = math::RowBlock<8, 24>;
// CHECK-NEXT:  Block::Columns<math::AddRows> z_columns;
// CHECK-NEXT:  const int64_t top = int64_t(blockIdx.x) * math::kRowBlock;
// CHECK-NEXT:  FSDP_UNROLL_BY(1)
// CHECK-NEXT:  for (int64_t row = top + threadIdx.y; row < top + math::kRowBlock;
// CHECK-NEXT:       row += Block::kRows) {
// CHECK-NEXT:    const int64_t first = row * cols;
// CHECK-NEXT:    const float sum = Block::sumOfRow([&](int64_t left) {
// CHECK:         for (int64_t left = int64_t(threadIdx.x) * 8; left < cols; left += Block::kThreads * 8) {
// CHECK:         z_columns.combine([&](int64_t left) {
// CHECK:       z_columns.store(z_ + blockIdx.x * cols);
exec.kernel @blocks over(64, 24) access [element, element, block] outputs 2 {
^bb0(%x: memref<64x24xbf16> loc("x"), %y: memref<64x24xbf16> loc("y"), %z: memref<2x24xf32> loc("z")):
  %s = exec.reduce sum {
    %a = exec.load %x : memref<64x24xbf16> -> f32
    exec.yield %a
  }
  exec.map {
    %a = exec.load %x : memref<64x24xbf16> -> f32
    %b = arith.mulf %a, %s : f32
    exec.store %b, %y : f32, memref<64x24xbf16>
  }
  exec.reduce_rows sum %z : memref<2x24xf32> {
    %a = exec.load %x : memref<64x24xbf16> -> f32
    exec.yield %a
  }
}

// A column reduction adds vectors of columns, in its order of rows.
// CHECK-LABEL: __global__ void k_columns(
// CHECK:       math::sumRows<8>(rows, cols, y_, [&](int64_t row, int64_t left) {
// CHECK-NEXT:    const int64_t first = row * cols;
// CHECK-NEXT:    const auto x_8 = gpu::load<8>(x_ + first + left);
// CHECK-NEXT:    gpu::Packet<float, 8> term;
// CHECK-NEXT:    FSDP_UNROLL
// CHECK-NEXT:    for (int i = 0; i < 8; ++i) {
// CHECK-NEXT:      term[i] = widen(x_8[i]) * r_[row];
// CHECK-NEXT:    }
// CHECK-NEXT:    return term;
// CHECK-NEXT:  });
exec.kernel @columns over(70, 24) access [element, row, column] outputs 1 column_reduction {
^bb0(%x: memref<70x24xbf16> loc("x"), %r: memref<70xf32> loc("r"), %y: memref<24xf32> loc("y")):
  exec.reduce_rows sum %y : memref<24xf32> {
    %a = exec.load %x : memref<70x24xbf16> -> f32
    %b = exec.load %r : memref<70xf32> -> f32
    %c = arith.mulf %a, %b : f32
    exec.yield %c
  }
}

// Integers of 64 bits: four, two accesses.
// CHECK-LABEL: __global__ void k_count(
// CHECK:       gpu::packets<4>(rows * cols, [&](int64_t first) {
exec.kernel @count over(1, 8) access [element, element] outputs 1 {
^bb0(%n: memref<8xi64>, %m: memref<8xi64>):
  exec.map {
    %a = exec.load %n : memref<8xi64> -> i64
    %one = arith.constant 1 : i64
    %b = arith.addi %a, %one : i64
    exec.store %b, %m : i64, memref<8xi64>
  }
}

// One element at a time: the last vector would not be whole,
// CHECK-LABEL: __global__ void k_odd(
// CHECK:       gpu::elements(rows, cols, [&](int64_t row, int64_t col) {
exec.kernel @odd over(3, 4) access [element, element] outputs 1 {
^bb0(%x: memref<3x4xbf16>, %y: memref<3x4xbf16>):
  exec.map {
    %a = exec.load %x : memref<3x4xbf16> -> f32
    exec.store %a, %y : f32, memref<3x4xbf16>
  }
}

// a vector would go on in the next row,
// CHECK-LABEL: __global__ void k_across(
// CHECK:       gpu::elements(rows, cols, [&](int64_t row, int64_t col) {
exec.kernel @across over(4, 6) access [element, row, element] outputs 1 {
^bb0(%x: memref<4x6xf32>, %r: memref<4xf32>, %y: memref<4x6xf32>):
  exec.map {
    %a = exec.load %x : memref<4x6xf32> -> f32
    %b = exec.load %r : memref<4xf32> -> f32
    %c = arith.addf %a, %b : f32
    exec.store %c, %y : f32, memref<4x6xf32>
  }
}

// an output is read, by whoever wrote it,
// CHECK-LABEL: __global__ void k_reads_output(
// CHECK:       for (int64_t col = gpu::lane(); col < cols; col += math::kLanes) {
exec.kernel @reads_output over(2, 16) access [element, element, row] outputs 2 {
^bb0(%x: memref<2x16xf32>, %y: memref<2x16xf32>, %z: memref<2xf32>):
  exec.map {
    %a = exec.load %x : memref<2x16xf32> -> f32
    %b = arith.mulf %a, %a : f32
    exec.store %b, %y : f32, memref<2x16xf32>
  }
  %s = exec.reduce sum {
    %a = exec.load %y : memref<2x16xf32> -> f32
    exec.yield %a
  }
  exec.store %s, %z : f32, memref<2xf32>
}

// or a call hands down a part of a buffer that begins anywhere.
// CHECK-LABEL: __global__ void k_shifted(
// CHECK:       gpu::elements(rows, cols, [&](int64_t row, int64_t col) {
exec.kernel @shifted over(1, 8) access [element, element] outputs 1 {
^bb0(%x: memref<8xf32>, %y: memref<8xf32>):
  exec.map {
    %a = exec.load %x : memref<8xf32> -> f32
    %b = arith.addf %a, %a : f32
    exec.store %b, %y : f32, memref<8xf32>
  }
}

exec.func @inner {
^bb0(%x: memref<8xf32>, %y: memref<8xf32>):
  exec.launch @shifted on compute (%x : memref<8xf32>) outs(%y : memref<8xf32>)
}

// CHECK: launchElements(c, Stream::Compute, "shifted", k_shifted, 1, 8,
// CHECK: launchElements<8>(c, Stream::Compute, "flat", k_flat, 6, 4,
// CHECK: launchElements<4>(c, Stream::Compute, "rows_and_columns",
// CHECK: launch(c, Stream::Compute, "normed", k_normed, 3, 264,
// CHECK: launchBlocks(c, Stream::Compute, "long", k_long, 3, 2564,
// CHECK: launchColumns<8>(c, Stream::Compute, "columns", k_columns, 70, 24,
exec.program @all arena 524288 attributes {exec.reads = [], exec.writes = []} {
  %bf = exec.alloc at 0 : memref<6x4xbf16>
  exec.fill_zero on compute () outs(%bf : memref<6x4xbf16>)
  %f = exec.alloc at 256 : memref<6x4xf32>
  exec.fill_zero on compute () outs(%f : memref<6x4xf32>)
  %s = exec.alloc at 768 : memref<f32>
  exec.fill_zero on compute () outs(%s : memref<f32>)
  %bfo = exec.alloc at 1024 : memref<6x4xbf16>
  exec.launch @flat on compute (%bf, %f, %s : memref<6x4xbf16>, memref<6x4xf32>, memref<f32>) outs(%bfo : memref<6x4xbf16>)
  %x = exec.alloc at 1280 : memref<5x12xf32>
  exec.fill_zero on compute () outs(%x : memref<5x12xf32>)
  %r = exec.alloc at 2304 : memref<5xf32>
  exec.fill_zero on compute () outs(%r : memref<5xf32>)
  %w = exec.alloc at 2560 : memref<12xf32>
  exec.fill_zero on compute () outs(%w : memref<12xf32>)
  %id = exec.alloc at 2816 : memref<5xi32>
  exec.fill_zero on compute () outs(%id : memref<5xi32>)
  %y = exec.alloc at 3072 : memref<5x12xf32>
  exec.launch @rows_and_columns on compute (%x, %r, %w, %id : memref<5x12xf32>, memref<5xf32>, memref<12xf32>, memref<5xi32>) outs(%y : memref<5x12xf32>)
  %n = exec.alloc at 4096 : memref<3x264xbf16>
  exec.fill_zero on compute () outs(%n : memref<3x264xbf16>)
  %no = exec.alloc at 10496 : memref<3x264xbf16>
  exec.launch @normed on compute (%n : memref<3x264xbf16>) outs(%no : memref<3x264xbf16>)
  %lx = exec.alloc at 32768 : memref<3x2564xf32>
  exec.fill_zero on compute () outs(%lx : memref<3x2564xf32>)
  %ly = exec.alloc at 155904 : memref<3x2564xf32>
  %lz = exec.alloc at 279040 : memref<3xf32>
  exec.launch @long on compute (%lx : memref<3x2564xf32>) outs(%ly, %lz : memref<3x2564xf32>, memref<3xf32>)
  %cx = exec.alloc at 16896 : memref<70x24xbf16>
  exec.fill_zero on compute () outs(%cx : memref<70x24xbf16>)
  %cr = exec.alloc at 30464 : memref<70xf32>
  exec.fill_zero on compute () outs(%cr : memref<70xf32>)
  %cy = exec.alloc at 31744 : memref<24xf32>
  exec.launch @columns on compute (%cx, %cr : memref<70x24xbf16>, memref<70xf32>) outs(%cy : memref<24xf32>)
  %c = exec.alloc at 0 : memref<8xi64>
  exec.fill_zero on compute () outs(%c : memref<8xi64>)
  %co = exec.alloc at 256 : memref<8xi64>
  exec.launch @count on compute (%c : memref<8xi64>) outs(%co : memref<8xi64>)
  %o = exec.alloc at 512 : memref<3x4xbf16>
  exec.fill_zero on compute () outs(%o : memref<3x4xbf16>)
  %oo = exec.alloc at 768 : memref<3x4xbf16>
  exec.launch @odd on compute (%o : memref<3x4xbf16>) outs(%oo : memref<3x4xbf16>)
  %a = exec.alloc at 1024 : memref<4x6xf32>
  exec.fill_zero on compute () outs(%a : memref<4x6xf32>)
  %ar = exec.alloc at 1536 : memref<4xf32>
  exec.fill_zero on compute () outs(%ar : memref<4xf32>)
  %ao = exec.alloc at 1792 : memref<4x6xf32>
  exec.launch @across on compute (%a, %ar : memref<4x6xf32>, memref<4xf32>) outs(%ao : memref<4x6xf32>)
  %i = exec.alloc at 2304 : memref<2x16xf32>
  exec.fill_zero on compute () outs(%i : memref<2x16xf32>)
  %io = exec.alloc at 2816 : memref<2x16xf32>
  %is = exec.alloc at 3328 : memref<2xf32>
  exec.launch @reads_output on compute (%i : memref<2x16xf32>) outs(%io, %is : memref<2x16xf32>, memref<2xf32>)
  %all = exec.alloc at 3584 : memref<12xf32>
  exec.fill_zero on compute () outs(%all : memref<12xf32>)
  %so = exec.alloc at 3840 : memref<8xf32>
  %part = exec.view %all[1] : memref<12xf32> to memref<8xf32>
  exec.call @inner(%part, %so) events [] : memref<8xf32>, memref<8xf32>
}
}
