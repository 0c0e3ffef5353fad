//===- Durations.cpp - How long ops of a problem take ---------------------===//
#include "fsdp/Simulation/Durations.h"
#include "fsdp/Support/CheckedSize.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::problem;
using namespace fsdp::simulation;

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

GroupShape fsdp::simulation::shapeOf(const Problem &problem,
                                     const Collective &collective,
                                     int64_t ranksPerNode) {
  int64_t ranks = collective.ranks, local = std::min(ranks, ranksPerNode);
  if (collective.group != kNone) {
    local = 1;
    for (GroupAxis axis : problem.groups[collective.group])
      local *= std::clamp<int64_t>(ranksPerNode / axis.stride, 1, axis.size);
  }
  int64_t nodes = ceilDiv(ranks, std::max<int64_t>(local, 1));
  while (ranks % nodes != 0)
    ++nodes;
  return {ranks / nodes, nodes};
}

CollectiveCall fsdp::simulation::callOf(const Problem &problem,
                                        const Program &program,
                                        const std::vector<Member> &members,
                                        const Costs &costs) {
  auto collectiveOf = [&](const Member &member) -> const Collective & {
    return program.collective(program.ops[member.op], member.isAgain);
  };
  const Collective &first = collectiveOf(members.front());
  CheckedSize elements = 0;
  for (const Member &member : members) {
    const Collective &collective = collectiveOf(member);
    for (Id i = collective.items.begin; i < collective.items.end(); ++i) {
      const rt::CollectiveItem &item = program.items[i];
      elements += collective.isGather()
                      ? CheckedSize(item.shard) * collective.ranks
                      : CheckedSize(item.full);
    }
  }
  CollectiveCall call;
  call.kind = first.kind;
  call.wireElementBytes = rt::sizeOf(first.in);
  call.bytes =
      std::min((elements * call.wireElementBytes).saturated(), kMaxTensorBytes);
  call.shape =
      shapeOf(problem, first, costs.model.machine().device.ranksPerNode);
  if (first.isFast) {
    call.sums = Sums::Fast;
  } else if (costs.sums || first.nodeRanks <= 1) {
    call.sums = costs.sums.value_or(Sums::Exact);
  } else {
    call.sums = Sums::ExactTwoLevels;
    call.shape = {first.nodeRanks, first.ranks / first.nodeRanks};
  }
  return call;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static MathType typeOf(const Math &math, const CostModel &model) {
  if (math.type != rt::DType::BF16)
    return MathType::F32;
  bool isFp8 = math.kind == MathKind::Product &&
               model.profile().kernels.fp8 != Fp8Recipe::None;
  return isFp8 ? MathType::FP8 : MathType::BF16;
}

static Duration durationOf(const Math &math, const CostModel &model) {
  MathType type = typeOf(math, model);
  if (math.kind == MathKind::Product)
    return math.batch == 0 || math.m == 0 || math.n == 0 || math.k == 0
               ? Duration()
               : model.matmul(math.batch, math.m, math.n, math.k, type,
                              layoutOf(math.transposeLhs, math.transposeRhs));
  return model.attention(static_cast<double>(math.flops), type,
                         math.kind == MathKind::Attention
                             ? AttentionPass::Forward
                             : AttentionPass::Backward,
                         {math.m, math.n, math.k});
}

static Duration kernelOf(int64_t bytes, const CostModel &model,
                         std::string_view name = kPointwiseKernel) {
  return model.memory(bytes, name) + model.launch();
}

/// What a machine file calls a kernel that needs exp or the like.
static const char *expensiveKernel(const Program &program, const Op &op,
                                   const Kernel &kernel) {
  int64_t elements = kernel.rows * kernel.columns;
  for (size_t i = 0; i < kernel.results.size(); ++i)
    if (kernel.results[i] == Form::Element &&
        program.values[op.results.begin + i].bytes == 2 * elements)
      return kExpensiveBF16Kernel;
  return kExpensiveKernel;
}

/// What a machine file calls an op that is a kernel by itself.
static std::string_view kernelNameOf(const Problem &problem,
                                     const Program &program, const Op &op) {
  switch (op.kind) {
  case OpKind::Kernel:
    if (op.is(kNarrows))
      return kNarrowKernel;
    if (const Kernel &kernel = problem.kernels[op.detail]; kernel.isExpensive)
      return expensiveKernel(program, op, kernel);
    return kPointwiseKernel;
  case OpKind::Work:
    // Machines are calibrated with the ops that these two do at once.
    if (problem.text(op.name) == "split_heads" ||
        problem.text(op.name) == "join_heads")
      return "rotary";
    return problem.text(op.name);
  case OpKind::Update:
    return kUpdateKernel;
  case OpKind::Box:
  case OpKind::Pad:
  case OpKind::Join:
  case OpKind::Clear:
    return kCopyKernel;
  default:
    return kPointwiseKernel;
  }
}

/// The same of a step of a sequence.
static std::string_view kernelNameOf(const Problem &problem,
                                     const Program &program,
                                     const Sequence &sequence,
                                     const Step &step) {
  if (step.kind == StepKind::Copy)
    return kCopyKernel;
  if (step.kind == StepKind::Narrow)
    return kNarrowKernel;
  std::string_view name = kPointwiseKernel;
  for (Id i = step.members.begin; i < step.members.end(); ++i) {
    std::string_view each =
        kernelNameOf(problem, program, program.ops[sequence.members[i].op]);
    if (step.members.count == 1 || each == kExpensiveKernel ||
        each == kExpensiveBF16Kernel)
      name = each;
  }
  return name;
}

static bool isWork(OpKind kind) {
  switch (kind) {
  case OpKind::Box:
  case OpKind::Kernel:
  case OpKind::Work:
  case OpKind::AddProduct:
  case OpKind::Pad:
  case OpKind::Join:
  case OpKind::Collective:
  case OpKind::Accumulate:
  case OpKind::Clear:
  case OpKind::Update:
    return true;
  case OpKind::Constant:
  case OpKind::Seed:
  case OpKind::Read:
  case OpKind::View:
  case OpKind::Gradient:
  case OpKind::Write:
  case OpKind::Return:
    return false;
  }
  return false;
}

Duration fsdp::simulation::durationOf(const Problem &problem,
                                      const Program &program, Id number,
                                      const Costs &costs) {
  const Op &op = program.ops[number];
  if (op.kind == OpKind::Collective)
    return costs.model.collective(callOf(problem, program, {{number}}, costs));
  if (!isWork(op.kind) || (op.kind == OpKind::Box && op.detail >= 0) ||
      op.is(problem::kAdjacent))
    return Duration();
  if (op.math != kNone)
    return ::durationOf(problem.maths[op.math], costs.model) +
           costs.model.launch();
  return kernelOf(op.bytes, costs.model, kernelNameOf(problem, program, op));
}

/// Where a kernel has several ops and the software does not join them.
static Duration eachAlone(const Problem &problem, const Program &program,
                          const Sequence &sequence, const Step &step,
                          const CostModel &model) {
  Duration all;
  for (Id i = step.members.begin; i < step.members.end(); ++i) {
    const Op &op = program.ops[sequence.members[i].op];
    all += kernelOf(op.bytes, model, kernelNameOf(problem, program, op));
  }
  return all;
}

Duration fsdp::simulation::durationOf(const Problem &problem,
                                      const Program &program,
                                      const Sequence &sequence,
                                      const Step &step, const Costs &costs) {
  const CostModel &model = costs.model;
  if (step.kind == StepKind::Await)
    return Duration();
  if (step.collective != CollectiveRole::None) {
    auto members = sequence.members.begin();
    return model.collective(callOf(
        problem, program,
        {members + step.members.begin, members + step.members.end()}, costs));
  }
  bool isEager = model.profile().kernels.pointwise == PointwiseKernels::Eager;
  if (step.members.count > 1 && isEager)
    return eachAlone(problem, program, sequence, step, model);
  if (step.bytes != 0 || step.members.count == 0)
    return kernelOf(step.bytes, model,
                    kernelNameOf(problem, program, sequence, step));
  Id number = sequence.members[step.members.begin].op;
  const Op &op = program.ops[number];
  // A step for each of several tensors.
  if (op.kind == OpKind::Clear)
    return kernelOf(op.bytes / std::max<int64_t>(op.states.count, 1), model,
                    kCopyKernel);
  return durationOf(problem, program, number, costs);
}

//===----------------------------------------------------------------------===//
// Many times
//===----------------------------------------------------------------------===//

size_t StepDurations::Hash::operator()(const std::vector<Id> &ops) const {
  size_t hash = ops.size();
  for (Id op : ops)
    hash = (hash ^ op) * 0x9e3779b97f4a7c15u;
  return hash ^ hash >> 29;
}

StepDurations::StepDurations(const Problem &problem, const Costs &costs)
    : problem(problem), costs(costs), known(problem.programs.size()) {
  for (size_t i = 0; i < known.size(); ++i)
    known[i].ofOp.resize(problem.programs[i].ops.size());
}

Duration StepDurations::of(size_t number, const Sequence &sequence,
                           const Step &step) {
  const Program &program = problem.programs[number];
  if (step.kind == StepKind::Await)
    return Duration();
  if (step.collective != CollectiveRole::None) {
    ops.clear();
    for (Id i = step.members.begin; i < step.members.end(); ++i)
      ops.push_back(sequence.members[i].op);
    // What is gathered again may be gathered from other ranks.
    ops.push_back(sequence.members[step.members.begin].isAgain);
    auto at = known[number].ofCollectives.find(ops);
    if (at != known[number].ofCollectives.end())
      return at->second;
    Duration takes = durationOf(problem, program, sequence, step, costs);
    known[number].ofCollectives.emplace(ops, takes);
    return takes;
  }
  if (step.members.count != 1 || step.bytes != 0)
    return durationOf(problem, program, sequence, step, costs);
  std::optional<Duration> &one =
      known[number].ofOp[sequence.members[step.members.begin].op];
  if (!one)
    one = durationOf(problem, program, sequence, step, costs);
  return *one;
}
