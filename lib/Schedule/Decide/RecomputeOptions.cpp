//===- RecomputeOptions.cpp - What recomputing costs and saves ------------===//
#include "fsdp/Schedule/RecomputeOptions.h"
#include "BlockMeasure.h"
#include "fsdp/Schedule/ProblemEvaluator.h"
#include "fsdp/Schedule/StepTimes.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/LeasePool.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <map>
#include <set>

using namespace fsdp;
using namespace fsdp::problem;

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static Id seedOf(const Program &program) {
  for (Id number = 0; number < program.ops.size(); ++number)
    if (program.ops[number].kind == OpKind::Seed)
      return number;
  return kNone;
}

namespace {

/// Where the values of a program are used, seen through moves of elements.
class Users {
public:
  explicit Users(const Program &program)
      : program(program), seed(seedOf(program)), of(program.values.size()) {
    for (Id number = 0; number < program.ops.size(); ++number)
      for (Id i = 0; i < program.ops[number].operands.count; ++i)
        of[program.operand(program.ops[number], i)].push_back(number);
  }

  bool hasSeed() const { return seed != kNone; }
  bool isForward(Id op) const { return op < seed; }

  /// Calls `visit` with every op that computes with what `op` gives.
  template <typename Visit> void visit(Id op, Visit visit) const {
    const Span &results = program.ops[op].results;
    for (Id value = results.begin; value < results.end(); ++value)
      for (Id user : of[value]) {
        OpKind kind = program.ops[user].kind;
        if (isForward(user) && program.ops[user].is(kMovesElements))
          this->visit(user, visit);
        else if (isForward(user) ||
                 (kind != OpKind::Seed && kind != OpKind::Return))
          visit(user);
      }
  }

private:
  const Program &program;
  Id seed;
  std::vector<std::vector<Id>> of;
};

} // namespace

/// Whether a plan may decide to compute `number` again and nothing but its
/// block would notice.
static bool staysInBlock(const Program &program, const Users &users,
                         Id number) {
  const Op &op = program.ops[number];
  if (op.block == kNone || !op.is(kCanRecompute) ||
      op.kind == OpKind::Collective || !users.isForward(number))
    return false;
  bool stays = true;
  users.visit(number, [&](Id user) {
    stays &= !users.isForward(user) || program.ops[user].block == op.block;
  });
  return stays;
}

Blocks fsdp::problem::blocksOf(const Problem &problem, size_t number) {
  const Program &program = problem.programs[number];
  Users users(program);
  Blocks blocks;
  blocks.program = number;
  std::map<Id, size_t> at;
  for (Id op = 0; op < program.ops.size() && users.isForward(op); ++op) {
    Id block = program.ops[op].block;
    if (block == kNone)
      continue;
    if (at.try_emplace(block, blocks.all.size()).second)
      blocks.all.push_back({block, {}});
    if (staysInBlock(program, users, op))
      blocks.all[at[block]].ops.push_back(op);
  }
  blocks.classOf.resize(blocks.all.size());
  std::vector<BlockClass> classes = blockClassesOf(problem, program);
  for (uint32_t i = 0; i < classes.size(); ++i)
    for (Id name : classes[i].blocks)
      if (auto found = at.find(name); found != at.end())
        blocks.classOf[found->second] = i;
  for (const Block &block : blocks.all)
    if (block.ops.size() > 64)
      throw Error("block '" + std::string(problem.text(block.name)) + "' has " +
                  std::to_string(block.ops.size()) +
                  " values that may be computed again, and at most 64 can be "
                  "decided about; decide by rule (compile.plan = \"rule\")");
  return blocks;
}

