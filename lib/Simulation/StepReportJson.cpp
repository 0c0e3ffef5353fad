//===- StepReportJson.cpp - The same for scripts and Perfetto -------------===//
#include "StepReportRows.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <nlohmann/json.hpp>

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::simulation;
using Json = nlohmann::ordered_json;

/// Names of a problem may be no UTF-8.
static std::string dumped(const Json &json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace) + "\n";
}

static Json memoryOf(const PeakMemory &peak) {
  return {{"total", peak.total()},        {"persistent", peak.parameters},
          {"outputs", peak.outputs},      {"activations", peak.activations},
          {"gathered", peak.gathered},    {"gradients", peak.gradients},
          {"workspaces", peak.workspaces}};
}

static Json collectivesOf(const Report &report) {
  Json all = Json::array();
  for (const CollectiveRow &row : collectiveRowsOf(report))
    all.push_back({{"address", row.address},
                   {"collective", spelled(row.call.kind)},
                   {"bytes", row.call.bytes},
                   {"nodes", row.call.shape.nodes},
                   {"ranks_per_node", row.call.shape.ranksPerNode},
                   {"times", row.times},
                   {"seconds", row.time.seconds()},
                   {"exposed_seconds", row.exposed.seconds()}});
  return all;
}

std::string fsdp::simulation::jsonOf(const Report &report) {
  const StepResult &step = report.step;
  const CostModel &model = report.costs.model;
  double flops = step.flopsPerSecond();
  double peak = peakFlopsOf(report.problem, model.machine());
  Json json = {
      {"machine", model.machine().name},
      {"machine_fingerprint", fingerprintOf(model.machine())},
      {"profile", model.profile().name},
      {"step_seconds", step.total.seconds()},
      {"bound_seconds", step.bound.seconds()},
      {"compute_seconds", step.compute.seconds()},
      {"communication_seconds", step.link.seconds()},
      {"exposed_communication_seconds", step.exposed.seconds()},
      {"tokens_per_second", step.tokensPerSecond()},
      {"tps", step.tokensPerSecond() / static_cast<double>(step.ranks)},
      {"tflops", flops / 1e12},
      {"mfu", peak == 0 ? 0 : flops / peak},
      {"peak_memory_bytes", memoryOf(step.peak)},
      {"collectives", collectivesOf(report)}};
  return dumped(json, 2);
}

//===----------------------------------------------------------------------===//
// Chrome trace
//===----------------------------------------------------------------------===//

namespace {

class Trace {
public:
  explicit Trace(const Report &report) : report(report) {}

  std::string run() {
    static constexpr const char *kRows[] = {"compute", "gather", "reduce",
                                            "copy", "wait of compute"};
    for (int row = 0; row < int(std::size(kRows)); ++row) {
      events.push_back({{"ph", "M"},
                        {"pid", 0},
                        {"tid", row},
                        {"name", "thread_name"},
                        {"args", {{"name", kRows[row]}}}});
      events.push_back({{"ph", "M"},
                        {"pid", 0},
                        {"tid", row},
                        {"name", "thread_sort_index"},
                        {"args", {{"sort_index", row}}}});
    }
    checkCount();
    for (const ProgramResult &ran : report.step.programs)
      for (int64_t i = 0; i < ran.times; ++i)
        add(ran);
    return dumped({{"displayTimeUnit", "ms"}, {"traceEvents", events}}, -1);
  }

private:
  static constexpr int kWaits = rt::kStreams;
  static constexpr int64_t kMostEvents = 4'000'000;

  void checkCount() const {
    CheckedSize count = 0;
    for (const ProgramResult &ran : report.step.programs)
      count += CheckedSize(int64_t(ran.sequence.steps.size())) * ran.times;
    if (!count.fits(kMostEvents))
      throw Error("the trace of the step would have more than " +
                  std::to_string(kMostEvents) +
                  " events; simulate fewer microbatches");
  }

  void add(const ProgramResult &ran) {
    const Program &program = report.problem.programs[ran.program];
    for (size_t i = 0; i < ran.sequence.steps.size(); ++i) {
      const Step &step = ran.sequence.steps[i];
      bool isWait = step.kind == StepKind::Await;
      const Step &named = isWait ? ran.sequence.steps[step.start] : step;
      std::string name = nameOf(report.problem, program, ran.sequence, named);
      add(ran.timeline.intervals[i], isWait ? kWaits : int(step.stream),
          isWait ? "await " + name : name);
    }
    origin += ran.timeline.total;
  }

  void add(const Interval &interval, int row, const std::string &name) {
    double begin = (origin + interval.begin).seconds() * 1e6;
    double end = (origin + interval.end).seconds() * 1e6;
    if (begin == end)
      return;
    events.push_back({{"ph", "X"},
                      {"pid", 0},
                      {"tid", row},
                      {"name", name},
                      {"ts", begin},
                      {"dur", end - begin}});
  }

  const Report &report;
  Json events = Json::array();
  Duration origin;
};

} // namespace

std::string fsdp::simulation::chromeTraceOf(const Report &report) {
  return Trace(report).run();
}
