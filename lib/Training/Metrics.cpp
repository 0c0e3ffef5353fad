//===- Metrics.cpp - One line per step, for people and programs -----------===//
#include "Metrics.h"
#include "Console.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>

using namespace fsdp;

std::string fsdp::grouped(int64_t number) {
  std::string text = std::to_string(number);
  int64_t first = number < 0 ? 1 : 0;
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > first; i -= 3)
    text.insert(static_cast<size_t>(i), ",");
  return text;
}

uint64_t fsdp::residentBytes() {
  std::ifstream file("/proc/self/status");
  uint64_t total = 0, kibibytes = 0;
  for (std::string name; file >> name;)
    if ((name == "RssAnon:" || name == "RssShmem:") && file >> kibibytes)
      total += kibibytes << 10;
  return total;
}

Metrics::Metrics(const RunConfig &config, const StepCosts &costs,
                 std::string header)
    : config(config), costs(costs), header(std::move(header)) {
  // Room for all steps is made and touched now, so that resident memory does
  // not grow while the run goes on.
  constexpr int64_t kMost = 1 << 17;
  steps.resize(static_cast<size_t>(std::min(config.training.steps, kMost)));
  steps.clear();
}

void Metrics::add(const StepRecord &record) {
  steps.push_back(record);
  secondsSinceLine += record.seconds;
  ++stepsSinceLine;
  writeJson(record);
  bool due = record.step % config.metrics.logFreq == 0;
  if (due || record.step == 1 || record.step == config.training.steps)
    printLine(record);
}

void Metrics::printLine(const StepRecord &record) {
  constexpr double mebi = 1 << 20;
  double seconds = secondsSinceLine / static_cast<double>(stepsSinceLine);
  std::string line = format("step: %5lld  loss: %8.5f",
                            static_cast<long long>(record.step), record.loss);
  if (record.gradNorm)
    line += format("  grad_norm: %7.4f", *record.gradNorm);
  if (record.lr)
    line += format("  lr: %.3e", *record.lr);
  double rate = static_cast<double>(costs.tokens) / seconds;
  line += format("  tokens/s: %9s", grouped(std::llround(rate)).c_str());
  line +=
      format("  gflops: %7.1f (%4.1f%% of peak)", costs.flops / seconds / 1e9,
             100 * costs.flops / seconds / costs.peak);
  line += format("  memory: %.1f MiB arena, %.1f MiB resident",
                 static_cast<double>(costs.arenaBytes) / mebi,
                 static_cast<double>(residentBytes()) / mebi);
  print(line + "\n");
  secondsSinceLine = 0;
  stepsSinceLine = 0;
}

/// A number with all its bits, in decimal for people and in hexadecimal for
/// comparisons.
static std::string exactField(const char *name, double value) {
  return format(", \"%s\": %.9g, \"%s_hex\": \"%a\"", name, value, name, value);
}

void Metrics::writeJson(const StepRecord &record) {
  if (config.metrics.jsonl.empty())
    return;
  if (!json)
    json = std::make_unique<LineFile>(config.job.dumpFolder + "/" +
                                      config.metrics.jsonl);
  std::string line =
      format("{\"step\": %lld", static_cast<long long>(record.step));
  line += exactField("loss", record.loss);
  if (record.gradNorm)
    line += exactField("grad_norm", *record.gradNorm);
  if (record.lr)
    line += format(", \"lr\": %.9g", *record.lr);
  line +=
      format(", \"seconds\": %.6g, \"tokens_per_second\": %.6g", record.seconds,
             static_cast<double>(costs.tokens) / record.seconds);
  line += format(", \"flops_per_second\": %.6g, \"peak_share\": %.6g",
                 costs.flops / record.seconds,
                 costs.flops / record.seconds / costs.peak);
  line += format(", \"arena_bytes\": %llu, \"resident_bytes\": %llu}\n",
                 static_cast<unsigned long long>(costs.arenaBytes),
                 static_cast<unsigned long long>(residentBytes()));
  json->append(header + line);
  header.clear();
}
