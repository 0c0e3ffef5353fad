//===- ScheduleScorer.cpp - What a candidate takes and needs --------------===//
#include "ScheduleScorer.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

bool ScheduleScorer::run(const Candidate &candidate, bool all) {
  std::vector<int64_t> peaks;
  sum = others = {};
  for (size_t i = 0; i < problem.programs.size(); ++i) {
    int64_t runs = runsOf(problem.programs[i].name);
    if (runs == 0 && !all && i != trained) {
      peaks.push_back(0);
      continue;
    }
    const Sequence &sequence = evaluator.order(candidate, i);
    if (!sequence.refusal.empty())
      return false;
    const Live &live = evaluator.live(i);
    peaks.push_back(live.peak);
    if (runs != 0) {
      simulation::findActivities(sequence, i, model, durations, activities);
      simulation::Timeline timeline = simulation::run(activities, slowdowns);
      sum += timeline.total * runs;
      if (i == trained)
        times = std::move(timeline);
      else
        others += timeline.bound * runs;
    }
    if (i == trained) {
      order = &sequence;
      alive = &live;
    }
  }
  std::vector<int64_t> bounds = lowerBounds(problem, peaks);
  least = *std::max_element(bounds.begin(), bounds.end());
  return true;
}

Duration ScheduleScorer::held() {
  Duration time;
  for (const Step &step : order->steps)
    if (step.kind == StepKind::Work && step.collective != CollectiveRole::None)
      time += durations.of(trained, *order, step);
  return time;
}

int64_t ScheduleScorer::runsOf(Id program) const {
  int64_t times = 0;
  for (const StepRun &one : problem.steps)
    if (one.step == step && one.program == program)
      times += one.times;
  return times;
}
