//===- Decisions.cpp - What a plan means for a module ---------------------===//
#include "fsdp/Schedule/Decisions.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Schedule/RecomputedValues.h"
#include "fsdp/Support/NearestName.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

dist::Origin fsdp::schedule::bucketOf(dist::OriginAttr origin,
                                      const Decision &decision) {
  if (decision.bucket.empty())
    return origin.getOrigin();
  return {origin.getPhase(), decision.bucket, origin.getOp()};
}

//===----------------------------------------------------------------------===//
// The planner by rule
//===----------------------------------------------------------------------===//

/// Blocks are units; modules before the first block are units of their own;
/// what follows the last block (norm, output) is needed together, so it is one
/// unit.
static std::string unitName(StringRef parameter, bool afterBlocks) {
  StringRef block = nn::blockOf(parameter);
  if (!block.empty())
    return block.str();
  return afterBlocks ? "head" : nn::firstComponent(parameter).str();
}

/// The unit of every parameter. A module whose parameters are not next to each
/// other has several units.
static llvm::StringMap<std::string> unitsByRule(ArrayRef<StringRef> parameters,
                                                UnitPolicy policy) {
  llvm::StringMap<std::string> unitOf;
  llvm::StringMap<int> uses;
  bool seenBlock = false;
  std::string last, unique;
  for (StringRef parameter : parameters) {
    bool isBlock = !nn::blockOf(parameter).empty();
    seenBlock |= isBlock;
    std::string name = policy == UnitPolicy::Whole
                           ? "model"
                           : unitName(parameter, seenBlock && !isBlock);
    if (unique.empty() || name != last) {
      last = name;
      int use = ++uses[name];
      unique = use == 1 ? name : name + " (" + std::to_string(use) + ")";
    }
    unitOf[parameter] = unique;
  }
  return unitOf;
}

/// What a rule says that computes values again, to save memory: the reduction
/// of `unit`, which the backward pass gives first, is awaited when it is over,
/// and not when the next one starts, at the end of a block. Most is alive in
/// that block. A plan that says of the reduction how it is merged, when it
/// starts or when it is awaited has the last word.
static void awaitWhenOver(const std::string &unit, const DecisionPoints &points,
                          const PlannerOptions &options,
                          llvm::MapVector<dist::OriginAttr, Decision> &all) {
  if (unit.empty())
    return;
  unsigned last = 0, over = 0;
  std::string before;
  for (const auto &[origin, point] : points.all()) {
    const Decision &decision = all[origin];
    if (!point.isReduction() || decision.bucket != unit)
      continue;
    bool isByRule = decision.merge && decision.overlap &&
                    decision.defer == options.reduceDefer &&
                    decision.startAfter.empty() && decision.awaitBefore.empty();
    if (point.overBefore.empty() || !isByRule)
      return;
    last = std::max(last, point.place);
    if (point.overPlace > over) {
      over = point.overPlace;
      before = point.overBefore;
    }
  }
  std::string next;
  unsigned nextStart = 0;
  for (const auto &[origin, point] : points.all()) {
    if (!point.isReduction() || point.parameter.empty() || point.place <= last)
      continue;
    if (next.empty())
      next = all[origin].bucket;
    if (all[origin].bucket == next)
      nextStart = std::max(nextStart, point.place);
  }
  if (before.empty() || over <= last || over >= nextStart)
    return;
  for (const auto &[origin, point] : points.all())
    if (point.isReduction() && all[origin].bucket == unit)
      all[origin].awaitBefore = before;
}

