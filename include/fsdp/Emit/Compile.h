//===- Compile.h - Generated source to a shared object ----------*- C++ -*-===//
//
// Runs the host's C++ compiler, or nvcc. The same source and options give the
// same bytes, wherever the output lies: no time, no path, no build id.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMIT_COMPILE_H
#define FSDP_EMIT_COMPILE_H

#include "fsdp/Emit/Emit.h"
#include "llvm/Support/Error.h"
#include <string>

namespace fsdp {

struct HostCompiler {
  Language language = Language::Cpp;
  std::string cxx = "g++";
  /// What -march= gets (see resolveCpu), or nvcc's -arch=.
  std::string cpu;
  /// Directory that holds fsdp/Runtime/*.h.
  std::string includeDir;
  /// Directory that holds libfsdp_runtime.so and libfsdp_runtime_cuda.so.
  std::string libraryDir;
  /// Prints the command before it runs.
  bool verbose = false;
};

/// "native" becomes the highest level of x86-64 (x86-64-v2, -v3, -v4) that
/// this CPU has: a name that every compiler knows and every loader can check.
/// Any other name stays.
std::string resolveCpu(llvm::StringRef cpu);

/// "nvcc" where the PATH has one, or else that of the toolkit's usual place.
std::string findNvcc();

enum class Product { Source, Object, Library };

/// What `product` needs and this machine lacks: the compiler, or of CUDA the
/// library that the artifact is linked to. Cheap, so it goes before all work.
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
