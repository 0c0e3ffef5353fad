//===- Sampling.cpp - A sample of text, as it is generated ----------------===//
#include "Sampling.h"
#include "Evaluate.h"
#include "Step.h"
#include "fsdp/Data/MixedDataset.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include "runtime/report/Metrics.h"
#include <algorithm>
#include <charconv>
#include <cmath>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Text and ids
//===----------------------------------------------------------------------===//

static constexpr int64_t kBytes = 256;

/// config.sample.prompt_ids, or else the first held-out ids.
static std::vector<int32_t> promptOf(const RunConfig &config,
                                     const TokenDataset &data,
                                     int64_t vocabulary) {
  constexpr int64_t kPromptTokens = 16;
  const std::string &text = config.sample.promptIds;
  if (text.empty())
    return data.firstIds(kPromptTokens);
  std::vector<int32_t> ids;
  const char *next = text.data(), *end = next + text.size();
  while (true) {
    int32_t id = -1;
    auto [stop, error] = std::from_chars(next, end, id);
    if (error != std::errc() || id < 0 || id >= vocabulary ||
        (stop != end && *stop != ','))
      throw Error("sample.prompt_ids: expected ids from 0 to " +
                  std::to_string(vocabulary - 1) +
                  " with commas between, as tools/fsdp-tokenize --prompt "
                  "prints them, not '" +
                  printableLine(text) + "'");
    ids.push_back(id);
    if (stop == end)
      return ids;
    next = stop + 1;
  }
}

static std::vector<int32_t> promptOf(const RunConfig &config,
                                     const ByteDataset &text) {
  constexpr int64_t kPromptBytes = 64;
  std::string prompt = config.sample.prompt;
  if (prompt.empty())
    prompt = text.heldOutTokens() == 0 ? text.trainText(kPromptBytes)
                                       : text.heldOutText(kPromptBytes);
  std::vector<int32_t> ids;
  for (char byte : prompt)
    ids.push_back(static_cast<unsigned char>(byte));
  return ids;
}

static std::string textOf(const std::vector<int32_t> &bytes) {
  std::string text;
  for (int32_t byte : bytes)
    text += static_cast<char>(byte);
  return text;
}

/// The dataset, or the first source of a mixture.
static const TokenDataset &firstSource(const Dataset &data) {
  const auto *mixed = dynamic_cast<const MixedDataset *>(&data);
  return mixed ? mixed->source(0) : dynamic_cast<const TokenDataset &>(data);
}

/// The prompt with its continuation.
static std::optional<std::string>
generateText(Rank &rank, const PreparedRun &run, const GoesOn &goesOn) {
  if (run.text) {
    auto ids = generateIds(rank, run.config, promptOf(run.config, *run.text),
                           kBytes, goesOn);
    return ids ? std::optional(textOf(*ids)) : std::nullopt;
  }
  const TokenDataset &data = firstSource(*run.data);
  TokenTable table(data.tablePath());
  auto ids =
      generateIds(rank, run.config, promptOf(run.config, data, table.size()),
                  table.size(), goesOn);
  return ids ? std::optional(table.decode(*ids)) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

static const char *unitOf(const PreparedRun &run) {
  return run.text ? "bytes" : "tokens";
}

/// Says what a sample costs: every byte or token takes a run of "evaluate".
static void announceSample(const Manifest &manifest, const PreparedRun &run) {
  int64_t length = *run.config.sample.length;
  const ProgramInfo &evaluate =
      manifest.programs[static_cast<size_t>(manifest.findProgram("evaluate"))];
  double steps =
      static_cast<double>(length) * evaluate.flops / flopsOfStep(manifest);
  print(format("sample: %s %s, each by a run of the program 'evaluate'",
               grouped(length).c_str(), unitOf(run)));
  if (std::isfinite(steps))
    print(format(": the work of about %s steps",
                 grouped(std::max<int64_t>(1, std::llround(steps))).c_str()));
  print("\n");
}

/// A line when another tenth of the sample is there.
static void tellProgress(int64_t done, const PreparedRun &run) {
  int64_t length = *run.config.sample.length;
  if (done > 0 && done * 10 / length > (done - 1) * 10 / length)
    print(format("sample: %s of %s %s\n", grouped(done).c_str(),
                 grouped(length).c_str(), unitOf(run)));
}

std::optional<std::string> fsdp::printSample(Rank &rank, const PreparedRun &run,
                                             const GoesOn &goesOn) {
  if (rank.isFirst())
    announceSample(rank.manifest(), run);
  int64_t done = 0;
  std::optional<std::string> story = generateText(rank, run, [&] {
    if (rank.isFirst())
      tellProgress(done, run);
    ++done;
    return goesOn();
  });
  if (rank.isFirst() && story)
    print(format("sample (temperature %g):\n%s\n",
                 run.config.sample.temperature, printable(*story).c_str()));
  return story;
}
