//===- ScheduleDecider.cpp - The fastest step in a budget -----------------===//
#include "fsdp/Schedule/ScheduleDecider.h"
#include "BucketSteps.h"
#include "LatePlaces.h"
#include "ScheduleBound.h"
#include "ScheduleScorer.h"
#include "ScheduleSearch.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

static size_t opsOf(const Problem &problem) {
  size_t ops = 0;
  for (const Program &program : problem.programs)
    ops += program.ops.size();
  return ops;
}

static int threadsFor(size_t ops) {
  static constexpr size_t kManyOps = 1000;
  // Each has a scorer, which takes tens of MB for a large model.
  static constexpr int kMostThreads = 16;
  return ops < kManyOps ? 1 : std::min(availableThreads(), kMostThreads);
}

ScheduleDecider::ScheduleDecider(const Problem &problem, Candidate given,
                                 const simulation::Costs &costs,
                                 std::string_view step, bool mayKeep,
                                 int threads)
    : problem(problem), costs(costs), ops(opsOf(problem)),
      threadCount(threads > 0 ? threads : threadsFor(ops)),
      base(std::move(given)),
      recomputation(problem, base, costs.model, threadCount),
      moved(transfersOf(problem, base, recomputation.options().blocks.program,
                        mayKeep)),
      known(knownRules(problem, base, moved, costs)),
      scorers(std::make_unique<ScorerPool>([this, name = std::string(step)] {
        return std::make_unique<ScheduleScorer>(this->problem, this->costs,
                                                name, moved.program);
      })) {}

ScheduleDecider::~ScheduleDecider() = default;

std::optional<DecidedSchedule>
ScheduleDecider::apply(std::vector<uint32_t> options,
                       const CommunicationChoice &choice) const {
  DecidedSchedule found;
  found.communication = choice;
  found.choice = std::move(options);
  found.candidate = withCommunication(
      withRecomputation(base, recomputation.options(), found.choice), moved,
      choice);
  ScorerPool::Lease scorer(*scorers);
  if (!scorer->runStep(found.candidate))
    return std::nullopt;
  found.total = scorer->total();
  found.bytes = scorer->bytes();
  return found;
}

std::optional<DecidedSchedule>
ScheduleDecider::decideIn(int64_t room,
                          const CommunicationChoice &choice) const {
  std::optional<std::vector<uint32_t>> chosen = recomputation.choose(room);
  if (!chosen)
    return std::nullopt;
  std::optional<DecidedSchedule> found = apply(std::move(*chosen), choice);
  if (found)
    found->room = room;
  return found;
}

std::optional<DecidedSchedule>
ScheduleDecider::withOptions(std::vector<uint32_t> options,
                             const CommunicationChoice &choice, int64_t budget,
                             std::optional<Duration> best) const {
  std::optional<DecidedSchedule> found =
      apply(std::move(options), withoutPlaces(choice));
  if (!found || (best && *best <= found->total))
    return std::nullopt;
  // As a rule late places save less than transfers that travel beside nothing.
  std::optional<DecidedSchedule> nearest =
      apply(found->choice, withoutDistances(found->communication));
  if (nearest && budget < nearest->bytes)
    return std::nullopt;
  *found = placeLate(std::move(*found));
  return found->bytes <= budget ? std::move(found) : std::nullopt;
}

static bool isFaster(const DecidedSchedule &a,
                     const std::optional<DecidedSchedule> &b) {
  return !b || a.total < b->total ||
         (a.total == b->total && a.bytes < b->bytes);
}

std::optional<DecidedSchedule>
ScheduleDecider::decideFrom(int64_t room, int64_t budget,
                            const CommunicationChoice &choice,
                            const std::optional<DecidedSchedule> &best) const {
  // What stays gathered, and what is in flight, needs bytes too. Each round
  // takes off what the last one had too much.
  std::optional<DecidedSchedule> found;
  while (std::optional<std::vector<uint32_t>> options =
             recomputation.choose(room)) {
    // The same in fewer bytes is known.
    if (!found || *options != found->choice)
      found = apply(std::move(*options), choice);
    if (!found)
      return std::nullopt;
    found->room = room;
    if (found->bytes <= budget)
      return found;
    // In fewer bytes more is computed again.
    if (best && best->total < found->total)
      return std::nullopt;
    room = recomputation.smallerRoom(room, found->bytes - budget);
  }
  return std::nullopt;
}

std::optional<DecidedSchedule>
ScheduleDecider::decide(int64_t budget,
                        const CommunicationChoice &choice) const {
  return decideFaster(budget, choice, std::nullopt);
}

std::optional<DecidedSchedule> ScheduleDecider::decideFaster(
    int64_t budget, const CommunicationChoice &choice,
    const std::optional<DecidedSchedule> &best) const {
  int64_t room = recomputation.roomIn(budget);
  // Programs that no step runs need fewer bytes as a rule, and are asked last.
  while (std::optional<DecidedSchedule> found =
             decideFrom(room, budget, choice, best)) {
    if (!isFaster(*found, best))
      return std::nullopt;
    std::optional<ScheduleScore> whole = score(found->candidate);
    if (!whole)
      return std::nullopt;
    found->bytes = whole->bytes;
    if (found->bytes <= budget)
      return isFaster(*found, best) ? std::move(found) : std::nullopt;
    room = recomputation.smallerRoom(found->room, found->bytes - budget);
  }
  return std::nullopt;
}

