//===- Metrics.cpp - One line per step, for people and programs -----------===//
#include "Metrics.h"
#include "Console.h"
#include "LossUnit.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

using namespace fsdp;

std::string fsdp::grouped(int64_t number) {
  std::string text = std::to_string(number);
  int64_t first = number < 0 ? 1 : 0;
  for (auto i = static_cast<int64_t>(text.size()) - 3; i > first; i -= 3)
    text.insert(static_cast<size_t>(i), ",");
  return text;
}

/// The number after `name` in a text of lines like "RssAnon:     1234 kB"; 0
/// if it is not there.
static uint64_t fieldOf(const char *text, const char *name) {
  const char *found = std::strstr(text, name);
  return found ? std::strtoull(found + std::strlen(name), nullptr, 10) : 0;
}

uint64_t fsdp::residentBytes() {
  // Neither a stream nor a string: what a step's line takes from the heap
  // would be seen in the figure.
  static char text[1 << 16]; // a process can be in thousands of groups
  size_t length = 0;
  if (int file = ::open("/proc/self/status", O_RDONLY | O_CLOEXEC); file >= 0) {
    ssize_t count = 1;
    while (count > 0 && length + 1 < sizeof(text)) {
      count = ::read(file, text + length, sizeof(text) - 1 - length);
      length += static_cast<size_t>(std::max<ssize_t>(count, 0));
    }
    ::close(file);
  }
  text[length] = '\0';
  return (fieldOf(text, "RssAnon:") + fieldOf(text, "RssShmem:")) << 10;
}

Metrics::Metrics(const RunConfig &config, const StepCosts &costs,
                 std::string header)
    : config(config), costs(costs), line(std::move(header)) {
  // Room for all steps and their lines is made and touched now, so that between
  // two steps nothing is taken from the heap: the libraries' next allocations
  // would then be served from other places, and resident memory would grow.
  constexpr int64_t kMost = 1 << 17;
  steps.resize(static_cast<size_t>(std::min(config.training.steps, kMost)));
  steps.clear();
  constexpr size_t kLongestLine = 1 << 10;
  line.reserve(line.size() + kLongestLine);
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

/// The time that the steps which are left take at the present rate.
static void appendLeft(std::string &line, double secondsPerStep,
                       int64_t steps) {
  if (steps <= 0)
    return;
  double seconds = secondsPerStep * static_cast<double>(steps);
  constexpr double minute = 60, hour = 3600, day = 24 * hour;
  if (seconds < 100)
    appendFormat(line, "  left: %.0f s", seconds);
  else if (seconds < 100 * minute)
    appendFormat(line, "  left: %.0f min", seconds / minute);
  else if (seconds < 2 * day)
    appendFormat(line, "  left: %.1f h", seconds / hour);
  else
    appendFormat(line, "  left: %.1f days", seconds / day);
}

void Metrics::printLine(const StepRecord &record) {
  constexpr double mebi = 1 << 20;
  double seconds = secondsSinceLine / static_cast<double>(stepsSinceLine);
  appendFormat(line, "step: %5lld of %lld  loss: %8.5f",
               static_cast<long long>(record.step),
               static_cast<long long>(config.training.steps), record.loss);
  if (record.gradNorm)
    appendFormat(line, "  grad_norm: %7.4f", *record.gradNorm);
  if (record.lr)
    appendFormat(line, "  lr: %.3e", *record.lr);
  double rate = static_cast<double>(costs.tokens) / seconds;
  appendFormat(line, "  tokens/s: %9s", grouped(std::llround(rate)).c_str());
  appendLeft(line, seconds, config.training.steps - record.step);
  appendFormat(line, "  gflops: %7.1f", costs.flops / seconds / 1e9);
  if (costs.peak > 0)
    appendFormat(line, " (%4.1f%% of peak)",
                 100 * costs.flops / seconds / costs.peak);
  appendFormat(line, "  memory: %.1f MiB arena, %.1f MiB resident\n",
               static_cast<double>(costs.arenaBytes) / mebi,
               static_cast<double>(residentBytes()) / mebi);
  print(line);
  line.clear();
  secondsSinceLine = 0;
  stepsSinceLine = 0;
}

/// A number with all its bits, in decimal for people and in hexadecimal for
/// comparisons.
static void appendExact(std::string &line, const char *name, double value) {
  if (std::isfinite(value))
    appendFormat(line, ", \"%s\": %.9g", name, value);
  else
    appendFormat(line, ", \"%s\": null", name); // JSON has no other number
  appendFormat(line, ", \"%s_hex\": \"%a\"", name, value);
}

/// "2026-11-21T14:16:44.512Z", without taking anything from the heap.
static void appendTime(std::string &line) {
  std::timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm parts{};
  gmtime_r(&now.tv_sec, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  appendFormat(line, ", \"time\": \"%s.%03ldZ\"", text, now.tv_nsec / 1000000);
}

void Metrics::writeJson(const StepRecord &record) {
  if (config.metrics.jsonl.empty()) {
    line.clear(); // no header either
    return;
  }
  appendFormat(line, "{\"step\": %lld", static_cast<long long>(record.step));
  appendExact(line, "loss", record.loss);
  if (record.gradNorm)
    appendExact(line, "grad_norm", *record.gradNorm);
  if (record.lr)
    appendFormat(line, ", \"lr\": %.9g", *record.lr);
  appendFormat(line, ", \"seconds\": %.6g, \"tokens_per_second\": %.6g",
               record.seconds,
               static_cast<double>(costs.tokens) / record.seconds);
  appendFormat(line, ", \"flops_per_second\": %.6g",
               costs.flops / record.seconds);
  if (costs.peak > 0)
    appendFormat(line, ", \"peak_share\": %.6g",
                 costs.flops / record.seconds / costs.peak);
  appendFormat(line, ", \"arena_bytes\": %llu, \"resident_bytes\": %llu",
               static_cast<unsigned long long>(costs.arenaBytes),
               static_cast<unsigned long long>(residentBytes()));
  appendTime(line);
  line += "}\n";
  writeLine();
}

void Metrics::writeLine() {
  if (!json)
    json = std::make_unique<LineFile>(config.job.dumpFolder + "/" +
                                      config.metrics.jsonl);
  json->append(line);
  line.clear();
}

void Metrics::addValidation(const ValidationRecord &record) {
  heldOut.push_back(record);
  const LossUnit &unit = lossUnit(config);
  double value = record.nats / unit.nats;
  std::string sources;
  for (const SourceLoss &source : record.sources)
    sources += format("%s%s %.4f", sources.empty() ? ": " : ", ",
                      source.path.c_str(), source.nats / unit.nats);
  print(format("step: %5lld  held-out %s: %.4f %s%s\n",
               static_cast<long long>(record.step), unit.tokens, value,
               unit.name, sources.c_str()));
  if (config.metrics.jsonl.empty())
    return;
  appendFormat(line, "{\"validation\": {\"step\": %lld",
               static_cast<long long>(record.step));
  appendExact(line, "loss", value * unit.nats);
  appendFormat(line, ", \"%s\": %.9g", unit.key, value);
  for (const SourceLoss &source : record.sources)
    appendFormat(line, "%s{\"path\": %s, \"%s\": %.9g}",
                 &source == record.sources.data() ? ", \"sources\": [" : ", ",
                 nlohmann::json(source.path).dump().c_str(), unit.key,
                 source.nats / unit.nats);
  line += record.sources.empty() ? "}" : "]}";
  appendTime(line);
  line += "}\n";
  writeLine();
}
