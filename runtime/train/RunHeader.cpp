//===- RunHeader.cpp - Which run the lines of a file are of ---------------===//
#include "RunHeader.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Paths.h"
#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <random>

using namespace fsdp;
using nlohmann::ordered_json;

std::string fsdp::timestamp() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

std::string fsdp::randomId() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

/// The settings that have a value, in the order of their table.
static std::vector<ConfigOption> statedOptions(RunConfig &config) {
  std::vector<ConfigOption> options = configOptions(config);
  auto hasNone = [](const ConfigOption &option) {
    return option.text().empty() || option.text() == "unset";
  };
  options.erase(std::remove_if(options.begin(), options.end(), hasNone),
                options.end());
  return options;
}

template <typename T> static ordered_json valueOf(const T *value) {
  return *value;
}
template <typename T>
static ordered_json valueOf(const std::optional<T> *value) {
  return **value;
}
static ordered_json valueOf(const ChoicePlace &choice) { return choice.text(); }
static ordered_json valueOf(const ChoiceListPlace &list) {
  return list.texts();
}

/// Numbers, booleans, texts and lists of texts.
static ordered_json orderedSettings(RunConfig config) {
  ordered_json settings;
  for (const ConfigOption &option : statedOptions(config))
    settings[option.name] = std::visit(
        [](const auto &place) { return valueOf(place); }, option.place);
  return settings;
}

std::map<std::string, std::string> fsdp::settingsOf(RunConfig config) {
  std::map<std::string, std::string> settings;
  for (const ConfigOption &option : statedOptions(config))
    settings[option.name] = option.text();
  return settings;
}

std::string fsdp::runHeader(const PreparedRun &run, int ranks,
                            const ResumePoint &start,
                            const std::string &algorithms) {
  ordered_json header;
  header["id"] = randomId();
  header["date"] = timestamp();
  header["host"] = rt::hostName();
  header["artifact"] = absolutePath(run.artifact->directory());
  header["ranks"] = ranks;
  header["mesh"] = run.artifact->manifest().meshText();
  header["fingerprint"] = run.artifact->manifest().fingerprint;
  if (!algorithms.empty())
    header["matmul_algorithms"] = algorithms;
  if (!start.path.empty())
    header[start.isOwn ? "resumed_from" : "began_from"] = {
        {"step", start.step}, {"path", start.path}};
  header["config"] = orderedSettings(run.config);
  // Paths need not be UTF-8.
  return ordered_json{{"run", header}}.dump(
             -1, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}
