//===- OtherCommands.cpp - What a rank runs instead of training -----------===//
#include "OtherCommands.h"
#include "Results.h"
#include "Sampling.h"
#include "fsdp/Support/Message.h"
#include "runtime/report/Console.h"

using namespace fsdp;

void fsdp::runProgramOnce(ArtifactRank &rank, const RunOptions &options) {
  Rank &context = rank.context();
  std::string zeros = context.unsetInputs(options.program);
  if (rank.isFirst() && !zeros.empty())
    printMessage(kRunWarning, "--program " + options.program +
                                  " runs with zeros for " + zeros +
                                  "; --load sets them");
  context.run(options.program);
  if (rank.isFirst())
    print(describeResults(context, options.program));
  if (!options.dump.empty())
    context.dump(options.dump);
  rank.writeTraces();
}

void fsdp::runCommand(ArtifactRank &rank, const PreparedRun &run,
                      Reporter &reporter, const std::string &command,
                      const std::string &checkpoint) {
  if (rank.isFirst())
    print("parameters of " + checkpoint + "\n");
  auto toTheEnd = [] { return true; };
  if (command == "sample") {
    printSample(rank.context(), run, toTheEnd);
    return rank.writeTraces();
  }
  if (rank.hasHeldOut())
    reporter.addHeldOut(*rank.evaluateHeldOut(toTheEnd));
  rank.writeTraces();
  reporter.compareWithGzip();
}
