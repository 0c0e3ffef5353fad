//===- Backend.h - How programs of a target are spelled ---------*- C++ -*-===//
//
// What emission asks of a target: the parts of a generated file that are not
// the same everywhere, and the command that compiles it. Each target implements
// it in its folder, lib/Target/NAME.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMIT_BACKEND_H
#define FSDP_EMIT_BACKEND_H

#include "dialects/Exec/Exec.h"
#include "fsdp/Target/Target.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>
#include <string>
#include <vector>

namespace fsdp {

struct HostCompiler;

enum class Product { Source, Object, Library };

/// The kernels of one module, as a target spells them.
class KernelSource {
public:
  virtual ~KernelSource();

  /// Prints `kernel` as a function of this name. `user` is the module of its
  /// first launch, for the comment; it may be empty. Emits a diagnostic and
  /// fails on an op that has no spelling.
  virtual mlir::LogicalResult print(exec::KernelOp kernel, llvm::StringRef name,
                                    llvm::StringRef user,
                                    llvm::raw_ostream &os) const = 0;
  /// The wrapper that knows how a kernel's space is split into threads:
  /// "launchColumns<4>".
  virtual std::string launchFunction(exec::KernelOp kernel) const = 0;
};

class Backend {
public:
  explicit Backend(const rt::Target &target) : target(target) {}
  virtual ~Backend();

  const rt::Target &target;

  /// What the name of a file of source ends in: "cpp".
  virtual llvm::StringRef extension() const = 0;
  /// The header of include/fsdp/Runtime that its kernels use.
  virtual llvm::StringRef kernelHeader() const = 0;
  virtual std::unique_ptr<KernelSource>
  kernelsOf(mlir::ModuleOp module) const = 0;

  /// The compiler where --cxx names none.
  virtual std::string defaultCompiler() const = 0;
  /// What code is made for, of what was asked for as compile.cpu and --gpu:
  /// "x86-64-v4", "sm_90".
  virtual std::string architecture(llvm::StringRef cpu,
                                   llvm::StringRef gpu) const = 0;
  /// What to say where there is no `compiler`.
  virtual std::string cannotFind(llvm::StringRef compiler) const;
  /// What a shared object is linked to and this machine lacks.
  virtual llvm::Error checkRuntime(const HostCompiler &compiler) const;
  /// What makes the compiler say its version, and the version in its answer.
  virtual std::vector<std::string> versionFlags() const = 0;
  virtual llvm::StringRef versionIn(llvm::StringRef answer) const = 0;
  /// The command that makes the file `result` of the file `source`, names in
  /// the directory `work`.
  virtual std::vector<std::string> command(const HostCompiler &compiler,
                                           Product product,
                                           const std::string &work,
                                           const std::string &source,
                                           const std::string &result) const = 0;
};

} // namespace fsdp

#endif // FSDP_EMIT_BACKEND_H
