//===- CudaBackend.cpp - NVIDIA GPUs: __global__ functions, and nvcc ------===//
#include "fsdp/Emit/Compile.h"
#include "fsdp/Target/Backends.h"
#include "lib/Emit/EmitKernel.h"
#include "lib/Target/Cuda/EmitCudaKernel.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"

using namespace fsdp;
using llvm::StringRef;

namespace {

class CudaKernels : public KernelSource {
public:
  explicit CudaKernels(mlir::ModuleOp module)
      : vectorized(emit::vectorizedAccessOf(module)) {}

  mlir::LogicalResult print(exec::KernelOp kernel, StringRef name,
                            StringRef user,
                            llvm::raw_ostream &os) const override {
    return emit::emitCudaKernel(kernel, vectorized.lookup(kernel.getSymName()),
                                name, user, os);
  }
  std::string launchFunction(exec::KernelOp kernel) const override;

private:
  llvm::StringMap<emit::VectorizedAccess> vectorized;
};

class CudaBackend : public Backend {
public:
  CudaBackend() : Backend(rt::kCudaTarget) {}

  StringRef extension() const override { return "cu"; }
  StringRef kernelHeader() const override { return "fsdp/Runtime/CudaRows.h"; }
  std::unique_ptr<KernelSource>
  kernelsOf(mlir::ModuleOp module) const override {
    return std::make_unique<CudaKernels>(module);
  }

  std::string defaultCompiler() const override;
  std::string architecture(StringRef, StringRef gpu) const override {
    return gpu.str();
  }
  std::string cannotFind(StringRef compiler) const override;
  llvm::Error checkRuntime(const HostCompiler &compiler) const override;
  std::vector<std::string> versionFlags() const override {
    return {"--version"};
  }
  /// nvcc says much; its version is after ", V".
  StringRef versionIn(StringRef answer) const override {
    return answer.split(", V").second.split('\n').first;
  }
  std::vector<std::string> command(const HostCompiler &compiler,
                                   Product product, const std::string &work,
                                   const std::string &source,
                                   const std::string &result) const override;
};

} // namespace

std::string CudaKernels::launchFunction(exec::KernelOp kernel) const {
  bool columns = kernel.getColumnReduction();
  emit::VectorizedAccess taken = vectorized.lookup(kernel.getSymName());
  bool blocks = emit::combinesBlocks(kernel);
  if (taken.hasBlockPerRow && !blocks)
    return "launchBlocks";
  if (emit::isInOrder(kernel))
    return "launchBlockSums";
  if (!columns && !blocks && !emit::isPointwise(kernel))
    return "launch";
  std::string function = columns  ? "launchColumns"
                         : blocks ? "launchRowBlocks"
                                  : "launchElements";
  return taken.neighbours == 1
             ? function
             : function + "<" + std::to_string(taken.neighbours) + ">";
}

/// nvcc where the PATH has one, or else that of the toolkit's usual place.
std::string CudaBackend::defaultCompiler() const {
  const char *usual = "/usr/local/cuda/bin/nvcc";
  if (llvm::sys::findProgramByName("nvcc") ||
      !llvm::sys::fs::can_execute(usual))
    return "nvcc";
  return usual;
}

std::string CudaBackend::cannotFind(StringRef compiler) const {
  if (compiler != "nvcc")
    return Backend::cannotFind(compiler);
  return "GPU code needs nvcc, which is neither on the PATH nor in "
         "/usr/local/cuda/bin; install the CUDA toolkit, name the "
         "compiler with --cxx, or compile for --target=cpu";
}

llvm::Error CudaBackend::checkRuntime(const HostCompiler &compiler) const {
  std::string library = compiler.libraryDir + "/libfsdp_runtime_cuda.so";
  if (llvm::sys::fs::exists(library))
    return llvm::Error::success();
  return llvm::createStringError(
      "a GPU artifact is linked to '" + library +
      "', which does not exist: this build has no CUDA; build "
      "fsdp where CMake finds the CUDA toolkit, cuDNN and NCCL, "
      "or name the library's directory with --runtime-library");
}

static std::string absolute(StringRef path) {
  llvm::SmallString<128> full(path);
  (void)llvm::sys::fs::make_absolute(full); // fails without a current directory
  return std::string(full);
}

/// -fmad=false: the CPU's bits.
static std::vector<std::string> cudaFlags(const HostCompiler &compiler) {
  return {"-std=c++17",
          "-O3",
          "-arch=" + compiler.cpu,
          "-fmad=false",
          "-cudart=shared",
          "-Xcompiler=-fPIC,-fvisibility=hidden,-Wall",
          "-I" + absolute(compiler.includeDir)};
}

/// As on the CPU: no path is recorded, no symbol undefined.
static std::vector<std::string> cudaLinkFlags(const HostCompiler &compiler) {
  return {"-shared",
          "-Xlinker=-soname,step.so",
          "-Xlinker=-s",
          "-Xlinker=--build-id=none",
          "-Xlinker=--no-undefined",
          "-L" + absolute(compiler.libraryDir),
          "-lfsdp_runtime_cuda"};
}

/// nvcc derives names of symbols from the path of the source, so that must be
/// the same everywhere: it runs where the source lies.
std::vector<std::string> CudaBackend::command(const HostCompiler &compiler,
                                              Product product,
                                              const std::string &work,
                                              const std::string &source,
                                              const std::string &result) const {
  std::vector<std::string> command = {"env", "-C", work, compiler.cxx};
  llvm::append_range(command, cudaFlags(compiler));
  llvm::append_range(command, std::vector<std::string>{source, "-o", result});
  if (product == Product::Object)
    command.emplace_back("-c");
  else
    llvm::append_range(command, cudaLinkFlags(compiler));
  return command;
}

std::unique_ptr<Backend> fsdp::makeCudaBackend() {
  return std::make_unique<CudaBackend>();
}
