//===- Compile.cpp - Runs the compiler of a target ------------------------===//
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
    return makeError("cannot create a folder in '" + parent +
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

llvm::Error fsdp::checkCompiler(const HostCompiler &compiler, Product product) {
  if (!sys::findProgramByName(compiler.cxx))
    return makeError(compiler.backend->cannotFind(compiler.cxx));
  if (product != Product::Library)
    return llvm::Error::success();
  return compiler.backend->checkRuntime(compiler);
}

/// Runs `command` and returns what it said.
static Expected<std::string> runCommand(const Backend &backend,
                                        ArrayRef<std::string> command,
                                        const WorkDirectory &work) {
  ErrorOr<std::string> program = sys::findProgramByName(command[0]);
  if (!program)
    return makeError(backend.cannotFind(command[0]));
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
  std::vector<std::string> command = {compiler.cxx};
  append_range(command, compiler.backend->versionFlags());
  Expected<std::string> said = runCommand(*compiler.backend, command, *work);
  if (!said)
    return said.takeError();
  StringRef version = compiler.backend->versionIn(StringRef(*said).trim());
  return compiler.cpu + ", " + sys::path::filename(compiler.cxx).str() + " " +
         version.str();
}

//===----------------------------------------------------------------------===//
// Compilation
//===----------------------------------------------------------------------===//

/// Compiles in a directory of its own and returns the product's bytes.
static Expected<std::unique_ptr<MemoryBuffer>>
compile(StringRef source, Product product, const HostCompiler &compiler) {
  Expected<WorkDirectory> work = WorkDirectory::make();
  if (!work)
    return work.takeError();
  std::string sourceName = ("step." + compiler.backend->extension()).str();
  std::string result = "result";
  if (llvm::Error error = writeWholeFile(work->file(sourceName), source))
    return error;
  std::vector<std::string> command = compiler.backend->command(
      compiler, product, work->name().str(), sourceName, result);
  if (compiler.verbose)
    errs() << join(command, " ") << '\n';
  Expected<std::string> said = runCommand(*compiler.backend, command, *work);
  if (!said)
    return said.takeError();
  auto bytes = MemoryBuffer::getFile(work->file(result), /*IsText=*/false,
                                     /*RequiresNullTerminator=*/false,
                                     /*IsVolatile=*/true);
  if (!bytes)
    return makeError("the compiler wrote no file: " +
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
