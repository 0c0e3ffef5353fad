//===- CheckArtifact.h - Is the artifact what a run wants? ------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_CHECKARTIFACT_H
#define FSDP_RUNTIME_TRAIN_CHECKARTIFACT_H

#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Config/RunConfig.h"

namespace fsdp {

/// Throws fsdp::Error that names what the artifact was compiled for and the
/// resolved `config` wants otherwise. Files that settings name are compared by
/// what is taken from them, not by their paths: a placement policy by its
/// rules, a model's config.json by its fields with those that other settings
/// change. Where such a file is not there, the artifact says what it said;
/// returns a line about each of those that `config.origin` knows. An artifact
/// without settings, compiled from text, agrees with every run.
std::vector<std::string> checkArtifact(const rt::Manifest &manifest,
                                       const RunConfig &config);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_CHECKARTIFACT_H
