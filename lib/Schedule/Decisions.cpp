//===- Decisions.cpp - What a plan means for a module ---------------------===//
#include "fsdp/Schedule/Decisions.h"
#include "fsdp/Support/NearestName.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

static auto fieldsOf(const Decision &decision) {
  return std::tie(decision.bucket, decision.merge, decision.overlap,
                  decision.prefetch, decision.defer, decision.startAfter,
                  decision.awaitBefore, decision.recompute);
}

bool Decision::operator==(const Decision &other) const {
  return fieldsOf(*this) == fieldsOf(other);
}

/// Without the number that tells ops of one name apart.
static StringRef kindOf(StringRef address) {
  return nn::withoutCall(roleOf(address));
}

static StringRef phaseOf(StringRef address) {
  return address.take_front(address.find(' '));
}

static std::string joined(StringRef phase, StringRef path, StringRef role) {
  return (phase + " " + path + (path.empty() ? "" : " ") + role).str();
}

std::string fsdp::schedule::bucketAddress(StringRef address,
                                          const Decision &decision) {
  if (decision.bucket.empty())
    return address.str();
  return joined(phaseOf(address), decision.bucket, kindOf(address));
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

static bool isRecomputed(const Point &point, RecomputePolicy policy) {
  return policy == RecomputePolicy::Full   ? point.staysInBlock
         : policy == RecomputePolicy::Free ? point.isFree
                                           : false;
}

Decisions Decisions::byRule(const Points &points,
                            const PlannerOptions &options) {
  llvm::StringMap<std::string> unitOf =
      unitsByRule(points.parameters(), options.units);
  std::string kept = options.reshard == ReshardPolicy::Default
                         ? unitOf.lookup(points.usedLast())
                         : std::string();
  Decisions result;
  for (const auto &[address, point] : points.all()) {
    Decision &decision = result.decisions[address];
    if (!point.kind || point.parameter.empty()) {
      decision.recompute = isRecomputed(point, options.recompute);
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
  return result;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

/// Whether a choice can be made about `point`.
static bool isAbout(StringRef choice, const Point &point) {
  if (choice == "recompute")
    return point.canRecompute;
  if (choice == "prefetch")
    return point.isGather();
  if (choice == "defer")
    return point.isReduction();
  if (choice == "bucket" || choice == "merge")
    return point.kind && !point.parameter.empty();
  return point.kind.has_value();
}

/// What isAbout() wants, for people.
static StringRef wantedBy(StringRef choice) {
  return llvm::StringSwitch<StringRef>(choice)
      .Case("recompute", "values of the forward pass that the backward pass "
                         "needs")
      .Case("prefetch", "gathers")
      .Case("defer", "reductions")
      .Cases({"bucket", "merge"}, "collectives that move parameters")
      .Default("collectives");
}

/// The number of the block that `address` lies in; empty outside of blocks.
static StringRef blockNumber(StringRef address) {
  StringRef block = nn::blockOf(pathOf(address));
  return block.drop_front(block.rfind('.') + 1);
}

/// Puts a choice over its place in a decision.
static void choose(const std::optional<std::string> &choice, StringRef name,
                   StringRef address, std::string &place) {
  place = *choice;
  size_t star = name == "bucket" ? place.find('*') : std::string::npos;
  if (star != std::string::npos)
    place.replace(star, 1, blockNumber(address).str());
}

template <typename T>
static void choose(const std::optional<T> &choice, StringRef, StringRef,
                   T &place) {
  place = *choice;
}

/// Calls `visit` with name, choice and place in a decision.
template <typename Visit>
static void visitPlaces(const Choices &choices, Decision &decision,
                        Visit visit) {
  visit("bucket", choices.bucket, decision.bucket);
  visit("merge", choices.merge, decision.merge);
  visit("overlap", choices.overlap, decision.overlap);
  visit("prefetch", choices.prefetch, decision.prefetch);
  visit("defer", choices.defer, decision.defer);
  visit("start_after", choices.startAfter, decision.startAfter);
  visit("await_before", choices.awaitBefore, decision.awaitBefore);
  visit("recompute", choices.recompute, decision.recompute);
}

/// Puts the choices that are about `point` over `decision`; calls `made` with
/// the name of each.
static void choose(const Choices &choices, StringRef address,
                   const Point &point, Decision &decision,
                   llvm::function_ref<void(StringRef)> made) {
  visitPlaces(choices, decision,
              [&](StringRef name, const auto &choice, auto &place) {
                if (!choice || !isAbout(name, point))
                  return;
                choose(choice, name, address, place);
                made(name);
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
            "' is no glob: " + llvm::toString(glob.takeError()));
      match.globs.push_back({text, std::move(*glob)});
    }
  }
  return rules;
}

void Rules::decide(StringRef address, const Point &point,
                   Decision &decision) const {
  auto always = [](StringRef) { return true; };
  for (auto [rule, match] : llvm::zip(plan.rules, matches)) {
    std::string bucket = bucketAddress(address, decision);
    if (match.any(address, always) || match.any(bucket, always))
      choose(rule.choices, address, point, decision, [](StringRef) {});
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

llvm::StringSet<> Decisions::bucketAddresses(const Points &points) const {
  llvm::StringSet<> buckets;
  for (const auto &[address, decision] : decisions)
    if (points.all().find(address)->second.kind)
      buckets.insert(bucketAddress(address, decision));
  return buckets;
}

llvm::Error Decisions::apply(Plan plan, const Points &points) {
  llvm::Expected<Rules> rules = Rules::compile(std::move(plan));
  if (!rules)
    return rules.takeError();
  for (size_t index = 0; index < rules->plan.rules.size(); ++index)
    if (llvm::Error error = applyRule(*rules, index, points))
      return error;
  return checkBuckets(points);
}

std::string Decisions::checkAnchor(const std::optional<std::string> &anchor,
                                   const Points &points) const {
  if (!anchor || anchor->empty() || points.addresses().contains(*anchor))
    return {};
  llvm::StringSet<> known = bucketAddresses(points);
  if (known.contains(*anchor))
    return {};
  for (const auto &entry : points.addresses())
    known.insert(entry.getKey());
  return "no op has the address '" + *anchor + "'" +
         didYouMean(*anchor, namesOf(known));
}

llvm::Error Decisions::applyRule(const Rules &rules, size_t index,
                                 const Points &points) {
  const Rule &rule = rules.plan.rules[index];
  std::string place = "rules[" + std::to_string(index) + "]";
  auto fail = [&](const Twine &why, const Twine &field) {
    return llvm::createStringError((place + ": " + field + ": " + why).str());
  };
  llvm::StringSet<> used, made;
  for (const auto &[address, point] : points.all()) {
    Decision &decision = decisions[address];
    std::string bucket = bucketAddress(address, decision);
    bool matches = false;
    auto use = [&](StringRef text) {
      used.insert(text);
      matches = true;
      return false;
    };
    rules.matches[index].any(address, use);
    rules.matches[index].any(bucket, use);
    if (!matches)
      continue;
    if (rule.choices.bucket && isAbout("bucket", point) &&
        StringRef(*rule.choices.bucket).contains('*') &&
        blockNumber(address).empty())
      return fail("the star stands for the number of a block, but '" + address +
                      "' lies in none",
                  "bucket");
    choose(rule.choices, address, point, decision,
           [&](StringRef name) { made.insert(name); });
  }
  for (StringRef text : rule.match)
    if (!used.contains(text)) {
      llvm::StringSet<> known = bucketAddresses(points);
      for (const auto &entry : points.all())
        known.insert(entry.first);
      return fail("nothing to decide about matches '" + text + "'" +
                      didYouMean(text.str(), namesOf(known)),
                  "match");
    }
  std::string unmade;
  visitChoices(rule.choices, [&](StringRef name, const auto &choice) {
    if (choice && !made.contains(name) && unmade.empty())
      unmade = name.str();
  });
  if (!unmade.empty())
    return fail("it is about " + wantedBy(unmade) +
                    ", which the rule matches none of",
                unmade);
  std::string problem = checkAnchor(rule.choices.startAfter, points);
  if (!problem.empty())
    return fail(problem, "start_after");
  problem = checkAnchor(rule.choices.awaitBefore, points);
  if (!problem.empty())
    return fail(problem, "await_before");
  return llvm::Error::success();
}

llvm::Error Decisions::checkBuckets(const Points &points) const {
  llvm::StringMap<StringRef> first; // member of each bucket
  for (const auto &[address, decision] : decisions) {
    const Point &point = points.all().find(address)->second;
    if (!point.kind || decision.bucket.empty())
      continue;
    std::string key =
        joined(phaseOf(address), decision.bucket, kindOf(address));
    StringRef other = first.try_emplace(key, address).first->second;
    Decision same = decision;
    same.recompute = (*this)[other].recompute;
    if (!(same == (*this)[other]))
      return llvm::createStringError(
          "'" + other.str() + "' and '" + address.str() +
          "' are in the bucket '" + decision.bucket +
          "' but not to be treated alike; decide about "
          "'" +
          bucketAddress(address, decision) +
          "', or put one of them into another bucket");
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
static Choices choicesOf(StringRef address, const Point &point,
                         const Decision &decision) {
  Choices choices;
  if (isAbout("bucket", point)) {
    choices.bucket = inAnyBlock(decision.bucket, blockNumber(address));
    choices.merge = decision.merge;
  }
  if (point.kind)
    choices.overlap = decision.overlap;
  if (isAbout("prefetch", point))
    choices.prefetch = decision.prefetch;
  if (isAbout("defer", point))
    choices.defer = decision.defer;
  if (!decision.startAfter.empty())
    choices.startAfter = decision.startAfter;
  if (!decision.awaitBefore.empty())
    choices.awaitBefore = decision.awaitBefore;
  if (point.canRecompute)
    choices.recompute = decision.recompute;
  return choices;
}

/// Choices as a text that is equal where they are.
static std::string keyOf(const Choices &choices) {
  std::string key;
  llvm::raw_string_ostream stream(key);
  visitChoices(choices, [&](StringRef name, const auto &choice) {
    if (choice)
      stream << name << '=' << llvm::json::Value(*choice) << ' ';
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
  void add(const Choices &choices, StringRef address) {
    Rule &rule = rules[keyOf(choices)];
    rule.choices = choices;
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

/// A decision of which nothing is left when a rule has said all of `decision`.
static Decision contraryTo(const Decision &decision) {
  Decision contrary;
  contrary.bucket = decision.bucket + " not";
  contrary.merge = !decision.merge;
  contrary.overlap = !decision.overlap;
  contrary.prefetch = contrary.defer = -1;
  contrary.recompute = !decision.recompute;
  return contrary;
}

/// A text as a glob that matches it alone.
static std::string escaped(StringRef text) {
  std::string glob;
  for (char c : text) {
    if (kWildcards.contains(c))
      glob += '\\';
    glob += c;
  }
  return glob;
}

/// A glob that matches `address` in every block.
static std::string inAllBlocks(StringRef address) {
  SmallVector<StringRef> parts;
  pathOf(address).split(parts, '.');
  std::vector<std::string> globs;
  for (StringRef part : parts)
    globs.push_back(nn::withoutNumbers(part) == "*" ? "*" : escaped(part));
  return joined(phaseOf(address), llvm::join(globs, "."),
                escaped(roleOf(address)));
}

Plan Decisions::plan(const Points &points) const {
  ByText<Family> families;
  llvm::StringMap<Choices> choicesByKey;
  for (const auto &[address, point] : points.all()) {
    Choices choices = choicesOf(address, point, (*this)[address]);
    std::string key = keyOf(choices);
    choicesByKey[key] = choices;
    ++families[inAllBlocks(address)].votes[key];
  }
  RuleList common;
  for (const auto &[glob, family] : families) {
    const auto *most =
        llvm::max_element(family.votes, [](const auto &a, const auto &b) {
          return a.second < b.second;
        });
    common.add(choicesByKey[most->first], glob);
  }
  Plan plan;
  common.appendTo(plan);
  // A glob may match more than its family, and a family differ in what can be
  // decided.
  Rules rules = llvm::cantFail(Rules::compile(plan));
  RuleList exceptions;
  for (const auto &[address, point] : points.all()) {
    Decision said = contraryTo((*this)[address]);
    rules.decide(address, point, said);
    const Decision &decision = (*this)[address];
    Choices choices = choicesOf(address, point, decision);
    if (keyOf(choicesOf(address, point, said)) == keyOf(choices))
      continue;
    // What a family says of places must be taken back.
    if (said.startAfter != decision.startAfter)
      choices.startAfter = decision.startAfter;
    if (said.awaitBefore != decision.awaitBefore)
      choices.awaitBefore = decision.awaitBefore;
    exceptions.add(choices, escaped(address));
  }
  exceptions.appendTo(plan);
  return plan;
}
