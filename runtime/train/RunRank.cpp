//===- RunRank.cpp - The run of one rank ----------------------------------===//
#include "RunRank.h"
#include "NodePlacement.h"
#include "OtherCommands.h"
#include "Resume.h"
#include "Trainer.h"
#include "fsdp/Support/Text.h"

using namespace fsdp;
using namespace fsdp::rt;

/// Of the curve. A path need not be UTF-8, as the picture must.
static std::string titleOf(const PreparedRun &run) {
  const std::string &path = run.artifact->directory();
  return !run.config.job.description.empty() ? run.config.job.description
         : isPlainLine(path)                 ? path
                                             : printable(path);
}

void fsdp::runRank(const PreparedRun &run, const LoadedArtifact &artifact,
                   const RunOptions &options, World world,
                   const DrawCurve &draw, const HandleError &fail) {
  ArtifactRank rank(run, artifact, options, world);
  warnOfPlacement(world, run.artifact->manifest());
  Reporter reporter({run.config, titleOf(run), run.text, draw,
                     [&rank] { return rank.seconds(); }, rank.isFirst()});
  // It lives on while `fail` is called, as the rank does.
  std::optional<Trainer> trainer;
  try {
    std::string parameters; // what a command has loaded
    if (!options.checkpoint.empty())
      parameters = loadParameters(rank.context(), options.checkpoint);
    if (options.trains())
      trainer.emplace(rank, run, options, reporter);
    rank.loadRanges();
    if (trainer)
      trainer->run();
    else if (!options.program.empty())
      runProgramOnce(rank, options);
    else
      runCommand(rank, run, reporter, options.command, parameters);
  } catch (const std::exception &error) {
    fail(error);
    throw;
  }
}
