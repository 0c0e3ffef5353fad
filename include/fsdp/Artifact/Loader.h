//===- Loader.h - Opening a compiled artifact -------------------*- C++ -*-===//
#ifndef FSDP_ARTIFACT_LOADER_H
#define FSDP_ARTIFACT_LOADER_H

#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Runtime/Artifact.h"
#include "fsdp/Target/Target.h"
#include <memory>

namespace fsdp::rt {

/// A directory with step.so, its checksum and manifest.json, read and not
/// loaded: loading takes the runtime of its target.
class ArtifactFolder {
public:
  /// Throws fsdp::Error if a file is missing, the manifest is damaged or the
  /// library has other bytes than fsdp-compile wrote.
  explicit ArtifactFolder(const std::string &directory);

  const Manifest &manifest() const { return parsed; }
  const std::string &directory() const { return path; }
  std::string libraryPath() const { return path + "/step.so"; }
  std::string checksumPath() const { return path + "/step.so.xxh3"; }
  std::string manifestPath() const { return path + "/manifest.json"; }
  /// The manifest as it is written.
  const std::string &manifestText() const { return text; }

private:
  void checkLibrary() const;

  std::string path, text;
  Manifest parsed;
};

/// The library of an artifact, in the process that runs it.
class LoadedArtifact {
public:
  /// Throws fsdp::Error if the library has undefined symbols, another ABI or
  /// another manifest. The folder must outlive the object.
  explicit LoadedArtifact(const ArtifactFolder &folder);

  const fsdp_artifact &artifact() const { return *table; }
  const Manifest &manifest() const { return folder.manifest(); }
  const std::string &directory() const { return folder.directory(); }
  const ArtifactFolder &artifactFolder() const { return folder; }

private:
  struct Close {
    void operator()(void *library) const;
  };
  const ArtifactFolder &folder;
  std::unique_ptr<void, Close> library;
  const fsdp_artifact *table = nullptr;
};

/// What an artifact was compiled for.
const Target &targetOf(const Manifest &manifest);

/// Throws fsdp::Error if this CPU lacks instructions that the artifact's code
/// uses: it would die of an illegal one later.
void checkTarget(const Manifest &manifest);

/// Throws fsdp::Error if the job has another number of ranks than the mesh.
void checkWorldSize(const Manifest &manifest, int64_t ranks);

/// Throws fsdp::Error that names the settings in which an artifact differs from
/// what a run wants, with both values and where the wanted one was written:
/// `origin`, or by default.
void checkSettings(const std::map<std::string, std::string> &compiled,
                   const std::map<std::string, std::string> &wanted,
                   const std::map<std::string, std::string> &origin);

} // namespace fsdp::rt

#endif // FSDP_ARTIFACT_LOADER_H