llvm::Expected<Decisions> Decisions::byRule(const DecisionPoints &points,
                                            const PlannerOptions &options,
                                            std::optional<Plan> plan) {
  llvm::StringMap<std::string> unitOf =
      unitsByRule(points.parameters(), options.units);
  std::string usedLast = unitOf.lookup(points.usedLast());
  std::string kept = options.reshard == ReshardPolicy::Default ? usedLast : "";
  llvm::DenseSet<dist::OriginAttr> recomputed =
      recomputedValues(points, parseRecomputePolicy(options.recompute));
  Decisions result;
  for (const auto &[origin, point] : points.all()) {
    Decision &decision = result.decisions[origin];
    if (!point.kind || point.parameter.empty()) {
      decision.recompute = recomputed.contains(origin);
      continue;
    }
    decision.bucket = unitOf.lookup(point.parameter);
    decision.merge = options.bucket;
    decision.overlap = options.overlap;
    if (point.isGather())
      decision.prefetch = options.prefetch;
    if (point.isReduction())
      decision.defer = options.reduceDefer;
    decision.recompute = point.canRecompute &&
                         options.reshard != ReshardPolicy::Never &&
                         decision.bucket != kept;
  }
  if (plan)
    if (llvm::Error error = result.apply(std::move(*plan), points))
      return std::move(error);
  if (!recomputed.empty() && options.bucket && options.overlap)
    awaitWhenOver(usedLast, points, options, result.decisions);
  return result;
}

Decisions Decisions::byRule(const DecisionPoints &points,
                            const PlannerOptions &options) {
  return llvm::cantFail(byRule(points, options, std::nullopt));
}

