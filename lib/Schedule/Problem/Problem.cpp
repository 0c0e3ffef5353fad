//===- Problem.cpp - What a schedule is to be found for -------------------===//
#include "fsdp/Schedule/Problem.h"
#include "fsdp/Target/Target.h"
#include <algorithm>
#include <map>

using namespace fsdp;
using namespace fsdp::problem;

bool KernelRead::operator==(const KernelRead &other) const {
  return operand == other.operand && access == other.access &&
         inReduction == other.inReduction && forResults == other.forResults;
}

bool Kernel::operator==(const Kernel &other) const {
  return rows == other.rows && columns == other.columns &&
         canFuse == other.canFuse && sumsRows == other.sumsRows &&
         isExpensive == other.isExpensive && reads == other.reads &&
         results == other.results;
}

bool Math::operator==(const Math &other) const {
  return kind == other.kind && type == other.type && batch == other.batch &&
         m == other.m && n == other.n && k == other.k &&
         transposeLhs == other.transposeLhs &&
         transposeRhs == other.transposeRhs && flops == other.flops;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

Id Problem::intern(std::string_view text) {
  auto [at, isNew] = numbers.try_emplace(std::string(text), names.size());
  if (isNew)
    names.emplace_back(text);
  return at->second;
}

Id Problem::find(std::string_view text) const {
  auto at = numbers.find(std::string(text));
  return at == numbers.end() ? kNone : at->second;
}

Id Problem::internKernel(const Kernel &kernel) {
  uint64_t hash = uint64_t(kernel.rows) * 1000003 + kernel.columns;
  for (const KernelRead &read : kernel.reads)
    hash = hash * 31 + read.operand * 8 + unsigned(read.access);
  std::vector<Id> &known = kernelsByHash[hash];
  for (Id number : known)
    if (kernels[number] == kernel)
      return number;
  known.push_back(kernels.size());
  kernels.push_back(kernel);
  return known.back();
}

/// Of few that a problem has.
template <typename T>
static Id internIn(std::vector<T> &known, const T &wanted) {
  auto at = std::find(known.begin(), known.end(), wanted);
  if (at == known.end())
    at = known.insert(at, wanted);
  return Id(at - known.begin());
}

Id Problem::internMath(const Math &math) { return internIn(maths, math); }

Id Problem::internGroup(const RankGroup &group) {
  return internIn(groups, group);
}

void Program::linkRegathered(const Op &op) {
  const Op &gather = ops[values[operand(op, 0)].def];
  Collective &repeated = collectives[gather.detail];
  repeated.again = Id(op.detail);
  repeated.shard = op.results.begin;
}

std::string_view fsdp::problem::phaseName(Phase phase) {
  static constexpr std::string_view kNames[] = {"fwd", "again", "bwd",
                                                "update"};
  return kNames[unsigned(phase)];
}

/// "fwd layers.3 ", and only the phase where the path is the root's.
static std::string phaseAndPath(Phase phase, std::string_view path) {
  std::string text(phaseName(phase));
  if (!path.empty())
    (text += ' ') += path;
  return text += ' ';
}

std::string fsdp::problem::addressOf(const Problem &problem, const Op &op,
                                     bool again) {
  std::string_view name = problem.text(op.name);
  if (!op.is(kAddressed))
    return std::string(name);
  std::string text =
      phaseAndPath(again ? Phase::Again : op.phase, problem.text(op.path));
  text += name;
  if (op.index > 1)
    (text += '#') += std::to_string(op.index);
  return text;
}

std::string fsdp::problem::bucketAddressOf(const Problem &problem, const Op &op,
                                           bool again,
                                           const std::string &bucket) {
  return phaseAndPath(again ? Phase::Again : op.phase, bucket) +
         std::string(problem.text(op.name));
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

int64_t fsdp::problem::workspaceOf(const std::string &target,
                                   const Collective &collective,
                                   const std::vector<rt::CollectiveItem> &items,
                                   size_t item) {
  rt::CollectiveDesc desc = {};
  desc.kind = collective.kind;
  desc.reduce = collective.reduce;
  desc.in = collective.in;
  desc.out = collective.out;
  desc.items = static_cast<int32_t>(items.size());
  desc.item = items.data();
  desc.fast = collective.isFast;
  desc.nodeRanks = static_cast<int32_t>(collective.nodeRanks);
  return rt::findTarget(target)->collectiveWorkspaceBytes(
      desc, static_cast<int>(item), collective.ranks);
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

namespace {

/// The structure of a block: its ops, and where what they take comes from.
class BlockText {
public:
  explicit BlockText(const Program &program) : program(program) {}

  /// The ops of a block, in order, as numbers.
  std::vector<int64_t> of(const std::vector<Id> &ops) {
    std::vector<int64_t> text;
    std::map<Id, size_t> number; // of the block's ops
    for (Id op : ops)
      number.try_emplace(op, number.size());
    for (Id index : ops) {
      const Op &op = program.ops[index];
      text.insert(text.end(),
                  {int64_t(op.kind), int64_t(op.phase), int64_t(op.flags),
                   int64_t(op.name), int64_t(op.index), op.flops, op.bytes,
                   op.workspace, int64_t(op.operands.count)});
      if (op.kind != OpKind::Collective && !op.is(kRegathered))
        text.push_back(op.detail);
      else
        text.push_back(program.collective(op).key);
      for (Id i = 0; i < op.operands.count; ++i)
        addOperand(program.operand(op, i), number, text);
      for (Id value = op.results.begin; value < op.results.end(); ++value)
        addResult(value, number, text);
    }
    return text;
  }

private:
  /// Which op of the block produces it, or the bytes and the block kind of what
  /// comes from elsewhere.
  void addOperand(Id value, const std::map<Id, size_t> &number,
                  std::vector<int64_t> &text) {
    const Value &of = program.values[value];
    auto at = of.def == kNone ? number.end() : number.find(of.def);
    if (at != number.end()) {
      text.push_back(int64_t(at->second));
      text.push_back(value - program.ops[of.def].results.begin);
    } else {
      bool isFromBlock = of.def != kNone && program.ops[of.def].block != kNone;
      text.push_back(isFromBlock ? -2 : -1);
      text.push_back(of.bytes);
    }
  }

  /// Bytes, and whether a block or something else uses it: what tells the first
  /// and the last of a class.
  void addResult(Id value, const std::map<Id, size_t> &number,
                 std::vector<int64_t> &text) {
    if (users.empty())
      findUsers();
    text.push_back(program.values[value].bytes);
    int64_t used = 0;
    for (Id user : users[value])
      if (!number.count(user))
        used |= program.ops[user].block != kNone ? 1 : 2;
    text.push_back(used);
  }

  void findUsers() {
    users.resize(program.values.size());
    for (Id number = 0; number < program.ops.size(); ++number)
      for (Id i = 0; i < program.ops[number].operands.count; ++i)
        users[program.operand(program.ops[number], i)].push_back(number);
  }

  const Program &program;
  std::vector<std::vector<Id>> users;
};

} // namespace

std::vector<BlockClass> fsdp::problem::blockClassesOf(const Problem &,
                                                      const Program &program) {
  std::map<Id, std::vector<Id>> opsOf;
  std::vector<Id> blocks; // in order of their first ops
  for (Id number = 0; number < program.ops.size(); ++number) {
    Id block = program.ops[number].block;
    if (block == kNone)
      continue;
    if (opsOf[block].empty())
      blocks.push_back(block);
    opsOf[block].push_back(number);
  }
  BlockText text(program);
  std::map<std::vector<int64_t>, size_t> numbers;
  std::vector<BlockClass> classes;
  for (Id block : blocks) {
    auto [at, isNew] =
        numbers.try_emplace(text.of(opsOf[block]), classes.size());
    if (isNew)
      classes.emplace_back();
    classes[at->second].blocks.push_back(block);
  }
  std::stable_sort(classes.begin(), classes.end(),
                   [](const BlockClass &a, const BlockClass &b) {
                     return a.blocks.size() > b.blocks.size();
                   });
  return classes;
}
