//===- RunHeader.cpp - Which run the lines of a file are of ---------------===//
#include "RunHeader.h"
#include "fsdp/Runtime/Launch.h"
#include <ctime>
#include <filesystem>
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

static std::string randomId() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

/// Every setting that has a value, as text.
static ordered_json settingsOf(RunConfig config) {
  ordered_json settings;
  for (const ConfigOption &option : configOptions(config))
    if (std::string text = option.text(); !text.empty() && text != "unset")
      settings[option.name] = text;
  return settings;
}

std::string fsdp::runHeader(const PreparedRun &run, int ranks) {
  ordered_json header;
  header["id"] = randomId();
  header["date"] = timestamp();
  header["host"] = rt::hostName();
  header["artifact"] =
      std::filesystem::absolute(run.artifact->directory()).string();
  header["ranks"] = ranks;
  header["mesh"] = run.artifact->manifest().meshText();
  header["fingerprint"] = run.artifact->manifest().fingerprint;
  header["config"] = settingsOf(run.config);
  // Paths need not be UTF-8.
  return ordered_json{{"run", header}}.dump(
             -1, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}
