//===- RunHeader.h - Which run the lines of a file are of -------*- C++ -*-===//
#ifndef FSDP_TRAINING_RUNHEADER_H
#define FSDP_TRAINING_RUNHEADER_H

#include "Prepare.h"

namespace fsdp {

/// What the line in front of a run's steps begins with.
constexpr const char *kHeaderStart = "{\"run\":";

/// The line in front of a run's steps: {"run": {…}} with an id, the artifact
/// and its fingerprint, the date, the machine, the ranks and every setting.
std::string runHeader(const PreparedRun &run, int ranks);

/// "2026-11-21T14:16:44Z".
std::string timestamp();

} // namespace fsdp

#endif // FSDP_TRAINING_RUNHEADER_H
