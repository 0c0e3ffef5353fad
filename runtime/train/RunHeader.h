//===- RunHeader.h - Which run the lines of a file are of -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_RUNHEADER_H
#define FSDP_RUNTIME_TRAIN_RUNHEADER_H

#include "Prepare.h"
#include "ResumePoint.h"

namespace fsdp {

/// What the line before a run's steps begins with.
constexpr const char *kHeaderStart = "{\"run\":";

/// The line before a run's steps: {"run": {…}} with an id, the artifact
/// and its fingerprint, the date, the machine, the ranks and every setting as
/// the number, boolean or text that it is, and what the run was loaded from,
/// with its step: as "resumed_from" if it goes on with the steps of the run
/// before it, else as "began_from". `algorithms`: rt::algorithmDigest().
std::string runHeader(const PreparedRun &run, int ranks,
                      const ResumePoint &start, const std::string &algorithms);

/// Sixteen hexadecimal digits that no other run has.
std::string randomId();

/// Every setting that has a value, as text.
std::map<std::string, std::string> settingsOf(RunConfig config);

/// "2026-11-21T14:16:44Z".
std::string timestamp();

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_RUNHEADER_H