bool fsdp::schedule::saysOfValues(const Plan &plan,
                                  const DecisionPoints &points) {
  llvm::Expected<Rules> rules = Rules::compile(plan);
  if (!rules) {
    llvm::consumeError(rules.takeError()); // apply() says it.
    return true;
  }
  return llvm::any_of(points.all(), [&](const auto &entry) {
    if (entry.second.kind)
      return false;
    Decision keeps, repeats;
    repeats.recompute = true;
    rules->decide(entry.first, entry.second, keeps);
    rules->decide(entry.first, entry.second, repeats);
    return keeps.recompute == repeats.recompute;
  });
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Whether something can be decided about `point` that is about `ops`.
static bool isAbout(dist::DecidedOps ops, const DecisionPoint &point) {
  switch (ops) {
  case dist::DecidedOps::Values:
    return point.canRecompute;
  case dist::DecidedOps::Collectives:
    return point.kind.has_value();
  case dist::DecidedOps::ParameterCollectives:
    return point.kind && !point.parameter.empty();
  case dist::DecidedOps::Gathers:
    return point.isGather();
  case dist::DecidedOps::Reductions:
    return point.isReduction();
  }
  llvm_unreachable("unknown kind of ops");
}

/// The number of the block that `origin` lies in; empty outside of blocks.
static StringRef blockNumber(dist::OriginAttr origin) {
  return nn::blockNumberOf(origin.getPath());
}

/// Puts the overrides that are about `point` over `decision`; calls `made` with
/// the name of each.
static void choose(const DecisionOverrides &overrides, dist::OriginAttr origin,
                   const DecisionPoint &point, Decision &decision,
                   llvm::function_ref<void(StringRef)> made) {
  dist::forEachDecisionField([&](const auto &field) {
    const auto &value = field.in(overrides);
    if (!value || !isAbout(field.about, point))
      return;
    auto &place = field.in(decision);
    place = *value;
    if constexpr (std::is_same_v<decltype(field.initial), std::string>)
      if (size_t star = place.find('*');
          field.domain == dist::FieldDomain::BucketName &&
          star != std::string::npos)
        place.replace(star, 1, blockNumber(origin).str());
    made(field.name);
  });
}

/// What has a meaning of its own in a glob.
static constexpr llvm::StringLiteral kWildcards = "*?[]{}\\";

bool Rules::Match::any(StringRef address,
                       llvm::function_ref<bool(StringRef)> visit) const {
  if (names.contains(address) && visit(address))
    return true;
  return llvm::any_of(globs, [&](const auto &glob) {
    return (address == glob.first || glob.second.match(address)) &&
           visit(glob.first);
  });
}

llvm::Expected<Rules> Rules::compile(Plan plan) {
  Rules rules;
  rules.plan = std::move(plan);
  for (auto [index, rule] : llvm::enumerate(rules.plan.rules)) {
    Match &match = rules.matches.emplace_back();
    for (const std::string &text : rule.match) {
      if (StringRef(text).find_first_of(kWildcards) == StringRef::npos) {
        match.names.insert(text);
        continue;
      }
      llvm::Expected<llvm::GlobPattern> glob =
          llvm::GlobPattern::create(text, /*MaxSubPatterns=*/1024);
      if (!glob)
        return llvm::createStringError(
            "rules[" + std::to_string(index) + "]: match: '" + text +
            "' is not a glob: " + llvm::toString(glob.takeError()));
      match.globs.push_back({text, std::move(*glob)});
    }
  }
  return rules;
}

void Rules::decide(dist::OriginAttr origin, const DecisionPoint &point,
                   Decision &decision) const {
  auto always = [](StringRef) { return true; };
  for (auto [rule, match] : llvm::zip(plan.rules, matches)) {
    if (match.any(origin.getText(), always) ||
        match.any(bucketOf(origin, decision).str(), always))
      choose(rule.overrides, origin, point, decision, [](StringRef) {});
  }
}

//===----------------------------------------------------------------------===//
// Plans over points
//===----------------------------------------------------------------------===//

static std::vector<std::string> namesOf(const llvm::StringSet<> &set) {
  std::vector<std::string> names;
  for (const auto &entry : set)
    names.push_back(entry.getKey().str());
  llvm::sort(names); // the nearest name must not depend on hashes
  return names;
}

llvm::StringSet<>
Decisions::bucketAddresses(const DecisionPoints &points) const {
  llvm::StringSet<> buckets;
  for (const auto &[origin, decision] : decisions)
    if (points.all().find(origin)->second.kind)
      buckets.insert(bucketOf(origin, decision).str());
  return buckets;
}

llvm::Error Decisions::apply(Plan plan, const DecisionPoints &points) {
  llvm::Expected<Rules> rules = Rules::compile(std::move(plan));
  if (!rules)
    return rules.takeError();
  for (size_t index = 0; index < rules->plan.rules.size(); ++index)
    if (llvm::Error error = applyRule(*rules, index, points))
      return error;
  return checkBuckets(points);
}

std::string Decisions::checkAnchor(StringRef anchor,
                                   const DecisionPoints &points) const {
  if (anchor.empty() || points.addresses().contains(anchor))
    return {};
  llvm::StringSet<> known = bucketAddresses(points);
  if (known.contains(anchor))
    return {};
  for (const auto &entry : points.addresses())
    known.insert(entry.getKey());
  return "no op has the address '" + anchor.str() + "'" +
         didYouMean(anchor.str(), namesOf(known));
}

/// The field of `overrides` whose star has no meaning for a point that lies in
/// no block; empty if there is none.
static StringRef starOutsideOfBlocks(const DecisionOverrides &overrides,
                                     dist::OriginAttr origin,
                                     const DecisionPoint &point) {
  StringRef found;
  dist::forEachDecisionField([&](const auto &field) {
    if constexpr (std::is_same_v<decltype(field.initial), std::string>) {
      const std::optional<std::string> &value = field.in(overrides);
      if (value && field.domain == dist::FieldDomain::BucketName &&
          isAbout(field.about, point) && StringRef(*value).contains('*') &&
          blockNumber(origin).empty())
        found = field.name;
    }
  });
  return found;
}

llvm::Error Decisions::applyRule(const Rules &rules, size_t index,
                                 const DecisionPoints &points) {
  const Rule &rule = rules.plan.rules[index];
  std::string place = "rules[" + std::to_string(index) + "]";
  auto fail = [&](const Twine &why, const Twine &field) {
    return llvm::createStringError((place + ": " + field + ": " + why).str());
  };
  llvm::StringSet<> used, made;
  for (const auto &[origin, point] : points.all()) {
    Decision &decision = decisions[origin];
    std::string bucket = bucketOf(origin, decision).str();
    bool matches = false;
    auto use = [&](StringRef text) {
      used.insert(text);
      matches = true;
      return false;
    };
    rules.matches[index].any(origin.getText(), use);
    rules.matches[index].any(bucket, use);
    if (!matches)
      continue;
    if (StringRef field = starOutsideOfBlocks(rule.overrides, origin, point);
        !field.empty())
      return fail("the star stands for the number of a block, but '" +
                      origin.getText() + "' lies in none",
                  field);
    choose(rule.overrides, origin, point, decision,
           [&](StringRef name) { made.insert(name); });
  }
  for (StringRef text : rule.match)
    if (!used.contains(text)) {
      llvm::StringSet<> known = bucketAddresses(points);
      for (const auto &entry : points.all())
        known.insert(entry.first.getText());
      return fail("nothing to decide about matches '" + text + "'" +
                      didYouMean(text.str(), namesOf(known)),
                  "match");
    }
  std::string field, problem;
  dist::forEachDecisionField([&](const auto &record) {
    if (!record.in(rule.overrides) || made.contains(record.name) ||
        !problem.empty())
      return;
    field = record.name.str();
    problem = "it is about " + nameOf(record.about).str() +
              ", which the rule matches none of";
  });
  dist::forEachDecisionField([&](const auto &record) {
    const auto &value = record.in(rule.overrides);
    if constexpr (std::is_same_v<decltype(record.initial), std::string>)
      if (value && record.domain == dist::FieldDomain::Address &&
          problem.empty()) {
        field = record.name.str();
        problem = checkAnchor(*value, points);
      }
  });
  if (!problem.empty())
    return fail(problem, field);
  return llvm::Error::success();
}

Decision fsdp::schedule::aboutPoint(Decision decision,
                                    const DecisionPoint &point) {
  dist::forEachDecisionField([&](const auto &field) {
    if (!isAbout(field.about, point))
      field.in(decision) = field.initial;
  });
  return decision;
}

Decision fsdp::schedule::aboutCollective(Decision decision) {
  dist::forEachDecisionField([&](const auto &field) {
    if (field.about == dist::DecidedOps::Values)
      field.in(decision) = field.initial;
  });
  return decision;
}

llvm::Error Decisions::checkBuckets(const DecisionPoints &points) const {
  llvm::StringMap<dist::OriginAttr> first; // member of each bucket
  for (const auto &[origin, decision] : decisions) {
    const DecisionPoint &point = points.all().find(origin)->second;
    if (!point.kind || decision.bucket.empty())
      continue;
    std::string bucket = bucketOf(origin, decision).str();
    dist::OriginAttr other = first.try_emplace(bucket, origin).first->second;
    if (!(aboutCollective(decision) == aboutCollective((*this)[other])))
      return llvm::createStringError(
          "'" + other.getText() + "' and '" + origin.getText() +
          "' are in the bucket '" + decision.bucket +
          "', but the rules decide differently about them; decide about '" +
          bucket + "', or put one of them into another bucket");
  }
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// All decisions as rules
//===----------------------------------------------------------------------===//

/// The name of a bucket with a star for the number of the block, if it has
/// that.
static std::string inAnyBlock(StringRef bucket, StringRef number) {
  for (size_t at = bucket.find(number);
       !number.empty() && at != StringRef::npos;
       at = bucket.find(number, at + 1)) {
    StringRef before = bucket.take_front(at),
              after = bucket.drop_front(at + number.size());
    if (!before.contains('*') &&
        (before.empty() || !llvm::isDigit(before.back())) &&
        (after.empty() || !llvm::isDigit(after.front())))
      return (before + "*" + after).str();
  }
  return bucket.str();
}

/// What a rule has to say of `point`, so that nothing else matters.
static DecisionOverrides overridesOf(dist::OriginAttr origin,
                                     const DecisionPoint &point,
                                     const Decision &decision) {
  DecisionOverrides overrides;
  dist::forEachDecisionField([&](const auto &field) {
    const auto &value = field.in(decision);
    if (!isAbout(field.about, point))
      return;
    auto &entry = field.in(overrides);
    entry = value;
    if constexpr (std::is_same_v<decltype(field.initial), std::string>) {
      if (field.domain == dist::FieldDomain::Address && value.empty())
        entry.reset();
      if (field.domain == dist::FieldDomain::BucketName)
        entry = inAnyBlock(value, blockNumber(origin));
    }
  });
  return overrides;
}

/// Overrides as a text that is equal where they are.
static std::string keyOf(const DecisionOverrides &overrides) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  dist::forEachDecisionField([&](const auto &field) {
    if (const auto &value = field.in(overrides))
      stream << field.name << '=' << llvm::json::Value(*value) << ' ';
  });
  return key;
}

namespace {

/// In order of insertion.
template <typename T>
using ByText = llvm::MapVector<std::string, T, llvm::StringMap<unsigned>>;

/// Rules by what they say.
class RuleList {
public:
  void add(const DecisionOverrides &overrides, StringRef address) {
    Rule &rule = rules[keyOf(overrides)];
    rule.overrides = overrides;
    rule.match.push_back(address.str());
  }
  void appendTo(Plan &plan) {
    for (auto &entry : rules)
      plan.rules.push_back(std::move(entry.second));
  }

private:
  ByText<Rule> rules;
};

/// The points that differ in numbers of blocks alone: by what is said of them,
/// how many they are.
struct Family {
  ByText<unsigned> votes;
};

} // namespace

/// A value that a rule has not said which says `value`. Rules say of places
/// only where there is one.
static void makeOther(dist::FieldDomain, bool value, bool &other) {
  other = !value;
}
static void makeOther(dist::FieldDomain, int64_t, int64_t &other) {
  other = -1;
}
static void makeOther(dist::FieldDomain domain, const std::string &value,
                      std::string &other) {
  if (domain != dist::FieldDomain::Address)
    other = value + " not";
}

/// A decision of which nothing is left when a rule has said all of `decision`.
static Decision contraryTo(const Decision &decision) {
  Decision contrary;
  dist::forEachDecisionField([&](const auto &field) {
    makeOther(field.domain, field.in(decision), field.in(contrary));
  });
  return contrary;
}

std::string fsdp::schedule::escapedGlob(StringRef text) {
  std::string glob;
  for (char c : text) {
    if (kWildcards.contains(c))
      glob += '\\';
    glob += c;
  }
  return glob;
}

/// A glob that matches `origin` in every block.
static std::string inAllBlocks(dist::OriginAttr origin) {
  std::string path = nn::withoutNumbers(escapedGlob(origin.getPath())),
              op = escapedGlob(origin.getOp());
  return dist::Origin{origin.getPhase(), path, op, origin.getIndex()}.str();
}

Plan Decisions::plan(const DecisionPoints &points) const {
  ByText<Family> families;
  llvm::StringMap<DecisionOverrides> overridesByKey;
  for (const auto &[origin, point] : points.all()) {
    DecisionOverrides overrides = overridesOf(origin, point, (*this)[origin]);
    std::string key = keyOf(overrides);
    overridesByKey[key] = overrides;
    ++families[inAllBlocks(origin)].votes[key];
  }
  RuleList common;
  for (const auto &[glob, family] : families) {
    const auto *most =
        llvm::max_element(family.votes, [](const auto &a, const auto &b) {
          return a.second < b.second;
        });
    common.add(overridesByKey[most->first], glob);
  }
  Plan plan;
  common.appendTo(plan);
  // A glob may match more than its family, and a family differ in what can be
  // decided.
  Rules rules = llvm::cantFail(Rules::compile(plan));
  RuleList exceptions;
  for (const auto &[origin, point] : points.all()) {
    Decision said = contraryTo((*this)[origin]);
    rules.decide(origin, point, said);
    const Decision &decision = (*this)[origin];
    DecisionOverrides overrides = overridesOf(origin, point, decision);
    if (keyOf(overridesOf(origin, point, said)) == keyOf(overrides))
      continue;
    // What a family says of places must be taken back.
    dist::forEachDecisionField([&](const auto &field) {
      if (field.domain == dist::FieldDomain::Address &&
          field.in(said) != field.in(decision))
        field.in(overrides) = field.in(decision);
    });
    exceptions.add(overrides, escapedGlob(origin.getText()));
  }
  exceptions.appendTo(plan);
  return plan;
}
