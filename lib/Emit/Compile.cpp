//===- Compile.cpp - Runs the host's C++ compiler or nvcc -----------------===//
#include "fsdp/Emit/Compile.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
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

static llvm::Error makeError(const Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

namespace {

/// A directory for files on the way to an output; gone when the object dies.
class WorkDirectory {
public:
  static Expected<WorkDirectory> make() {
    WorkDirectory dir;
    std::error_code ec =
        sys::fs::createUniqueDirectory("fsdp-compile", dir.path);
    if (!ec)
      return dir;
    SmallString<128> parent;
    sys::path::system_temp_directory(/*ErasedOnReboot=*/true, parent);
    return makeError("cannot make a folder in '" + parent +
                     "': " + ec.message());
  }
  WorkDirectory(WorkDirectory &&other) : path(other.path) {
    other.path.clear();
  }
  ~WorkDirectory() {
    if (!path.empty())
      (void)sys::fs::remove_directories(path);
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

/// The writer of files throws; the compiler returns its errors.
static llvm::Error catchError(function_ref<void()> action) {
  try {
    action();
  } catch (const fsdp::Error &error) {
    return makeError(error.what());
  }
  return llvm::Error::success();
}

llvm::Error fsdp::writeWholeFile(StringRef path, StringRef text) {
  return catchError([&] { writeFileAtomically(path.str(), text); });
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

static llvm::Error cannotFind(StringRef compiler) {
  return makeError("cannot find the compiler '" + compiler +
                   "'; name one with --cxx");
}

llvm::Error fsdp::checkCompiler(const HostCompiler &compiler, Product product) {
  bool cuda = compiler.language == Language::Cuda;
  bool found = bool(sys::findProgramByName(compiler.cxx));
  if (!found && cuda && compiler.cxx == "nvcc")
    return makeError(
        Twine("GPU code needs nvcc, which is neither on the PATH nor in "
              "/usr/local/cuda/bin; install the CUDA toolkit, name the "
              "compiler with --cxx, or compile for --target=cpu"));
  if (!found)
    return cannotFind(compiler.cxx);
  std::string library = compiler.libraryDir + "/libfsdp_runtime_cuda.so";
  if (cuda && product == Product::Library && !sys::fs::exists(library))
    return makeError("a GPU artifact is linked to '" + library +
                     "', which does not exist: this build has no CUDA; build "
                     "fsdp where CMake finds the CUDA toolkit, cuDNN and NCCL, "
                     "or name the library's directory with --runtime-library");
  return llvm::Error::success();
}

/// Runs `command` and returns what it said.
static Expected<std::string> runCommand(ArrayRef<std::string> command,
                                        const WorkDirectory &work) {
  ErrorOr<std::string> program = sys::findProgramByName(command[0]);
  if (!program)
    return cannotFind(command[0]);
  std::string log = work.file("log");
  SmallVector<StringRef> arguments(command.begin(), command.end());
  std::optional<StringRef> redirects[] = {StringRef(""), log, log};
  std::string said;
  // The compiler gets a session of its own, so that a signal for us can be
  // sent on to it and to everything that it has started.
  sys::ProcessInfo process = sys::ExecuteNoWait(
      *program, arguments, std::nullopt, redirects, /*MemoryLimit=*/0, &said,
      /*ExecutionFailed=*/nullptr, /*AffinityMask=*/nullptr,
      /*DetachProcess=*/true);
  int status = -1;
  if (process.Pid != sys::ProcessInfo::InvalidPid) {
    DeferredSignals::forwardTo(process.Pid);
    status =
        sys::Wait(process, /*SecondsToWait=*/std::nullopt, &said).ReturnCode;
    DeferredSignals::forwardTo(0);
  }
  if (DeferredSignals::pending() != 0)
    return makeError("interrupted");
  if (auto buffer = MemoryBuffer::getFile(log))
    said += (*buffer)->getBuffer();
  if (status == 0)
    return said;
  return makeError("the compiler failed:\n  " + join(command, " ") + "\n" +
                   said);
}

Expected<std::string> fsdp::targetText(const HostCompiler &compiler) {
  DeferredSignals signals;
  Expected<WorkDirectory> work = WorkDirectory::make();
  if (!work)
    return work.takeError();
  bool cuda = compiler.language == Language::Cuda;
  std::vector<std::string> command = {compiler.cxx};
  if (cuda)
    command.emplace_back("--version");
  else
    append_range(command,
                 std::vector<std::string>{"-dumpfullversion", "-dumpversion"});
  Expected<std::string> said = runCommand(command, *work);
  if (!said)
    return said.takeError();
  StringRef version = StringRef(*said).trim();
  // nvcc says much; its version is behind ", V".
  if (cuda)
    version = version.split(", V").second.split('\n').first;
  return compiler.cpu + ", " + sys::path::filename(compiler.cxx).str() + " " +
         version.str();
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

static std::string absolute(StringRef path) {
  SmallString<128> full(path);
  (void)sys::fs::make_absolute(full); // fails without a current directory
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

/// The command that makes `result` of `source`, files in the directory `work`.
static std::vector<std::string> compileCommand(const HostCompiler &compiler,
                                               Product product,
                                               const WorkDirectory &work,
                                               const std::string &source,
                                               const std::string &result) {
  std::vector<std::string> command = {compiler.cxx};
  bool cuda = compiler.language == Language::Cuda;
  // nvcc derives names of symbols from the path of the source, so that must be
  // the same everywhere: it runs where the source lies.
  if (cuda)
    command = {"env", "-C", work.name().str(), compiler.cxx};
  append_range(command, flags(compiler));
  append_range(command, cuda ? std::vector<std::string>{source, "-o", result}
                             : std::vector<std::string>{work.file(source), "-o",
                                                        work.file(result)});
  if (product == Product::Object)
    command.emplace_back("-c");
  else
    append_range(command, linkFlags(compiler));
  return command;
}

/// Compiles in a directory of its own and returns the product's bytes.
static Expected<std::unique_ptr<MemoryBuffer>>
compile(StringRef source, Product product, const HostCompiler &compiler) {
  Expected<WorkDirectory> work = WorkDirectory::make();
  if (!work)
    return work.takeError();
  bool cuda = compiler.language == Language::Cuda;
  std::string sourceName = cuda ? "step.cu" : "step.cpp", result = "result";
  if (llvm::Error error = writeWholeFile(work->file(sourceName), source))
    return error;
  std::vector<std::string> command =
      compileCommand(compiler, product, *work, sourceName, result);
  if (compiler.verbose)
    errs() << join(command, " ") << '\n';
  Expected<std::string> said = runCommand(command, *work);
  if (!said)
    return said.takeError();
  auto bytes = MemoryBuffer::getFile(work->file(result), /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false,
                                     /*IsVolatile=*/true);
  if (!bytes)
    return makeError("the compiler has made no file: " +
                     bytes.getError().message());
  return std::move(*bytes);
}

/// compileSource; returns the line of the output's checksum.
static Expected<std::string> compileToFile(StringRef source, Product product,
                                           const HostCompiler &compiler,
                                           StringRef output) {
  DeferredSignals signals;
  // A library may be run, as far as the umask allows.
  unsigned mode = product == Product::Library ? 0777 : 0666;
  std::optional<AtomicFile> file;
  // Opened first: an output that cannot be written is not compiled.
  if (llvm::Error error = catchError([&] { file.emplace(output.str(), mode); }))
    return error;
  auto bytes = compile(source, product, compiler);
  if (!bytes)
    return bytes.takeError();
  if (llvm::Error error = catchError([&] {
        file->write((*bytes)->getBuffer());
        file->commit();
      }))
    return error;
  return checksumLine((*bytes)->getBuffer());
}

llvm::Error fsdp::compileSource(StringRef source, Product product,
                                const HostCompiler &compiler,
                                StringRef output) {
  return compileToFile(source, product, compiler, output).takeError();
}

llvm::Error fsdp::compileArtifact(const ArtifactText &text,
                                  const HostCompiler &compiler,
                                  llvm::StringRef directory) {
  DeferredSignals signals;
  std::optional<AtomicFile> manifest, values, checksum;
  auto write = [&](std::optional<AtomicFile> &file, StringRef name,
                   StringRef content) {
    file.emplace((directory + name).str());
    file->write(content);
    file->flush();
  };
  if (llvm::Error error = catchError([&] {
        write(manifest, "/manifest.json", text.manifest);
        write(values, "/values.json", text.values);
        checksum.emplace((directory + "/step.so.xxh3").str());
      }))
    return error;
  Expected<std::string> line = compileToFile(
      text.source, Product::Library, compiler, (directory + "/step.so").str());
  if (!line)
    return line.takeError();
  // Last: a manifest says that the artifact is complete.
  return catchError([&] {
    checksum->write(*line);
    checksum->commit();
    values->commit();
    manifest->commit();
  });
}
