//===- EmittedProgramTest.cpp - Generated code, run -----------------------===//
//
// exec text becomes C++, a shared object, a context, and numbers: every shape
// of kernel against a reference with the contract's order of operations.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "fsdp/Core/Context.h"
#include "fsdp/Emit/Compile.h"
#include "fsdp/Emit/Emit.h"
#include "fsdp/Runtime/KernelMath.h"
#include "fsdp/Target/Backends.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;

namespace {

/// x is 40 rows of 19 columns: neither a multiple of 16 lanes nor of 32 rows.
constexpr int kRows = 40, kCols = 19;

const char *const kProgram = R"(
module attributes {exec.persistent_bytes = 8192 : i64, exec.arena_bytes = 8192 : i64} {
  exec.range @x : memref<40x19xf32> role input at 0
  exec.range @row : memref<40xf32> role output at 3072
  exec.range @column : memref<19xf32> role output at 3264
  exec.range @half : memref<40x19xbf16> role output at 3392
  exec.range @max : memref<40xf32> role output at 4928

  exec.kernel @rows over(40, 19) access [element, row, row, element] outputs 3 {
  ^bb0(%x: memref<40x19xf32>, %row: memref<40xf32>, %max: memref<40xf32>, %half: memref<40x19xbf16>):
    %sum = exec.reduce sum {
      %a = exec.load %x : memref<40x19xf32> -> f32
      %b = arith.mulf %a, %a : f32
      exec.yield %b
    }
    %largest = exec.reduce max {
      %a = exec.load %x : memref<40x19xf32> -> f32
      exec.yield %a
    }
    exec.store %sum, %row : f32, memref<40xf32>
    exec.store %largest, %max : f32, memref<40xf32>
    exec.map {
      %a = exec.load %x : memref<40x19xf32> -> f32
      %b = arith.subf %a, %largest : f32
      %e = math.exp %b : f32
      exec.store %e, %half : f32, memref<40x19xbf16>
    }
  }
  exec.kernel @columns over(40, 19) access [element, column] outputs 1 column_reduction {
  ^bb0(%x: memref<40x19xf32>, %column: memref<19xf32>):
    exec.reduce_rows sum %column : memref<19xf32> {
      %a = exec.load %x : memref<40x19xf32> -> f32
      exec.yield %a
    }
  }
  exec.func @both {
  ^bb0(%x: memref<40x19xf32>, %row: memref<40xf32>, %column: memref<19xf32>, %half: memref<40x19xbf16>, %max: memref<40xf32>):
    exec.launch @rows on compute (%x : memref<40x19xf32>)
        outs(%row, %max, %half : memref<40xf32>, memref<40xf32>, memref<40x19xbf16>)
    exec.launch @columns on compute (%x : memref<40x19xf32>) outs(%column : memref<19xf32>)
  }
  exec.program @p arena 8192 {
    %x = exec.get @x : memref<40x19xf32>
    %row = exec.get @row : memref<40xf32>
    %column = exec.get @column : memref<19xf32>
    %half = exec.get @half : memref<40x19xbf16>
    %max = exec.get @max : memref<40xf32>
    exec.call @both(%x, %row, %column, %half, %max) events []
        : memref<40x19xf32>, memref<40xf32>, memref<19xf32>, memref<40x19xbf16>, memref<40xf32>
  }
}
)";

class EmittedProgram : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("fsdp-emitted", folder));
    DialectRegistry registry;
    registerFsdpDialects(registry);
    MLIRContext context(registry, MLIRContext::Threading::DISABLED);
    auto module = parseSourceString<ModuleOp>(kProgram, &context);
    ASSERT_TRUE(module);
    std::string source;
    llvm::raw_string_ostream os(source);
    const Backend *backend = backendOf(rt::kCpuTarget);
    SourceInfo info;
    info.backend = backend;
    ASSERT_TRUE(succeeded(emitSource(*module, info, os)));

    HostCompiler compiler;
    compiler.backend = backend;
    compiler.cxx = backend->defaultCompiler();
    compiler.cpu = backend->architecture("native", /*gpu=*/"");
    compiler.includeDir = FSDP_INCLUDE_DIR;
    compiler.libraryDir = FSDP_LIBRARY_DIR;
    std::string path = (folder + "/step.so").str();
    llvm::Error error = compileSource(source, Product::Library, compiler, path);
    ASSERT_FALSE(error) << llvm::toString(std::move(error));
    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_TRUE(library) << dlerror();
  }
  void TearDown() override {
    if (library)
      dlclose(library);
    (void)llvm::sys::fs::remove_directories(folder);
  }

  llvm::SmallString<128> folder;
  void *library = nullptr;
};

/// Element j goes to lane j mod 16 in order of j; lanes combine as a tree.
float sumOfSquares(const float *x) {
  float lanes[16] = {};
  for (int j = 0; j < kCols; ++j)
    lanes[j % 16] += x[j] * x[j];
  for (int step = 8; step > 0; step /= 2)
    for (int i = 0; i < step; ++i)
      lanes[i] += lanes[i + step];
  return lanes[0];
}

/// Rows 0 to 31 in order, rows 32 to 39 in order, then both.
float sumOfColumn(const float *x, int column) {
  float blocks[2] = {};
  for (int row = 0; row < kRows; ++row)
    blocks[row / 32] += x[row * kCols + column];
  return blocks[0] + blocks[1];
}

TEST_F(EmittedProgram, KernelsKeepTheOrderOfTheContract) {
  auto get = reinterpret_cast<const fsdp_artifact *(*)()>(
      dlsym(library, "fsdp_get_artifact"));
  ASSERT_TRUE(get);
  rt::ContextOptions options;
  options.meshAxes = {1};
  std::string error;
  rt::ContextPtr context = rt::createContext(*get(), options, error);
  ASSERT_TRUE(context) << error;

  auto *x = reinterpret_cast<float *>(rt::at(*context, 0));
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  for (int i = 0; i < kRows * kCols; ++i)
    x[i] = normal(generator);
  ASSERT_TRUE(rt::runProgram(*context, 0, error)) << error;

  auto *rowSums = reinterpret_cast<float *>(rt::at(*context, 3072));
  auto *columnSums = reinterpret_cast<float *>(rt::at(*context, 3264));
  auto *half = reinterpret_cast<rt::BF16 *>(rt::at(*context, 3392));
  auto *largest = reinterpret_cast<float *>(rt::at(*context, 4928));
  for (int row = 0; row < kRows; ++row) {
    const float *values = x + row * kCols;
    EXPECT_EQ(rowSums[row], sumOfSquares(values)) << "row " << row;
    EXPECT_EQ(largest[row], *std::max_element(values, values + kCols));
    for (int col = 0; col < kCols; ++col) {
      float exact = rt::math::exp(values[col] - largest[row]);
      EXPECT_EQ(half[row * kCols + col].bits, rt::math::toBF16(exact).bits)
          << "row " << row << ", column " << col;
    }
  }
  for (int col = 0; col < kCols; ++col)
    EXPECT_EQ(columnSums[col], sumOfColumn(x, col)) << "column " << col;
}

} // namespace
