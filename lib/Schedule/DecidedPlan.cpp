//===- DecidedPlan.cpp - Decisions of a solver as a plan ------------------===//
#include "fsdp/Schedule/DecidedPlan.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Schedule/Decisions.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

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

} // namespace

/// "fwd layers.3.feed_forward silu" split around "3".
static std::pair<AddressPattern, std::string> splitAddress(StringRef block,
                                                           StringRef address) {
  StringRef number = nn::blockNumberOf(block);
  size_t at = address.find(block) + (number.data() - block.data());
  return {{escapedGlob(address.take_front(at)),
           escapedGlob(address.drop_front(at + number.size()))},
          number.str()};
}

static std::string globOf(const AddressPattern &pattern,
                          const Numbers &numbers) {
  std::string number = numbers.size() == 1
                           ? numbers.front()
                           : "{" + llvm::join(numbers, ",") + "}";
  return pattern.before + number + pattern.after;
}

Plan fsdp::schedule::toPlan(const problem::Problem &problem,
                            const problem::RecomputeOptions &options,
                            const std::vector<uint32_t> &choice) {
  const problem::Blocks &blocks = options.blocks;
  const problem::Program &program = problem.programs[blocks.program];
  llvm::MapVector<AddressPattern, Numbers, std::map<AddressPattern, unsigned>>
      numbersOf;
  for (auto [i, block] : llvm::enumerate(blocks.all)) {
    problem::OpSet set = options.sets[blocks.classOf[i]][choice[i]];
    for (auto [bit, op] : llvm::enumerate(block.ops)) {
      if ((set >> bit & 1) == 0)
        continue;
      std::string address = addressOf(problem, program.ops[op]),
                  name(problem.text(block.name));
      auto [pattern, number] = splitAddress(name, address);
      numbersOf[pattern].push_back(number);
    }
  }
  llvm::MapVector<Numbers, Rule, std::map<Numbers, unsigned>> rules;
  for (const auto &[pattern, numbers] : numbersOf) {
    Rule &rule = rules[numbers];
    rule.match.push_back(globOf(pattern, numbers));
    rule.overrides.recompute = true;
  }
  Plan plan;
  for (auto &entry : rules)
    plan.rules.push_back(std::move(entry.second));
  return plan;
}
