//===- Simulate.cpp - A step of a problem on a machine --------------------===//
#include "fsdp/Simulation/Simulate.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::simulation;

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

/// A profile that launches from the host charges each sharded module, in each
/// pass, where it gathers.
static Duration issueOf(const Step &step, const CostModel &model) {
  if (step.kind == StepKind::Await)
    return {};
  bool isModule = step.collective == CollectiveRole::Gather;
  return model.hostIssue() + (isModule ? model.hostModule() : Duration());
}

template <typename DurationOf>
static void addActivities(const Sequence &sequence, const CostModel &model,
                          DurationOf durationOf,
                          std::vector<Activity> &activities) {
  activities.reserve(sequence.steps.size());
  for (const Step &step : sequence.steps) {
    Activity activity;
    activity.kind = step.kind == StepKind::Start   ? Activity::Start
                    : step.kind == StepKind::Await ? Activity::Await
                                                   : Activity::Work;
    activity.isCollective = step.collective != CollectiveRole::None;
    activity.stream = step.stream;
    activity.start = step.start;
    activity.duration = durationOf(step);
    activity.issue = issueOf(step, model);
    activities.push_back(activity);
  }
}

std::vector<Activity> fsdp::simulation::activitiesOf(const Problem &problem,
                                                     const Program &program,
                                                     const Sequence &sequence,
                                                     const Costs &costs) {
  std::vector<Activity> activities;
  addActivities(
      sequence, costs.model,
      [&](const Step &step) {
        return durationOf(problem, program, sequence, step, costs);
      },
      activities);
  return activities;
}

void fsdp::simulation::findActivities(const Sequence &sequence, size_t program,
                                      const CostModel &model,
                                      StepDurations &durations,
                                      std::vector<Activity> &activities) {
  activities.clear();
  addActivities(
      sequence, model,
      [&](const Step &step) { return durations.of(program, sequence, step); },
      activities);
}

static PeakMemory peakOf(const Problem &problem, const Program &program,
                         const Sequence &sequence) {
  Live alive = live(problem, sequence);
  PeakMemory peak;
  peak.parameters = problem.persistentBytes;
  peak.outputs = program.ownOutputBytes;
  int64_t rest = alive.peak;
  for (Id buffer : heldAtPeak(sequence, alive)) {
    int64_t bytes = sequence.buffers[buffer].bytes;
    rest -= bytes;
    switch (alive.kinds[buffer]) {
    case BufferKind::Activation:
      peak.activations += bytes;
      break;
    case BufferKind::Gathered:
      peak.gathered += bytes;
      break;
    case BufferKind::Gradient:
      peak.gradients += bytes;
      break;
    case BufferKind::Workspace:
      peak.workspaces += bytes;
      break;
    }
  }
  // What aligning buffers adds.
  peak.activations += rest;
  return peak;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

static double modelFlopsOf(const Problem &problem, const Program &program) {
  double flops = 0;
  for (const Op &op : program.ops) {
    bool isGradient = op.math != kNone && problem.maths[op.math].kind ==
                                              MathKind::AttentionGradient;
    // A fifth of it are the scores again.
    flops += static_cast<double>(op.flops) * (isGradient ? 0.8 : 1);
  }
  return flops;
}

double StepResult::tokensPerSecond() const {
  double seconds = total.seconds();
  return seconds == 0 ? 0 : static_cast<double>(tokens) / seconds;
}

double StepResult::flopsPerSecond() const {
  double seconds = total.seconds();
  return seconds == 0 ? 0 : modelFlops / seconds;
}

static std::string stepNames(const Problem &problem) {
  std::string names;
  Id last = kNone;
  for (const StepRun &run : problem.steps) {
    if (run.step != last)
      names +=
          (names.empty() ? "" : ", ") + std::string(problem.text(run.step));
    last = run.step;
  }
  return names.empty() ? "none" : names;
}

static size_t numberOf(const Problem &problem, Id program) {
  for (size_t i = 0; i < problem.programs.size(); ++i)
    if (problem.programs[i].name == program)
      return i;
  throw Error("the step runs '" + std::string(problem.text(program)) +
              "', which is no program of the problem");
}

StepResult fsdp::simulation::simulate(const Problem &problem,
                                      const Candidate &candidate,
                                      std::string_view name,
                                      const Costs &costs) {
  std::vector<Sequence> sequences;
  for (size_t i = 0; i < problem.programs.size(); ++i)
    sequences.push_back(order(problem, candidate, i));
  if (std::string refusal = refusalOf(sequences); !refusal.empty())
    throw Error("the plan cannot be applied: " + refusal);
  StepResult result;
  result.tokens = problem.tokens;
  result.ranks = problem.ranks;
  Slowdowns slowdowns(costs.model);
  Id step = problem.find(name);
  for (const StepRun &one : problem.steps) {
    if (one.step != step)
      continue;
    ProgramResult &ran = result.programs.emplace_back();
    ran.program = Id(numberOf(problem, one.program));
    ran.times = one.times;
    ran.sequence = sequences[ran.program];
    const Program &program = problem.programs[ran.program];
    ran.timeline =
        run(activitiesOf(problem, program, ran.sequence, costs), slowdowns);
    ran.peak = peakOf(problem, program, ran.sequence);
    Duration exposed;
    for (Duration each : ran.timeline.exposed)
      exposed += each;
    result.total += ran.timeline.total * one.times;
    result.bound += ran.timeline.bound * one.times;
    result.compute += ran.timeline.compute * one.times;
    result.link += ran.timeline.link * one.times;
    result.exposed += exposed * one.times;
    result.modelFlops +=
        modelFlopsOf(problem, program) * static_cast<double>(one.times);
    if (result.peak.total() < ran.peak.total())
      result.peak = ran.peak;
  }
  if (result.programs.empty())
    throw Error("the problem has no step '" + std::string(name) +
                "'; its steps: " + stepNames(problem));
  return result;
}

double fsdp::simulation::peakFlopsOf(const Problem &problem,
                                     const Machine &machine) {
  double bf16 = 0, all = 0;
  for (const Program &program : problem.programs)
    for (const Op &op : program.ops) {
      if (op.math == kNone)
        continue;
      bool isNarrow = problem.maths[op.math].type == rt::DType::BF16;
      all += static_cast<double>(op.flops);
      bf16 += isNarrow ? static_cast<double>(op.flops) : 0;
    }
  return 2 * bf16 > all ? machine.compute.bf16 : machine.compute.f32;
}
