//===- Live.cpp - Bytes that a sequence keeps alive -----------------------===//
#include "Liveness.h"
#include "fsdp/Target/Target.h"
#include <algorithm>
#include <numeric>

using namespace fsdp;
using namespace fsdp::problem;

void Liveness::run(const Sequence &of, int64_t alignment, Live &into) {
  sequence = &of;
  live = &into;
  live->ranges.assign(of.buffers.size(), LiveRange());
  live->kinds.assign(of.buffers.size(), BufferKind::Activation);
  live->bytes.clear();
  live->peak = live->at = 0;
  inFlight.clear();
  for (Id number = 0; number < of.steps.size(); ++number) {
    const Step &step = of.steps[number];
    if (step.kind == StepKind::Await) {
      finish(step.start, number);
      continue;
    }
    use(step, number);
    classify(step);
    if (step.kind == StepKind::Start)
      inFlight.push_back(number);
  }
  // What nobody awaits is in flight until the end.
  for (Id start : inFlight)
    use(of.steps[start], of.steps.size() - 1);
  measure(alignment);
}

/// Steps come in order.
void Liveness::use(const Step &step, Id number) {
  for (Id i = step.uses.begin; i < step.uses.end(); ++i) {
    LiveRange &range = live->ranges[sequence->uses[i]];
    if (range.end == 0)
      range.begin = number;
    range.end = number + 1;
  }
}

/// `start` is over, and so is what its stream ran before that nobody awaits.
void Liveness::finish(Id start, Id number) {
  auto isOver = [&](Id other) {
    const Step &step = sequence->steps[other];
    bool over =
        other == start || (other < start && !step.isAwaited &&
                           step.stream == sequence->steps[start].stream);
    if (over)
      use(step, number);
    return over;
  };
  inFlight.erase(std::remove_if(inFlight.begin(), inFlight.end(), isOver),
                 inFlight.end());
}

void Liveness::classify(const Step &step) {
  Id end = step.uses.end(), outputs = end - step.workspaces - step.written;
  auto mark = [&](Id from, Id to, BufferKind kind) {
    for (Id i = from; i < to; ++i)
      live->kinds[sequence->uses[i]] = kind;
  };
  if (step.collective != CollectiveRole::None) {
    bool isGather = step.collective == CollectiveRole::Gather;
    mark(outputs, end - step.workspaces,
         isGather ? BufferKind::Gathered : BufferKind::Gradient);
    if (!isGather)
      mark(step.uses.begin, outputs, BufferKind::Gradient);
  }
  mark(end - step.workspaces, end, BufferKind::Workspace);
}

/// `alignment` is a power of two.
void Liveness::measure(int64_t alignment) {
  change.assign(sequence->steps.size() + 1, 0);
  for (size_t i = 0; i < sequence->buffers.size(); ++i) {
    const LiveRange &range = live->ranges[i];
    if (range.end == 0)
      continue;
    int64_t bytes = (sequence->buffers[i].bytes + alignment - 1) & -alignment;
    change[range.begin] += bytes;
    change[range.end] -= bytes;
  }
  int64_t alive = 0;
  live->bytes.reserve(sequence->steps.size());
  for (Id number = 0; number < sequence->steps.size(); ++number) {
    alive += change[number];
    live->bytes.push_back(alive);
    if (alive > live->peak) {
      live->peak = alive;
      live->at = number;
    }
  }
}

Live fsdp::problem::live(const Problem &problem, const Sequence &sequence) {
  Live live;
  Liveness().run(sequence, rt::findTarget(problem.target)->alignment, live);
  return live;
}

std::vector<Id> fsdp::problem::heldAtPeak(const Sequence &sequence,
                                          const Live &live) {
  std::vector<Id> held;
  for (Id i = 0; i < live.ranges.size(); ++i)
    if (live.ranges[i].begin <= live.at && live.at < live.ranges[i].end)
      held.push_back(i);
  std::stable_sort(held.begin(), held.end(), [&](Id a, Id b) {
    return sequence.buffers[a].bytes > sequence.buffers[b].bytes;
  });
  return held;
}

std::vector<int64_t>
fsdp::problem::lowerBounds(const Problem &problem,
                           const std::vector<int64_t> &peaks) {
  std::vector<size_t> order(peaks.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return peaks[a] > peaks[b]; });
  std::vector<int64_t> bounds(peaks.size());
  int64_t top = problem.persistentBytes;
  for (size_t program : order) {
    top += problem.programs[program].ownOutputBytes;
    bounds[program] = top + peaks[program];
  }
  return bounds;
}