std::optional<DecidedSchedule> ScheduleDecider::least() const {
  std::vector<std::optional<DecidedSchedule>> all(known.size());
  parallelFor(known.size(), threadCount, [&](size_t i) {
    all[i] = decideIn(recomputation.leastRoom(), known[i].choice);
    if (all[i])
      *all[i] = placeLate(std::move(*all[i]));
  });
  std::optional<DecidedSchedule> best;
  for (std::optional<DecidedSchedule> &found : all)
    if (found && (!best || found->bytes < best->bytes))
      best = std::move(found);
  return best;
}

std::optional<ScheduleScore>
ScheduleDecider::score(const Candidate &candidate) const {
  ScorerPool::Lease scorer(*scorers);
  if (!scorer->run(candidate))
    return std::nullopt;
  return ScheduleScore{scorer->total(), scorer->bytes()};
}

/// "bwd layers.4 to layers.3": blocks that compute while a collective travels.
static std::string computesBeside(const Problem &problem,
                                  const Program &program,
                                  const ScheduleScorer &scorer,
                                  const simulation::Interval &interval) {
  const Sequence &sequence = scorer.sequence();
  std::string first, last;
  for (Id number = 0; number < sequence.steps.size(); ++number) {
    const Step &step = sequence.steps[number];
    const simulation::Interval &other = scorer.timeline().intervals[number];
    if (step.kind != StepKind::Work || step.members.count == 0 ||
        step.collective != CollectiveRole::None ||
        other.end <= interval.begin || interval.end <= other.begin)
      continue;
    const Member &member = sequence.members[step.members.begin];
    const Op &op = program.ops[member.op];
    Id place = op.block == kNone ? op.path : op.block;
    if (place == kNone || problem.text(place).empty())
      continue;
    last = problem.text(place);
    if (first.empty())
      first = std::string(phaseName(member.isAgain ? Phase::Again : op.phase)) +
              " " + last;
  }
  if (first.empty())
    return "nothing";
  bool isOne =
      first.size() > last.size() &&
      first.compare(first.size() - last.size(), last.size(), last) == 0;
  return isOne ? first : first + " to " + last;
}

BucketTravels ScheduleDecider::travels(const DecidedSchedule &found,
                                       bool saysBeside) const {
  BucketTravels travels;
  for (int kind = 0; kind < kTransferKinds; ++kind)
    travels[kind].resize(found.communication.buckets[kind].size());
  BucketSteps steps(moved, found.communication);
  ScorerPool::Lease scorer(*scorers);
  if (!scorer->run(found.candidate))
    return travels;
  const Sequence &sequence = scorer->sequence();
  for (Id number = 0; number < sequence.steps.size(); ++number) {
    const Step &step = sequence.steps[number];
    BucketSteps::Place place = steps.placeOf(sequence, step);
    if (place.bucket == kNone || step.kind == StepKind::Await)
      continue;
    BucketTravel &travel = travels[int(place.kind)][place.bucket];
    const simulation::Interval &interval = scorer->timeline().intervals[number];
    travel.isMade = true;
    travel.takes += Duration::ofPicoseconds(interval.end.picoseconds() -
                                            interval.begin.picoseconds());
    travel.exposed += scorer->timeline().exposed[number];
    if (saysBeside)
      travel.beside = computesBeside(problem, problem.programs[moved.program],
                                     *scorer, interval);
  }
  return travels;
}

std::optional<DecidedSchedule> ScheduleDecider::decide(int64_t budget) const {
  return searchSchedules(*this, budget, ops);
}

std::optional<DecidedSchedule>
ScheduleDecider::decideAgain(int64_t budget,
                             const DecidedSchedule *found) const {
  return searchAgain(*this, budget, ops, found);
}

std::optional<DecidedSchedule>
ScheduleDecider::decideRoughly(int64_t budget) const {
  return searchRoughly(*this, budget, ops);
}

Duration ScheduleDecider::bound(const DecidedSchedule &found) const {
  ScorerPool::Lease scorer(*scorers);
  if (!scorer->run(found.candidate))
    return {};
  TransferTimes times(problem, base, moved, costs);
  return boundOf(times, scorer->timeline().compute, scorer->held(),
                 costs.model) *
             scorer->runs() +
         scorer->boundOfOthers();
}

DecidedSchedule ScheduleDecider::placeLate(DecidedSchedule found) const {
  Candidate recomputes =
      withRecomputation(base, recomputation.options(), found.choice);
  ScorerPool::Lease scorer(*scorers);
  if (scorer->run(found.candidate))
    found.bytes = scorer->bytes();
  return withLatePlaces(problem, recomputes, moved, std::move(found), *scorer);
}

DecidedSchedule ScheduleDecider::refine(DecidedSchedule given,
                                        int64_t budget) const {
  DecidedSchedule best = placeLate(std::move(given));
  CommunicationChoice choice = withoutPlaces(best.communication);
  int64_t more = budget - best.bytes;
  // A few bytes buy nothing.
  for (int round = 0; round < kRefinements && more > budget / kLeastPart;
       ++round) {
    std::optional<DecidedSchedule> next = decideIn(best.room + more, choice);
    if (!next || next->choice == best.choice)
      break;
    *next = placeLate(std::move(*next));
    if (next->bytes > budget) {
      more -= next->bytes - budget;
      continue;
    }
    if (best.total <= next->total)
      break;
    best = std::move(*next);
    more = budget - best.bytes;
  }
  return best;
}

std::optional<DecidedSchedule>
ScheduleDecider::tighten(const DecidedSchedule &found, int64_t fewer) const {
  std::optional<DecidedSchedule> next =
      decideIn(found.room - fewer, withoutPlaces(found.communication));
  if (next)
    *next = placeLate(std::move(*next));
  return next;
}
