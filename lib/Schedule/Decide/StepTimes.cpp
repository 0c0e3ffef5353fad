//===- StepTimes.cpp - How long the steps of a sequence compute -----------===//
#include "fsdp/Schedule/StepTimes.h"
#include <cmath>

using namespace fsdp;
using namespace fsdp::problem;

/// The type of elements of `bytes` bytes each, as products of sizes give them.
static MathType typeOf(double bytes) {
  return bytes > 3 ? MathType::F32 : MathType::BF16;
}

/// A product of two matrices has 2 m n k flops, and its three matrices mk, kn
/// and mn elements: sizes and bytes of an element follow.
static Duration matmulTime(const Program &program, const Op &op,
                           const CostModel &cost) {
  auto bytesOf = [&](Id value) {
    return static_cast<double>(program.values[value].bytes);
  };
  double a = bytesOf(program.operand(op, 0)),
         b = bytesOf(program.operand(op, 1)), out = bytesOf(op.results.begin),
         products = static_cast<double>(op.flops) / 2;
  double element = std::cbrt(a * b * out / (products * products));
  auto size = [&](double square) {
    auto whole = std::llround(std::sqrt(square / element));
    return static_cast<int64_t>(std::max(whole, 1LL));
  };
  return cost.matmul(1, size(a * out / b), size(b * out / a), size(a * b / out),
                     typeOf(element));
}

static Duration opTime(const Problem &problem, const Program &program,
                       const Op &op, const CostModel &cost) {
  std::string_view name = problem.text(op.name);
  double element = 2; // attention's tensors and its flops do not tell
  if (name == "attention")
    return cost.attention(static_cast<double>(op.flops) / 2, typeOf(element),
                          AttentionPass::Forward);
  if (name == "attention_grad")
    return cost.attention(static_cast<double>(op.flops) / 2, typeOf(element),
                          AttentionPass::Backward);
  return matmulTime(program, op, cost);
}

StepDuration fsdp::problem::stepTimes(const Problem &problem,
                                      const Program &program,
                                      const CostModel &cost) {
  return
      [&problem, &program, cost](const Sequence &sequence, const Step &step) {
        bool computes = step.kind != StepKind::Start &&
                        step.kind != StepKind::Await &&
                        step.collective == CollectiveRole::None;
        if (!computes)
          return Duration();
        if (step.members.count == 1) {
          const Op &op = program.ops[sequence.members[step.members.begin].op];
          if (op.is(kReadByLibrary) && op.flops > 0 && op.operands.count >= 2)
            return cost.launch() + opTime(problem, program, op, cost);
        }
        int64_t bytes = 0;
        for (Id i = 0; i + step.workspaces < step.uses.count; ++i)
          bytes += sequence.buffers[sequence.uses[step.uses.begin + i]].bytes;
        return cost.launch() + cost.memory(bytes);
      };
}
