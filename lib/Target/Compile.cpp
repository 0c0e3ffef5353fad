//===- Compile.cpp - Runs the host's C++ compiler or nvcc -----------------===//
#include "fsdp/Target/Compile.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Host.h"

using namespace fsdp;
using namespace llvm;

static Error failure(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {

/// A directory for the files on the way to `output`, beside it so that the
/// result can be renamed into place; gone when the object dies.
class WorkDirectory {
public:
  static Expected<WorkDirectory> beside(StringRef output) {
    WorkDirectory dir;
    SmallString<128> model(output);
    model += ".tmp-%%%%%%";
    sys::fs::createUniquePath(model, dir.path, /*MakeAbsolute=*/false);
    if (std::error_code ec = sys::fs::create_directory(dir.path))
      return failure("cannot write beside '" + output + "': " + ec.message());
    return dir;
  }
  WorkDirectory(WorkDirectory &&other) : path(other.path) {
    other.path.clear();
  }
  ~WorkDirectory() {
    if (!path.empty())
      sys::fs::remove_directories(path);
  }

  StringRef name() const { return path; }
  std::string file(StringRef name) const {
    SmallString<128> full(path);
    sys::path::append(full, name);
    return std::string(full);
  }

private:
  WorkDirectory() = default;
  SmallString<128> path;
};

} // namespace

static Error writeText(StringRef path, StringRef text) {
  std::error_code ec;
  raw_fd_ostream os(path, ec);
  if (ec)
    return failure("cannot write '" + path + "': " + ec.message());
  os << text;
  os.close();
  if (os.has_error()) {
    ec = os.error();
    os.clear_error();
    return failure("cannot write '" + path + "': " + ec.message());
  }
  return Error::success();
}

static Error moveInto(StringRef from, StringRef to) {
  if (std::error_code ec = sys::fs::rename(from, to))
    return failure("cannot write '" + to + "': " + ec.message());
  return Error::success();
}

Error fsdp::writeWholeFile(StringRef path, StringRef text) {
  Expected<WorkDirectory> work = WorkDirectory::beside(path);
  if (!work)
    return work.takeError();
  std::string temporary = work->file("file");
  if (Error error = writeText(temporary, text))
    return error;
  return moveInto(temporary, path);
}

//===----------------------------------------------------------------------===//
// Target
//===----------------------------------------------------------------------===//

std::string fsdp::resolveCpu(StringRef cpu) {
  if (cpu != "native")
    return cpu.str();
#if defined(__x86_64__)
  StringMap<bool> features = sys::getHostCPUFeatures();
  auto has = [&](ArrayRef<const char *> names) {
    return all_of(names, [&](const char *name) { return features[name]; });
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

std::string fsdp::findNvcc() {
  const char *usual = "/usr/local/cuda/bin/nvcc";
  if (sys::findProgramByName("nvcc") || !sys::fs::can_execute(usual))
    return "nvcc";
  return usual;
}

static Error cannotFind(StringRef compiler) {
  return failure("cannot find the compiler '" + compiler +
                 "'; name one with --cxx");
}

Error fsdp::checkCompiler(const HostCompiler &compiler, Product product) {
  bool cuda = compiler.language == Language::Cuda;
  bool found = bool(sys::findProgramByName(compiler.cxx));
  if (!found && cuda && compiler.cxx == "nvcc")
    return failure(
        Twine("GPU code needs nvcc, which is neither on the PATH nor in "
              "/usr/local/cuda/bin; install the CUDA toolkit, name the "
              "compiler with --cxx, or compile for --target=cpu"));
  if (!found)
    return cannotFind(compiler.cxx);
  std::string library = compiler.libraryDir + "/libfsdp_runtime_cuda.so";
  if (cuda && product == Product::Library && !sys::fs::exists(library))
    return failure("a GPU artifact is linked to '" + library +
                   "', which does not exist: this build has no CUDA; build "
                   "fsdp where CMake finds the CUDA toolkit, cuDNN and NCCL, "
                   "or name the library's directory with --runtime-library");
  return Error::success();
}

/// Runs `command`; its output and errors go to the file `log`.
static Error runCommand(ArrayRef<std::string> command, StringRef log) {
  ErrorOr<std::string> program = sys::findProgramByName(command[0]);
  if (!program)
    return cannotFind(command[0]);
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  std::string message;
  int status =
      sys::ExecuteAndWait(*program, arguments, std::nullopt, redirects,
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &message);
  if (status == 0)
    return Error::success();
  std::string said = message;
  if (auto buffer = MemoryBuffer::getFile(log))
    said += (*buffer)->getBuffer();
  return failure("the compiler failed:\n  " + join(command, " ") + "\n" + said);
}

Expected<std::string> fsdp::targetText(const HostCompiler &compiler) {
  SmallString<128> log;
  if (std::error_code ec = sys::fs::createTemporaryFile("fsdp", "log", log))
    return failure("cannot make a temporary file: " + ec.message());
  bool cuda = compiler.language == Language::Cuda;
  std::vector<std::string> command = {compiler.cxx};
  if (cuda)
    command.push_back("--version");
  else
    append_range(command,
                 std::vector<std::string>{"-dumpfullversion", "-dumpversion"});
  Error error = runCommand(command, log);
  auto buffer = MemoryBuffer::getFile(log);
  StringRef said = buffer ? (*buffer)->getBuffer().trim() : "";
  // nvcc says much; its version is behind ", V".
  std::string version =
      cuda ? said.split(", V").second.split('\n').first.str() : said.str();
  sys::fs::remove(log);
  if (error)
    return error;
  return compiler.cpu + ", " + sys::path::filename(compiler.cxx).str() + " " +
         version;
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static std::string absolute(StringRef path) {
  SmallString<128> full(path);
  sys::fs::make_absolute(full);
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

/// Flags that change bits are absent: no -ffast-math, no contraction. The two
/// -fno- options on math say only that nobody reads errno or floating-point
/// exceptions, so that loops with sqrt or comparisons become vectors. GCC's
/// superword pass contracts pairs of a*c - b*d and a*d + b*c in spite of
/// -ffp-contract=off, so it is off; loops are vectorised all the same.
static std::vector<std::string> flags(const HostCompiler &compiler) {
  if (compiler.language == Language::Cuda)
    return cudaFlags(compiler);
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
static std::vector<std::string> linkFlags(const HostCompiler &compiler) {
  if (compiler.language == Language::Cuda)
    return {"-shared",
            "-Xlinker=-soname,step.so",
            "-Xlinker=-s",
            "-Xlinker=--build-id=none",
            "-Xlinker=--no-undefined",
            "-L" + absolute(compiler.libraryDir),
            "-lfsdp_runtime_cuda"};
  return {"-shared",
          "-Wl,-soname,step.so",
          "-Wl,--build-id=none",
          "-Wl,--no-undefined",
          "-L" + compiler.libraryDir,
          "-lfsdp_runtime"};
}

Error fsdp::compileSource(StringRef source, Product product,
                          const HostCompiler &compiler, StringRef output) {
  Expected<WorkDirectory> work = WorkDirectory::beside(output);
  if (!work)
    return work.takeError();
  bool cuda = compiler.language == Language::Cuda;
  const char *sourceName = cuda ? "step.cu" : "step.cpp";
  std::string sourceFile = work->file(sourceName);
  std::string result = work->file("result");
  if (Error error = writeText(sourceFile, source))
    return error;

  std::vector<std::string> command = {compiler.cxx};
  // nvcc derives names of symbols from the path of the source, so that must be
  // the same everywhere: it runs where the source lies.
  if (cuda)
    command = {"env", "-C", work->name().str(), compiler.cxx};
  append_range(command, flags(compiler));
  append_range(command,
               cuda ? std::vector<std::string>{sourceName, "-o", "result"}
                    : std::vector<std::string>{sourceFile, "-o", result});
  if (product == Product::Object)
    command.push_back("-c");
  else
    append_range(command, linkFlags(compiler));
  if (compiler.verbose)
    errs() << join(command, " ") << '\n';
  if (Error error = runCommand(command, work->file("log")))
    return error;
  return moveInto(result, output);
}
