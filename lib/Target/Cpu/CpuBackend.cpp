//===- CpuBackend.cpp - The CPU: loops, and the host's compiler -----------===//
#include "fsdp/Emit/Compile.h"
#include "fsdp/Target/Backends.h"
#include "lib/Emit/EmitKernel.h"
#include "lib/Emit/Emitter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/TargetParser/Host.h"

using namespace fsdp;
using llvm::StringRef;

namespace {

class CpuKernels : public KernelSource {
public:
  mlir::LogicalResult print(exec::KernelOp kernel, StringRef name,
                            StringRef user,
                            llvm::raw_ostream &os) const override {
    return emit::emitKernel(kernel, name, user, os);
  }
  std::string launchFunction(exec::KernelOp kernel) const override {
    return kernel.getColumnReduction()    ? "launchColumns"
           : emit::combinesBlocks(kernel) ? "launchRowBlocks"
                                          : "launch";
  }
};

class CpuBackend : public Backend {
public:
  CpuBackend() : Backend(rt::kCpuTarget) {}

  StringRef extension() const override { return "cpp"; }
  StringRef kernelHeader() const override {
    return "fsdp/Runtime/KernelRows.h";
  }
  std::unique_ptr<KernelSource> kernelsOf(mlir::ModuleOp) const override {
    return std::make_unique<CpuKernels>();
  }

  std::string defaultCompiler() const override { return "g++"; }
  std::string architecture(StringRef cpu, StringRef gpu) const override;
  std::vector<std::string> versionFlags() const override {
    return {"-dumpfullversion", "-dumpversion"};
  }
  StringRef versionIn(StringRef answer) const override { return answer; }
  std::vector<std::string> command(const HostCompiler &compiler,
                                   Product product, const std::string &work,
                                   const std::string &source,
                                   const std::string &result) const override;
};

} // namespace

/// "native" is the highest level of x86-64 (x86-64-v2, -v3, -v4) that this CPU
/// has: a name that every compiler knows and every loader can check. Any other
/// name stays.
std::string CpuBackend::architecture(StringRef cpu, StringRef) const {
  if (cpu != "native")
    return cpu.str();
#if defined(__x86_64__)
  llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  auto has = [&](llvm::ArrayRef<const char *> names) {
    return llvm::all_of(names,
                        [&](const char *name) { return features[name]; });
  };
  if (has({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}))
    return "x86-64-v4";
  if (has({"avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}))
    return "x86-64-v3";
  return "x86-64-v2";
#else
  return "native";
#endif
}

/// Flags that change bits are absent: no -ffast-math, no contraction. The two
/// -fno- options on math say only that nobody reads errno or floating-point
/// exceptions, so that loops with sqrt or comparisons become vectors. GCC's
/// superword pass contracts pairs of a*c - b*d and a*d + b*c in spite of
/// -ffp-contract=off, so it is off; loops are vectorised all the same.
static std::vector<std::string> cpuFlags(const HostCompiler &compiler) {
  return {"-std=c++17",
          "-O3",
          "-march=" + compiler.cpu,
          "-ffp-contract=off",
          "-fno-tree-slp-vectorize",
          "-fno-math-errno",
          "-fno-trapping-math",
          "-fopenmp-simd",
          "-fPIC",
          "-fvisibility=hidden",
          "-Wall",
          "-I" + compiler.includeDir};
}

/// The runtime is found by name where the artifact is loaded, so no path is
/// recorded; undefined symbols are an error here, not there.
static std::vector<std::string> cpuLinkFlags(const HostCompiler &compiler) {
  return {"-shared",
          "-Wl,-soname,step.so",
          "-Wl,--build-id=none",
          "-Wl,--no-undefined",
          "-L" + compiler.libraryDir,
          "-lfsdp_runtime"};
}

std::vector<std::string> CpuBackend::command(const HostCompiler &compiler,
                                             Product product,
                                             const std::string &work,
                                             const std::string &source,
                                             const std::string &result) const {
  std::vector<std::string> command = {compiler.cxx};
  llvm::append_range(command, cpuFlags(compiler));
  llvm::append_range(
      command,
      std::vector<std::string>{work + "/" + source, "-o", work + "/" + result});
  if (product == Product::Object)
    command.emplace_back("-c");
  else
    llvm::append_range(command, cpuLinkFlags(compiler));
  return command;
}

std::unique_ptr<Backend> fsdp::makeCpuBackend() {
  return std::make_unique<CpuBackend>();
}
