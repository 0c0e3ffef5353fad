//===- ExplainSchedule.cpp - Why buckets are as they are ------------------===//
#include "fsdp/Schedule/ExplainSchedule.h"
#include "BucketChanges.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;

static constexpr const char *kVerbs[] = {"gather", "gather again", "reduce"};

namespace {

struct NamedChange {
  const char *ofGathers, *ofReductions;
  BucketChange change;
};

class BucketExplainer {
public:
  BucketExplainer(ScheduleDecider &decider, const DecidedSchedule &found,
                  int64_t budget)
      : decider(decider), budget(budget),
        choice(withoutPlaces(found.communication)),
        travels(decider.travels(found, /*saysBeside=*/true)) {}

  std::vector<ExplainedBucket> run(size_t most) {
    for (TransferKind kind :
         {TransferKind::Forward, TransferKind::Again, TransferKind::Reduce}) {
      std::vector<std::string> names =
          bucketNames(decider.transfers(), kind, choice[kind]);
      for (size_t i = 0; i < names.size(); ++i)
        if (const BucketTravel &travel = travels[int(kind)][i]; travel.isMade)
          all.push_back({{kVerbs[int(kind)] + (" " + names[i]),
                          travel.takes,
                          travel.exposed,
                          travel.beside,
                          {}},
                         kind,
                         i});
    }
    std::stable_sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
      return b.bucket.exposed < a.bucket.exposed;
    });
    std::vector<ExplainedBucket> explained;
    for (Place &place : all) {
      if (explained.size() < most)
        findChanges(place);
      explained.push_back(std::move(place.bucket));
    }
    return explained;
  }

private:
  struct Place {
    ExplainedBucket bucket;
    TransferKind kind = TransferKind::Forward;
    size_t number = 0;
  };

  void findChanges(Place &place) {
    static constexpr NamedChange kChanges[] = {
        {"with the next", "with the next", mergeWithNext},
        {"in halves", "in halves", splitInHalves},
        {"one further ahead", "awaited one later", moveFurther},
        {"one less ahead", "awaited one earlier", moveNearer}};
    for (const NamedChange &one : kChanges) {
      CommunicationChoice changed = choice;
      if (!one.change(changed[place.kind], place.number))
        continue;
      std::optional<DecidedSchedule> with = decider.decide(budget, changed);
      place.bucket.changes.push_back(
          {place.kind == TransferKind::Reduce ? one.ofReductions
                                              : one.ofGathers,
           with ? std::optional(with->total) : std::nullopt});
    }
  }

  ScheduleDecider &decider;
  const int64_t budget;
  const CommunicationChoice choice;
  const BucketTravels travels;
  std::vector<Place> all;
};

} // namespace

std::vector<ExplainedBucket>
fsdp::problem::explainBuckets(ScheduleDecider &decider,
                              const DecidedSchedule &found, int64_t budget,
                              size_t most) {
  return BucketExplainer(decider, found, budget).run(most);
}
