//===- StepReportRows.cpp - What reports say of steps ---------------------===//
#include "StepReportRows.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::simulation;

/// "fwd layers.3 all_gather", or with the first and the last of several blocks.
static std::string bucketNameOf(const Problem &problem, const Program &program,
                                const Sequence &sequence, const Step &step) {
  const Member &first = sequence.members[step.members.begin];
  const Op &op = program.ops[first.op];
  const Op &last = program.ops[sequence.members[step.members.end() - 1].op];
  auto placeOf = [&](const Op &of) {
    return std::string(problem.text(of.block == kNone ? of.path : of.block));
  };
  std::string from = placeOf(op), to = placeOf(last);
  return bucketAddressOf(problem, op, first.isAgain,
                         from == to ? from : from + " to " + to);
}

std::string fsdp::simulation::nameOf(const Problem &problem,
                                     const Program &program,
                                     const Sequence &sequence,
                                     const Step &step) {
  if (step.members.count == 0)
    return step.kind == StepKind::Copy ? "copy" : "await";
  const Member &first = sequence.members[step.members.begin];
  if (step.collective != CollectiveRole::None && step.members.count > 1)
    return bucketNameOf(problem, program, sequence, step);
  std::string name = addressOf(problem, program.ops[first.op], first.isAgain);
  if (step.members.count > 1)
    name += " and " + std::to_string(step.members.count - 1) + " more";
  return name;
}

std::vector<CollectiveRow>
fsdp::simulation::collectiveRowsOf(const Report &report) {
  std::vector<CollectiveRow> rows;
  for (const ProgramResult &ran : report.step.programs) {
    const Program &program = report.problem.programs[ran.program];
    for (size_t i = 0; i < ran.sequence.steps.size(); ++i) {
      const Step &step = ran.sequence.steps[i];
      if (step.collective == CollectiveRole::None ||
          step.kind == StepKind::Await)
        continue;
      auto members = ran.sequence.members.begin();
      CollectiveRow row;
      row.address = nameOf(report.problem, program, ran.sequence, step);
      row.call =
          callOf(report.problem, program,
                 {members + step.members.begin, members + step.members.end()},
                 report.costs);
      row.times = ran.times;
      const Interval &interval = ran.timeline.intervals[i];
      row.time = Duration::ofPicoseconds(interval.end.picoseconds() -
                                         interval.begin.picoseconds());
      row.exposed = ran.timeline.exposed[i];
      rows.push_back(std::move(row));
    }
  }
  std::stable_sort(rows.begin(), rows.end(),
                   [](const CollectiveRow &a, const CollectiveRow &b) {
                     return b.exposed * b.times < a.exposed * a.times;
                   });
  return rows;
}

std::vector<std::pair<const char *, int64_t>>
fsdp::simulation::rowsOf(const PeakMemory &peak) {
  return {{"parameters and optimizer", peak.parameters},
          {"outputs", peak.outputs},
          {"activations", peak.activations},
          {"gathered parameters", peak.gathered},
          {"gradients", peak.gradients},
          {"workspaces", peak.workspaces}};
}
