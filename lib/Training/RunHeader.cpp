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

std::string fsdp::randomId() {
  std::random_device random;
  char text[17];
  std::snprintf(text, sizeof text, "%08x%08x", random(), random());
  return text;
}

/// In the order of their table.
static ordered_json orderedSettings(RunConfig config) {
  ordered_json settings;
  for (const ConfigOption &option : configOptions(config))
    if (std::string text = option.text(); !text.empty() && text != "unset")
      settings[option.name] = text;
  return settings;
}

std::map<std::string, std::string> fsdp::settingsOf(RunConfig config) {
  return orderedSettings(std::move(config))
      .get<std::map<std::string, std::string>>();
}

std::string fsdp::runHeader(const PreparedRun &run, int ranks,
                            const std::optional<Resumption> &from) {
  ordered_json header;
  header["id"] = randomId();
  header["date"] = timestamp();
  header["host"] = rt::hostName();
  header["artifact"] =
      std::filesystem::absolute(run.artifact->directory()).string();
  header["ranks"] = ranks;
  header["mesh"] = run.artifact->manifest().meshText();
  header["fingerprint"] = run.artifact->manifest().fingerprint;
  if (from)
    header[from->goesOn ? "resumed_from" : "began_from"] = {
        {"step", from->step}, {"path", from->path}};
  header["config"] = orderedSettings(run.config);
  // Paths need not be UTF-8.
  return ordered_json{{"run", header}}.dump(
             -1, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}