std::optional<size_t>
fsdp::problem::trainedProgram(const Problem &problem,
                              const Candidate &candidate) {
  std::optional<size_t> found;
  int64_t most = -1;
  for (size_t i = 0; i < problem.programs.size(); ++i) {
    if (seedOf(problem.programs[i]) == kNone)
      continue;
    int64_t peak = live(problem, order(problem, candidate, i)).peak;
    if (peak > most) {
      found = i;
      most = peak;
    }
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Sets
//===----------------------------------------------------------------------===//

namespace {

/// The different sets of a block's ops.
class SetsOfBlock {
public:
  SetsOfBlock(const Program &program, const Users &users, const Block &block)
      : program(program), block(block) {
    std::map<Id, size_t> at;
    for (Id op : block.ops)
      at.try_emplace(op, at.size());
    isUsed.resize(block.ops.size());
    usedBy.resize(block.ops.size());
    for (size_t i = 0; i < block.ops.size(); ++i) {
      groups.push_back(OpSet(1) << i);
      users.visit(block.ops[i], [&](Id user) {
        auto found = at.find(user);
        if (!users.isForward(user))
          isUsed[i] = true;
        else if (found != at.end())
          usedBy[i] |= OpSet(1) << found->second;
      });
    }
  }

  std::vector<OpSet> all() {
    dropUnused();
    while (groups.size() > kMostGroups)
      joinSmallest();
    std::set<OpSet> different;
    for (OpSet choice = 0; choice < OpSet(1) << groups.size(); ++choice) {
      OpSet set = 0;
      for (size_t i = 0; i < groups.size(); ++i)
        if (choice >> i & 1)
          set |= groups[i];
      different.insert(effective(set));
    }
    return {different.begin(), different.end()};
  }

private:
  /// Sets are tried one by one.
  static constexpr size_t kMostGroups = 14;

  /// What of `set` something of the backward pass or of `set` uses again.
  OpSet effective(OpSet set) const {
    for (size_t i = block.ops.size(); i-- > 0;)
      if (!isUsed[i] && (usedBy[i] & set) == 0)
        set &= ~(OpSet(1) << i);
    return set;
  }

  /// What is not effective even when all is computed again never is.
  void dropUnused() {
    OpSet everything = 0;
    for (OpSet group : groups)
      everything |= group;
    everything = effective(everything);
    groups.erase(
        std::remove_if(groups.begin(), groups.end(),
                       [&](OpSet group) { return (group & everything) == 0; }),
        groups.end());
  }

  int64_t bytesOf(OpSet set) const {
    int64_t bytes = 0;
    for (size_t i = 0; i < block.ops.size(); ++i)
      if (set >> i & 1) {
        const Span &results = program.ops[block.ops[i]].results;
        for (Id value = results.begin; value < results.end(); ++value)
          bytes += program.values[value].bytes;
      }
    return bytes;
  }

  /// The smallest values are decided about together with what uses them, or
  /// with their neighbours.
  void joinSmallest() {
    size_t smallest = 0;
    for (size_t i = 1; i < groups.size(); ++i)
      if (bytesOf(groups[i]) < bytesOf(groups[smallest]))
        smallest = i;
    OpSet users = 0;
    for (size_t i = 0; i < block.ops.size(); ++i)
      if (groups[smallest] >> i & 1)
        users |= usedBy[i];
    size_t other = smallest + 1 < groups.size() ? smallest + 1 : smallest - 1;
    for (size_t i = groups.size(); i-- > 0;)
      if (i != smallest && (groups[i] & users))
        other = i;
    groups[other] |= groups[smallest];
    groups.erase(groups.begin() + static_cast<std::ptrdiff_t>(smallest));
  }

  const Program &program;
  const Block &block;
  std::vector<bool> isUsed;  // in the backward pass
  std::vector<OpSet> usedBy; // of the block, in the forward pass
  std::vector<OpSet> groups; // decided about together
};

} // namespace

//===----------------------------------------------------------------------===//
// Candidates
//===----------------------------------------------------------------------===//

/// Ops by their address, of every program with a backward pass.
static std::map<std::string, std::vector<OpOfProgram>>
recomputableOps(const Problem &problem) {
  std::map<std::string, std::vector<OpOfProgram>> found;
  for (size_t number = 0; number < problem.programs.size(); ++number) {
    const Program &program = problem.programs[number];
    for (Id op = 0; op < program.ops.size(); ++op)
      if (program.ops[op].is(kCanRecompute))
        found[addressOf(problem, program.ops[op])].push_back({number, op});
  }
  return found;
}

static void recomputeOp(Candidate &candidate, size_t program, Id op) {
  Id &decided = candidate.programs[program].of[op];
  Decision decision =
      decided == kNone ? Decision() : candidate.decisions[decided];
  decision.recompute = true;
  decided = candidate.add(decision);
}

static void recomputeSet(Candidate &candidate, size_t program,
                         const Block &block, OpSet set) {
  for (size_t i = 0; i < block.ops.size(); ++i)
    if (set >> i & 1)
      recomputeOp(candidate, program, block.ops[i]);
}

static void findPlaces(const Problem &problem, RecomputeOptions &options) {
  const Program &program = problem.programs[options.blocks.program];
  auto ops = recomputableOps(problem);
  for (const Block &block : options.blocks.all) {
    auto &places = options.places.emplace_back();
    for (Id op : block.ops)
      places.push_back(ops[addressOf(problem, program.ops[op])]);
  }
}

Candidate
fsdp::problem::withRecomputation(const Candidate &base,
                                 const RecomputeOptions &options,
                                 const std::vector<uint32_t> &choice) {
  Candidate candidate = base;
  Id undecided = kNone;
  std::vector<Id> again(base.decisions.size(), kNone);
  auto decide = [&](Id &decided) {
    if (decided != kNone && decided >= again.size())
      return; // by another op of the same address
    Id &known = decided == kNone ? undecided : again[decided];
    if (known == kNone) {
      Decision decision =
          decided == kNone ? Decision() : base.decisions[decided];
      decision.recompute = true;
      known = candidate.add(decision);
    }
    decided = known;
  };
  const Blocks &blocks = options.blocks;
  for (size_t i = 0; i < blocks.all.size(); ++i) {
    OpSet set = options.sets[blocks.classOf[i]][choice[i]];
    for (size_t bit = 0; bit < blocks.all[i].ops.size(); ++bit)
      if (set >> bit & 1)
        for (OpOfProgram place : options.places[i][bit])
          decide(candidate.programs[place.program].of[place.op]);
  }
  return candidate;
}

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

namespace {

class OptionFinder {
public:
  OptionFinder(const Problem &problem, const Candidate &base, Blocks blocks,
               const CostModel &cost, int threads)
      : problem(problem), program(problem.programs[blocks.program]), base(base),
        users(program), threads(threads),
        measurers([this, &cost, number = blocks.program] {
          return std::make_unique<Measurer>(this->problem, number, cost);
        }) {
    options.blocks = std::move(blocks);
    uint32_t classes = 0;
    for (uint32_t number : options.blocks.classOf)
      classes = std::max(classes, number + 1);
    members.resize(classes);
    for (uint32_t i = 0; i < options.blocks.classOf.size(); ++i)
      members[options.blocks.classOf[i]].push_back(i);
    auto isSmaller = [](const auto &one, const auto &other) {
      return one.size() < other.size();
    };
    options.common = static_cast<uint32_t>(
        std::max_element(members.begin(), members.end(), isSmaller) -
        members.begin());
    options.sets.resize(classes);
    options.chain.classes.resize(classes);
    options.chain.classOf = options.blocks.classOf;
    findPlaces(problem, options);
  }

  RecomputeOptions run() {
    measureBase();
    // Classes come with most members first; those that differ in what is around
    // them alone are measured with what is left of the first one's sets.
    std::map<std::vector<Id>, size_t> firstWith;
    for (size_t number = 0; number < members.size(); ++number) {
      if (members[number].empty())
        continue;
      const Block &block = options.blocks.all[members[number].front()];
      std::vector<Id> names;
      for (Id op : block.ops) {
        names.push_back(program.ops[op].name);
        names.push_back(program.ops[op].index);
      }
      auto [at, isFirst] = firstWith.try_emplace(names, number);
      measureClass(number, isFirst ? SetsOfBlock(program, users, block).all()
                                   : optionsOf(at->second));
    }
    return std::move(options);
  }

private:
  /// What a thread measures with.
  struct Measurer {
    Measurer(const Problem &problem, size_t program, const CostModel &cost)
        : evaluator(problem), duration(stepTimes(problem, program, cost)) {}

    Evaluator evaluator;
    StepDuration duration;
  };

  BlockMeasure measure(const Candidate &candidate) {
    LeasePool<Measurer>::Lease with(measurers);
    size_t number = options.blocks.program;
    const Sequence &sequence = with->evaluator.order(candidate, number);
    if (!sequence.refusal.empty())
      throw Error("the decisions cannot be applied: " + sequence.refusal);
    return measureBlocks(problem, options.blocks, sequence,
                         with->evaluator.live(number), with->duration);
  }

  void measureBase() {
    BlockMeasure measured = measure(base);
    options.chain.beside = measured.beside;
    options.chain.loss = measured.loss;
    options.chain.fixed = measured.fixed;
  }

  std::vector<OpSet> optionsOf(size_t number) const {
    std::vector<OpSet> sets = options.sets[number];
    sets.resize(options.chain.classes[number].size());
    return sets;
  }

  void measureClass(size_t number, const std::vector<OpSet> &sets) {
    const std::vector<uint32_t> &blocks = members[number];
    std::vector<BlockOption> measured(sets.size());
    size_t atOnce = blocks.size();
    parallelFor((sets.size() + atOnce - 1) / atOnce, threads, [&](size_t part) {
      size_t begin = part * atOnce;
      size_t count = std::min(atOnce, sets.size() - begin);
      Candidate candidate = base;
      for (size_t i = 0; i < count; ++i)
        recomputeSet(candidate, options.blocks.program,
                     options.blocks.all[blocks[i]], sets[begin + i]);
      BlockMeasure all = measure(candidate);
      for (size_t i = 0; i < count; ++i)
        measured[begin + i] = all.blocks[blocks[i]];
    });
    for (uint32_t kept : undominated(measured)) {
      options.sets[number].push_back(sets[kept]);
      options.chain.classes[number].push_back(measured[kept]);
    }
    if (number == options.common)
      addSlower(sets, measured);
  }

  /// Those that need the bytes of an option, and longer by at most one part in
  /// kSlower.
  void addSlower(const std::vector<OpSet> &sets,
                 const std::vector<BlockOption> &measured) {
    std::vector<OpSet> &all = options.sets[options.common];
    const std::vector<BlockOption> &known =
        options.chain.classes[options.common];
    for (size_t i = 0; i < sets.size(); ++i)
      for (uint32_t option = 0; option < known.size(); ++option) {
        const BlockOption &like = known[option];
        if (measured[i].keep != like.keep || measured[i].work != like.work ||
            sets[i] == all[option] ||
            like.time + like.time / kSlower < measured[i].time)
          continue;
        all.push_back(sets[i]);
        options.slower.push_back(
            {option, Duration::ofPicoseconds(measured[i].time.picoseconds() -
                                             like.time.picoseconds())});
        break;
      }
  }

  static constexpr int64_t kSlower = 200;

  const Problem &problem;
  const Program &program;
  const Candidate &base;
  Users users;
  const int threads;
  LeasePool<Measurer> measurers;
  std::vector<std::vector<uint32_t>> members; // blocks of each class
  RecomputeOptions options;
};

} // namespace

RecomputeOptions fsdp::problem::recomputeOptions(const Problem &problem,
                                                 const Candidate &base,
                                                 Blocks blocks,
                                                 const CostModel &cost,
                                                 int threads) {
  if (blocks.all.empty())
    throw Error(
        "program @" +
        std::string(problem.text(problem.programs[blocks.program].name)) +
        " has no blocks whose values could be computed again; decide "
        "by rule (compile.plan = \"rule\")");
  return OptionFinder(problem, base, std::move(blocks), cost, threads).run();
}

//===----------------------------------------------------------------------===//
// All blocks alike
//===----------------------------------------------------------------------===//

using Names = std::set<std::string>;

/// What a set computes again, by names that other blocks have too:
/// ".attention.wq linear#0".
static Names namesOf(const Problem &problem, const Program &program,
                     const Block &block, OpSet set) {
  Names names;
  for (size_t bit = 0; bit < block.ops.size(); ++bit)
    if (set >> bit & 1) {
      const Op &op = program.ops[block.ops[bit]];
      std::string name(
          problem.text(op.path).substr(problem.text(block.name).size()));
      names.insert(name.append(" ").append(problem.text(op.name)) + "#" +
                   std::to_string(op.index));
    }
  return names;
}

std::vector<std::vector<uint32_t>>
problem::uniformChoices(const Problem &problem, const RecomputeOptions &options,
                        const std::vector<uint32_t> &sets) {
  const Program &program = problem.programs[options.blocks.program];
  const std::vector<uint32_t> &classOf = options.chain.classOf;
  std::vector<const Block *> blockOf(options.sets.size()); // the first
  std::vector<std::vector<Names>> known(options.sets.size());
  for (size_t i = 0; i < classOf.size(); ++i) {
    uint32_t kind = classOf[i];
    if (blockOf[kind])
      continue;
    blockOf[kind] = &options.blocks.all[i];
    for (size_t j = 0; j < options.chain.classes[kind].size(); ++j)
      known[kind].push_back(
          namesOf(problem, program, *blockOf[kind], options.sets[kind][j]));
  }
  auto nearest = [](const std::vector<Names> &others, const Names &names) {
    std::vector<size_t> differing;
    for (const Names &other : others) {
      Names all = names;
      all.insert(other.begin(), other.end());
      // Each side has `all` but for what the other one has alone.
      differing.push_back(2 * all.size() - names.size() - other.size());
    }
    return static_cast<uint32_t>(
        std::min_element(differing.begin(), differing.end()) -
        differing.begin());
  };
  std::vector<std::vector<uint32_t>> choices;
  for (uint32_t set : sets) {
    Names names = namesOf(problem, program, *blockOf[options.common],
                          options.sets[options.common][set]);
    std::vector<uint32_t> ofClass;
    for (const std::vector<Names> &others : known)
      ofClass.push_back(others.empty() ? 0 : nearest(others, names));
    ofClass[options.common] = set;
    std::vector<uint32_t> &choice = choices.emplace_back();
    for (uint32_t kind : classOf)
      choice.push_back(ofClass[kind]);
  }
  return choices;
}
