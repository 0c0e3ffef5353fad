//===- Loader.h - Opening a compiled artifact -------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LOADER_H
#define FSDP_RUNTIME_LOADER_H

#include "fsdp/Runtime/Artifact.h"
#include "fsdp/Runtime/Manifest.h"
#include <memory>

namespace fsdp::rt {

/// A directory with step.so and manifest.json, loaded and checked.
class LoadedArtifact {
public:
  /// Throws fsdp::Error if a file is missing, the library has undefined
  /// symbols or another ABI, or the manifest is damaged or another one.
  explicit LoadedArtifact(const std::string &directory);

  const fsdp_artifact &artifact() const { return *table; }
  const Manifest &manifest() const { return parsed; }
  const std::string &directory() const { return path; }

private:
  struct Close {
    void operator()(void *library) const;
  };
  std::string path;
  std::unique_ptr<void, Close> library;
  const fsdp_artifact *table = nullptr;
  Manifest parsed;
};

/// Throws fsdp::Error if this CPU lacks instructions that the artifact's code
/// uses: it would die of an illegal one later.
void checkTarget(const Manifest &manifest);

/// Throws fsdp::Error if the job has another number of ranks than the mesh.
void checkWorldSize(const Manifest &manifest, int64_t ranks);

/// Throws fsdp::Error that names the first setting in which the artifact
/// differs from what a run wants, with both values and, from `origin`, where
/// the wanted one was written. An artifact without settings, compiled from
/// text, agrees with every run.
void checkSettings(const Manifest &manifest,
                   const std::map<std::string, std::string> &wanted,
                   const std::map<std::string, std::string> &origin);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LOADER_H
