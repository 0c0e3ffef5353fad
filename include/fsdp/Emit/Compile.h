//===- Compile.h - Generated source to a shared object ----------*- C++ -*-===//
//
// Runs the target's compiler. The same source and options give the
// same bytes, wherever the output lies: no time, no path, no build id.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMIT_COMPILE_H
#define FSDP_EMIT_COMPILE_H

#include "fsdp/Emit/Backend.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fsdp {

struct HostCompiler {
  const Backend *backend = nullptr;
  std::string cxx;
  /// What code is made for: Backend::architecture.
  std::string cpu;
  /// Directory that holds fsdp/Runtime/*.h.
  std::string includeDir;
  /// Directory that holds libfsdp_runtime.so and libfsdp_runtime_cuda.so.
  std::string libraryDir;
  /// Prints the command before it runs.
  bool verbose = false;
};

/// What `product` needs and this machine lacks: the compiler, or of some
/// targets the library that an artifact is linked to. Cheap, so it goes before
/// all work.
llvm::Error checkCompiler(const HostCompiler &compiler, Product product);

/// What the code is made for, for the fingerprint: "x86-64-v4, g++ 12.2.0",
/// "sm_90, nvcc 13.0.88".
llvm::Expected<std::string> targetText(const HostCompiler &compiler);

/// Compiles `source` to the file `output`, which AtomicFile writes; a failure
/// carries the command and what the compiler said. A signal ends the compiler
/// too, and then this process.
llvm::Error compileSource(llvm::StringRef source, Product product,
                          const HostCompiler &compiler, llvm::StringRef output);

/// The text of an artifact's files.
struct ArtifactText {
  std::string source, manifest, values;
};

/// Makes step.so of the source, step.so.xxh3 with its checksum, manifest.json
/// and values.json in a directory that exists.
llvm::Error compileArtifact(const ArtifactText &text,
                            const HostCompiler &compiler,
                            llvm::StringRef directory);

/// fsdp::writeFileAtomically with the compiler's kind of errors.
llvm::Error writeWholeFile(llvm::StringRef path, llvm::StringRef text);

} // namespace fsdp

#endif // FSDP_EMIT_COMPILE_H
