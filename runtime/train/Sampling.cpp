//===- Sampling.cpp - A sample of text, as it is generated ----------------===//
#include "Sampling.h"
#include "Evaluate.h"
#include "Step.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include "runtime/report/Metrics.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::rt;

/// Says what a sample costs: every byte takes a run of "evaluate".
static void announceSample(const Manifest &manifest, const RunConfig &config) {
  auto bytes = static_cast<double>(*config.sample.length);
  const ProgramInfo &evaluate =
      manifest.programs[static_cast<size_t>(manifest.findProgram("evaluate"))];
  double steps = bytes * evaluate.flops / flopsOfStep(manifest);
  print(format("sample: %s bytes, each by a run of the program 'evaluate'",
               grouped(*config.sample.length).c_str()));
  if (std::isfinite(steps))
    print(format(": the work of about %s steps",
                 grouped(std::max<int64_t>(1, std::llround(steps))).c_str()));
  print("\n");
}

/// A line when another tenth of the sample is there.
static void tellProgress(int64_t bytes, int64_t length) {
  if (bytes > 0 && bytes * 10 / length > (bytes - 1) * 10 / length)
    print(format("sample: %s of %s bytes\n", grouped(bytes).c_str(),
                 grouped(length).c_str()));
}

std::optional<std::string> fsdp::printSample(Rank &rank, const PreparedRun &run,
                                             const GoesOn &goesOn) {
  const RunConfig &config = run.config;
  if (rank.isFirst())
    announceSample(rank.manifest(), config);
  int64_t bytes = 0;
  std::optional<std::string> story = generateText(rank, config, *run.text, [&] {
    if (rank.isFirst())
      tellProgress(bytes, *config.sample.length);
    ++bytes;
    return goesOn();
  });
  if (rank.isFirst() && story)
    print(format("sample (temperature %g):\n%s\n", config.sample.temperature,
                 printable(*story).c_str()));
  return story;
}
