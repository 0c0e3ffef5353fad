//===- LatePlaces.cpp - Starts as late, awaits as early as may be ---------===//
#include "LatePlaces.h"
#include "BucketSteps.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class PlaceFinder {
public:
  PlaceFinder(const Problem &problem, const Candidate &base,
              const Transfers &transfers, DecidedSchedule &found,
              ScheduleScorer &scorer)
      : problem(problem), program(problem.programs[transfers.program]),
        base(base), transfers(transfers), found(found), scorer(scorer),
        steps(transfers, found.communication) {}

  void run() {
    if (!simulate())
      return;
    findOptions();
    for (int round = 0; round < kRounds; ++round) {
      std::vector<Place> places = placesAtPeak();
      if (places.empty())
        return;
      if (!attempt(places) && !attemptEach(places))
        return;
      if (!simulate())
        return;
    }
  }

private:
  static constexpr int kRounds = 6;

  /// A place for a bucket: an op after which it starts, or before which it is
  /// awaited.
  struct Place {
    TransferKind kind = TransferKind::Again;
    Id bucket = 0;
    Id op = kNone;
  };

  //===--- What there is --------------------------------------------------===//

  bool simulate() {
    if (!scorer.run(found.candidate))
      return false;
    steps.find(scorer.sequence());
    findAnchors();
    return true;
  }

  /// Steps that no kernel joins, so that a wait between them divides none.
  void findAnchors() {
    const Sequence &sequence = scorer.sequence();
    anchors.clear();
    stepOf.assign(program.ops.size(), kNone);
    for (Id number = 0; number < sequence.steps.size(); ++number) {
      const Step &step = sequence.steps[number];
      if (step.kind != StepKind::Work || step.members.count != 1 ||
          step.collective != CollectiveRole::None)
        continue;
      const Member &member = sequence.members[step.members.begin];
      const Op &op = program.ops[member.op];
      // Whether one is computed again is decided anew for other bytes.
      bool isAlone = op.kind == OpKind::Work || op.kind == OpKind::AddProduct;
      if (member.isAgain || !op.is(kAddressed) || !isAlone)
        continue;
      anchors.push_back(number);
      stepOf[member.op] = number;
    }
  }

  Duration beginOf(Id step) const {
    return scorer.timeline().intervals[step].begin;
  }
  Duration endOf(Id step) const {
    return scorer.timeline().intervals[step].end;
  }
  Id opOf(Id step) const {
    const Sequence &sequence = scorer.sequence();
    return sequence.members[sequence.steps[step].members.begin].op;
  }

  void findOptions() {
    for (TransferKind kind : {TransferKind::Again, TransferKind::Reduce})
      options[int(kind)].resize(steps[kind].size());
    findAwaits();
    findStarts();
  }

  /// The first op that begins when all reductions of a bucket are over.
  void findAwaits() {
    const std::vector<StepsOfBucket> &buckets = steps[TransferKind::Reduce];
    for (Id i = 0; i < buckets.size(); ++i) {
      const StepsOfBucket &bucket = buckets[i];
      if (!bucket.isStarted())
        continue;
      Duration over = std::max(endOf(bucket.start), endOf(bucket.lastStart));
      auto at =
          std::upper_bound(anchors.begin(), anchors.end(), bucket.lastStart);
      while (at != anchors.end() && *at < bucket.await && beginOf(*at) < over)
        ++at;
      if (at != anchors.end() && *at < bucket.await)
        options[int(TransferKind::Reduce)][i].push_back(opOf(*at));
    }
  }

  /// The last op that ends before the gathers of a bucket have to begin, and
  /// the last one that ends before they do begin.
  void findStarts() {
    std::vector<Duration> latest = latestBegins();
    const std::vector<StepsOfBucket> &buckets = steps[TransferKind::Again];
    for (Id i = 0; i < buckets.size(); ++i) {
      const StepsOfBucket &bucket = buckets[i];
      if (!bucket.isStarted())
        continue;
      for (Duration begin : {latest[bucket.start], beginOf(bucket.start)}) {
        Id found = kNone;
        auto at =
            std::upper_bound(anchors.begin(), anchors.end(), bucket.lastStart);
        for (; at != anchors.end() && *at < bucket.await && endOf(*at) <= begin;
             ++at)
          found = *at;
        std::vector<Id> &of = options[int(TransferKind::Again)][i];
        if (found != kNone && (of.empty() || of.back() != opOf(found)))
          of.push_back(opOf(found));
      }
    }
  }

  /// Of each start: when it may begin at the latest so that its wait, and all
  /// that the link serves behind it, end when they do.
  std::vector<Duration> latestBegins() const {
    const Sequence &sequence = scorer.sequence();
    std::vector<Duration> begins(sequence.steps.size());
    std::vector<Duration> needed(sequence.steps.size(),
                                 Duration::ofPicoseconds(Duration::kMost));
    for (Id number = 0; number < sequence.steps.size(); ++number)
      if (const Step &step = sequence.steps[number];
          step.kind == StepKind::Await)
        needed[step.start] = std::max(beginOf(number), endOf(step.start));
    Duration link = Duration::ofPicoseconds(Duration::kMost);
    for (Id number = sequence.steps.size(); number-- > 0;) {
      const Step &step = sequence.steps[number];
      bool isServed = step.kind == StepKind::Start ||
                      (step.kind == StepKind::Work &&
                       step.collective != CollectiveRole::None);
      if (!isServed || step.stream == rt::Stream::Copy)
        continue;
      Duration begin = beginOf(number),
               takes = Duration::ofPicoseconds(endOf(number).picoseconds() -
                                               begin.picoseconds());
      if (step.kind == StepKind::Start &&
          step.collective == CollectiveRole::Gather) {
        Duration end = std::min(needed[number], link);
        begin = std::max(begin, Duration::ofPicoseconds(end.picoseconds() -
                                                        takes.picoseconds()));
      }
      begins[number] = begin;
      link = begin;
    }
    return begins;
  }

  //===--- What helps -----------------------------------------------------===//

  /// The buckets that hold bytes at the peak and would not with their next
  /// place.
  std::vector<Place> placesAtPeak() const {
    std::vector<Place> places;
    Id peak = scorer.live().at;
    for (TransferKind kind : {TransferKind::Again, TransferKind::Reduce})
      for (Id i = 0; i < steps[kind].size(); ++i) {
        const StepsOfBucket &bucket = steps[kind][i];
        const std::vector<Id> &of = options[int(kind)][i];
        if (!bucket.isStarted() || of.empty() ||
            !found.communication[kind][i].place.empty() ||
            peak < bucket.start || peak > bucket.await)
          continue;
        Id place = stepOf[of.front()];
        if (place == kNone)
          continue;
        bool helps =
            kind == TransferKind::Reduce ? place <= peak : peak <= place;
        if (helps)
          places.push_back({kind, i, of.front()});
      }
    return places;
  }

  /// Keeps them where the step takes no longer and needs fewer bytes, or as
  /// many.
  bool attempt(const std::vector<Place> &places) {
    CommunicationChoice choice = found.communication;
    for (const Place &place : places)
      choice[place.kind][place.bucket].place =
          addressOf(problem, program.ops[place.op]);
    Candidate candidate = withCommunication(base, transfers, choice);
    if (!scorer.run(candidate) || found.total < scorer.total() ||
        found.bytes < scorer.bytes())
      return false;
    found.communication = std::move(choice);
    found.candidate = std::move(candidate);
    found.total = scorer.total();
    found.bytes = scorer.bytes();
    return true;
  }

  /// One by one. A place that does not do is not tried again.
  bool attemptEach(const std::vector<Place> &places) {
    bool isAny = false;
    for (const Place &place : places) {
      if (places.size() > 1 && attempt({place})) {
        isAny = true;
        continue;
      }
      std::vector<Id> &of = options[int(place.kind)][place.bucket];
      of.erase(of.begin());
      isAny |= !of.empty();
    }
    return isAny;
  }

  const Problem &problem;
  const Program &program;
  const Candidate &base;
  const Transfers &transfers;
  DecidedSchedule &found;
  ScheduleScorer &scorer;
  BucketSteps steps;
  std::vector<Id> anchors; // steps beside which a place can be
  std::vector<Id> stepOf;  // of each op that is one of them
  /// The ops of the places of each bucket, the best first.
  std::vector<std::vector<Id>> options[kTransferKinds];
};

} // namespace

DecidedSchedule fsdp::problem::withLatePlaces(const Problem &problem,
                                              const Candidate &base,
                                              const Transfers &transfers,
                                              DecidedSchedule found,
                                              ScheduleScorer &scorer) {
  DecidedSchedule placed = found;
  PlaceFinder(problem, base, transfers, placed, scorer).run();
  return placed.bytes < found.bytes ? placed : found;
}
