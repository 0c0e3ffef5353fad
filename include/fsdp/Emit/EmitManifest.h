//===- EmitManifest.h - What an artifact says about itself ------*- C++ -*-===//
//
// The manifest is JSON: the settings an artifact was compiled with, the mesh,
// the arena, every persistent range, every program and the programs that a step
// runs. The runtime's reader
// is include/fsdp/Artifact/Manifest.h. The same module gives the same text.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EMIT_EMITMANIFEST_H
#define FSDP_EMIT_EMITMANIFEST_H

#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <string>

namespace fsdp {

/// What the module itself does not say.
struct ManifestInfo {
  /// Settings as "section.key" -> text.
  std::map<std::string, std::string> config;
  /// The key that names the file of the model; empty: none does.
  std::string modelFrom;
  /// What the file of parallelism.placement_policy says: policyRules().
  std::map<std::string, std::string> policy;
  /// The passes with their options.
  std::string pipeline;
  /// Instruction set and compiler that the code was made for.
  std::string target;
  int64_t threads = 1;
  /// The fingerprint of the machine file that the plan was decided for; empty:
  /// none was.
  std::string machine;
};

/// The text of the manifest of a planned exec module. Emits a diagnostic and
/// fails if memory is not planned.
mlir::FailureOr<std::string> makeManifest(mlir::ModuleOp module,
                                          const ManifestInfo &info);

} // namespace fsdp

#endif // FSDP_EMIT_EMITMANIFEST_H
