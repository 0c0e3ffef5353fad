//===- ConfigOptions.cpp - The table of all options -----------------------===//
#include "fsdp/Config/RunConfig.h"
#include <charconv>

using namespace fsdp;

static std::string numberText(double value) {
  char buffer[32];
  auto *end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}

static std::string text(bool value) { return value ? "true" : "false"; }
static std::string text(int64_t value) { return std::to_string(value); }
static std::string text(double value) { return numberText(value); }
static std::string text(const std::string &value) { return value; }
/// As on the command line.
static std::string text(const std::vector<std::string> &values) {
  std::string all;
  for (const std::string &value : values)
    all += (all.empty() ? "" : ",") + value;
  return all;
}
template <typename T> static std::string text(const std::optional<T> &value) {
  return value ? text(*value) : "unset";
}

static std::string text(const ChoicePlace &place) { return place.text(); }
static std::string text(const ChoiceListPlace &place) {
  return text(place.texts());
}
template <typename T> static std::string text(const T *place) {
  return text(*place);
}

std::string ConfigOption::text() const {
  return std::visit([](const auto &value) { return ::text(value); }, place);
}

std::string ConfigOption::typeName() const {
  struct Name {
    std::string operator()(bool *) { return "boolean"; }
    std::string operator()(int64_t *) { return "integer"; }
    std::string operator()(double *) { return "number"; }
    std::string operator()(std::string *) { return "string"; }
    std::string operator()(std::optional<bool> *) { return "boolean"; }
    std::string operator()(std::optional<int64_t> *) { return "integer"; }
    std::string operator()(std::optional<double> *) { return "number"; }
    std::string operator()(std::vector<std::string> *) { return "list"; }
    std::string operator()(const ChoicePlace &) { return "string"; }
    std::string operator()(const ChoiceListPlace &) { return "list"; }
  };
  return std::visit(Name(), place);
}

std::vector<ConfigOption> fsdp::configOptions(RunConfig &config) {
  OptionTable table;
  config.job.describe(table);
  config.model.describe(table);
  config.optimizer.describe(table);
  config.lrScheduler.describe(table);
  config.training.describe(table);
  config.parallelism.describe(table);
  config.compile.describe(table);
  config.checkpoint.describe(table);
  config.validation.describe(table);
  config.metrics.describe(table);
  config.sample.describe(table);
  return std::move(table.rows);
}

std::vector<ConfigOption> fsdp::pipelineOptions(CompileOptions &options) {
  OptionTable table;
  options.pipeline.describe(table);
  options.training.describe(table);
  options.parallelism.describe(table);
  options.optimizer.describe(table);
  options.compile.describe(table);
  std::vector<ConfigOption> rows;
  for (ConfigOption &option : table.rows)
    if (option.isForPasses())
      rows.push_back(std::move(option));
  return rows;
}
