//===- DecidedPlan.cpp - Decisions of a solver as a plan ------------------===//
#include "fsdp/Schedule/DecidedPlan.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Schedule/Decisions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace fsdp;
using namespace fsdp::schedule;
using llvm::StringRef;

namespace {

/// An address without the number of its block.
struct AddressPattern {
  std::string before, after;
  bool operator<(const AddressPattern &other) const {
    return std::tie(before, after) < std::tie(other.before, other.after);
  }
};

/// The numbers of blocks, in order.
using Numbers = std::vector<std::string>;

/// Addresses about which the same is decided. One outside of blocks has a
/// pattern without numbers.
using Patterns = llvm::MapVector<AddressPattern, Numbers,
                                 std::map<AddressPattern, unsigned>>;

/// What a plan has to say where `base` is decided already.
class PlanWriter {
public:
  PlanWriter(const problem::Problem &problem, const problem::Candidate &base,
             const problem::Candidate &candidate)
      : problem(problem), base(base), candidate(candidate) {}

  Plan run() {
    for (size_t p = 0; p < problem.programs.size(); ++p) {
      const auto &before = base.programs[p], &after = candidate.programs[p];
      for (problem::Id op = 0; op < before.of.size(); ++op) {
        compare(problem.programs[p].ops[op], before.of[op], after.of[op],
                /*again=*/false);
        compare(problem.programs[p].ops[op], before.again[op], after.again[op],
                /*again=*/true);
      }
    }
    Plan plan;
    for (const auto &[text, rule] : rules) {
      plan.rules.push_back(rule.first);
      for (const auto &[pattern, numbers] : rule.second)
        plan.rules.back().match.push_back(globOf(pattern, numbers));
    }
    return plan;
  }

private:
  problem::Decision decisionOf(const problem::Candidate &of,
                               problem::Id number) const {
    return number == problem::kNone ? problem::Decision()
                                    : of.decisions[number];
  }

  void compare(const problem::Op &op, problem::Id before, problem::Id after,
               bool again) {
    Rule rule;
    problem::Decision from = decisionOf(base, before),
                      to = decisionOf(candidate, after);
    // Of a clone that `base` does not have, the rule may decide anything.
    bool isNew = again && before == problem::kNone && after != problem::kNone;
    dist::forEachDecisionField([&](const auto &field) {
      bool mayDiffer = isNew && field.about != dist::DecidedOps::Values &&
                       field.about != dist::DecidedOps::Reductions &&
                       field.domain != dist::FieldDomain::Address;
      if (field.in(from) != field.in(to) || mayDiffer)
        field.in(rule.overrides) = field.in(to);
    });
    if (!saysSomething(rule.overrides))
      return;
    std::string address = addressOf(problem, op, again);
    if (!known.insert(address).second)
      return; // other programs have it too
    // Equal overrides have equal texts.
    auto &[first, patterns] =
        rules.try_emplace(toJSON({{rule}}), rule, Patterns()).first->second;
    auto [pattern, number] = splitAddress(op, address);
    Numbers &numbers = patterns[pattern];
    if (!number.empty())
      numbers.push_back(number);
  }

  /// "fwd layers.3.feed_forward silu" split around "3".
  std::pair<AddressPattern, std::string> splitAddress(const problem::Op &op,
                                                      StringRef address) const {
    if (op.block == problem::kNone)
      return {{escapedGlob(address), ""}, ""};
    StringRef block = problem.text(op.block), number = nn::blockNumberOf(block);
    size_t at = address.find(block) + (number.data() - block.data());
    return {{escapedGlob(address.take_front(at)),
             escapedGlob(address.drop_front(at + number.size()))},
            number.str()};
  }

  static std::string globOf(const AddressPattern &pattern,
                            const Numbers &numbers) {
    if (numbers.empty())
      return pattern.before;
    std::string number = numbers.size() == 1
                             ? numbers.front()
                             : "{" + llvm::join(numbers, ",") + "}";
    return pattern.before + number + pattern.after;
  }

  const problem::Problem &problem;
  const problem::Candidate &base, &candidate;
  llvm::StringSet<> known;
  llvm::MapVector<std::string, std::pair<Rule, Patterns>,
                  std::map<std::string, unsigned>>
      rules;
};

} // namespace

Plan fsdp::schedule::toPlan(const problem::Problem &problem,
                            const problem::Candidate &base,
                            const problem::Candidate &candidate) {
  return PlanWriter(problem, base, candidate).run();
}
