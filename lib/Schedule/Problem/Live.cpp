//===- Live.cpp - Bytes that a sequence keeps alive -----------------------===//
#include "fsdp/Schedule/ProblemLive.h"
#include "fsdp/Target/Target.h"
#include <algorithm>
#include <numeric>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class Liveness {
public:
  explicit Liveness(const Sequence &sequence) : sequence(sequence) {
    result.ranges.resize(sequence.buffers.size());
    result.kinds.resize(sequence.buffers.size(), BufferKind::Activation);
  }

  Live run(int64_t alignment) {
    for (Id number = 0; number < sequence.steps.size(); ++number) {
      const Step &step = sequence.steps[number];
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
      use(sequence.steps[start], sequence.steps.size() - 1);
    measure(alignment);
    return std::move(result);
  }

private:
  void use(const Step &step, Id number) {
    for (Id i = step.uses.begin; i < step.uses.end(); ++i) {
      LiveRange &range = result.ranges[sequence.uses[i]];
      if (range.end == 0)
        range.begin = number;
      range.end = std::max(range.end, number + 1);
    }
  }

  /// `start` is over, and so is what its stream ran before that nobody awaits.
  void finish(Id start, Id number) {
    auto isOver = [&](Id other) {
      const Step &step = sequence.steps[other];
      bool over =
          other == start || (other < start && !step.isAwaited &&
                             step.stream == sequence.steps[start].stream);
      if (over)
        use(step, number);
      return over;
    };
    inFlight.erase(std::remove_if(inFlight.begin(), inFlight.end(), isOver),
                   inFlight.end());
  }

  void classify(const Step &step) {
    Id end = step.uses.end(), outputs = end - step.workspaces - step.written;
    auto mark = [&](Id from, Id to, BufferKind kind) {
      for (Id i = from; i < to; ++i)
        result.kinds[sequence.uses[i]] = kind;
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

  void measure(int64_t alignment) {
    std::vector<int64_t> change(sequence.steps.size() + 1, 0);
    for (size_t i = 0; i < sequence.buffers.size(); ++i) {
      const LiveRange &range = result.ranges[i];
      if (range.end == 0)
        continue;
      int64_t bytes =
          (sequence.buffers[i].bytes + alignment - 1) / alignment * alignment;
      change[range.begin] += bytes;
      change[range.end] -= bytes;
    }
    int64_t alive = 0;
    result.bytes.reserve(sequence.steps.size());
    for (Id number = 0; number < sequence.steps.size(); ++number) {
      alive += change[number];
      result.bytes.push_back(alive);
      if (alive > result.peak) {
        result.peak = alive;
        result.at = number;
      }
    }
  }

  const Sequence &sequence;
  Live result;
  std::vector<Id> inFlight; // starts, in order
};

} // namespace

Live fsdp::problem::live(const Problem &problem, const Sequence &sequence) {
  return Liveness(sequence).run(rt::findTarget(problem.target)->alignment);
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
