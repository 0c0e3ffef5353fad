//===- CommandLine.h - What fsdp-run and its ranks are told -----*- C++ -*-===//
#ifndef FSDP_TOOLS_RUN_COMMANDLINE_H
#define FSDP_TOOLS_RUN_COMMANDLINE_H

#include "fsdp/Launch/Launch.h"
#include "fsdp/Rendezvous/Environment.h"
#include "runtime/train/Options.h"

namespace fsdp {

/// Gets the command line and the place that a launcher gave this process, if
/// there was one; returns the exit status. May throw.
using RunFunction = int(const RunOptions &options,
                        const std::optional<rt::LaunchEnvironment> &place);

/// The frame of fsdp-run and of the program of a rank: reads command line and
/// environment, calls `run`, and turns errors into one message. Returns the
/// exit status.
int runMain(int argc, char **argv, RunFunction *run);

} // namespace fsdp

#endif // FSDP_TOOLS_RUN_COMMANDLINE_H
