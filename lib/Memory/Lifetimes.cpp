//===- Lifetimes.cpp - When the buffers of a program live -----------------===//
#include "fsdp/Memory/Lifetimes.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Target/Target.h"

using namespace mlir;
using namespace fsdp;

StringRef fsdp::stringifyBufferKind(BufferKind kind) {
  switch (kind) {
  case BufferKind::Activation:
    return "activation";
  case BufferKind::Gathered:
    return "gathered parameter";
  case BufferKind::Gradient:
    return "gradient";
  case BufferKind::Workspace:
    return "workspace";
  }
  return "";
}

/// What an operation does: its kernel, or its mnemonic.
static StringRef workOf(Operation *op) {
  if (auto launch = dyn_cast<exec::LaunchOp>(op))
    return launch.getKernel();
  return op->getName().stripDialect();
}

std::string fsdp::labelOf(Operation *op) {
  if (auto alloc = dyn_cast<exec::AllocOp>(op))
    if (auto label = alloc.getLabel())
      return label->str();
  if (auto collective = dyn_cast<exec::CollectiveOp>(op))
    if (auto serves = collective.getServes())
      return (dist::stringifyCollectiveKind(collective.getKind()) + " for " +
              serves->getText())
          .str();
  StringAttr module = nn::moduleOf(op);
  return module ? nn::labelOf(module, workOf(op))
                : op->getName().getStringRef().str();
}

PackingProblem Lifetimes::problem() const {
  PackingProblem problem;
  problem.alignment = alignment;
  for (const BufferLifetime &buffer : buffers)
    problem.liveRanges.push_back(buffer.live);
  return problem;
}

namespace {

class LifetimeBuilder {
public:
  Lifetimes run(exec::ProgramOp program);

private:
  /// The buffer after `value`, made to live at `position`; null where the
  /// value is a persistent range.
  BufferLifetime *use(Value value, int64_t position);
  void useAll(Operation *op, int64_t position);
  void classify(Operation *op);
  void finish(Operation *source, int64_t position);

  Lifetimes result;
  /// Operations with a token, in order of issue.
  llvm::SetVector<Operation *> inFlight;
  DenseMap<Value, size_t> indexOf;
};

} // namespace

BufferLifetime *LifetimeBuilder::use(Value value, int64_t position) {
  Value root = exec::resolveRange(value).root;
  auto alloc = root.getDefiningOp<exec::AllocOp>();
  if (!alloc)
    return nullptr;
  auto [at, inserted] = indexOf.insert({root, result.buffers.size()});
  if (inserted) {
    int64_t bytes = exec::bytesOf(cast<MemRefType>(root.getType()));
    result.buffers.push_back({alloc, {position, position + 1, bytes}});
  }
  BufferLifetime &buffer = result.buffers[at->second];
  buffer.live.end = std::max(buffer.live.end, position + 1);
  return &buffer;
}

void LifetimeBuilder::useAll(Operation *op, int64_t position) {
  for (Value operand : op->getOperands())
    if (isa<MemRefType>(operand.getType()))
      use(operand, position);
}

/// Marks the buffers of `op` with what its use says about them.
void LifetimeBuilder::classify(Operation *op) {
  int64_t position = result.positions.size() - 1;
  auto mark = [&](ValueRange values, BufferKind kind) {
    for (Value value : values)
      if (BufferLifetime *buffer = use(value, position))
        buffer->kind = kind;
  };
  if (auto collective = dyn_cast<exec::CollectiveOp>(op)) {
    bool isReduction = dist::isReduction(collective.getKind());
    mark(collective.getOutputs(),
         isReduction ? BufferKind::Gradient : BufferKind::Gathered);
    if (isReduction)
      mark(collective.getInputs(), BufferKind::Gradient);
  }
  mark(exec::workspacesOf(op), BufferKind::Workspace);
}

/// `source` is over at `position`, and so is what its stream ran before that
/// nobody awaits.
void LifetimeBuilder::finish(Operation *source, int64_t position) {
  exec::Stream stream = exec::streamOf(source);
  SmallVector<Operation *> over;
  for (Operation *op : inFlight) {
    if (op == source || (op->use_empty() && exec::streamOf(op) == stream))
      over.push_back(op);
    if (op == source)
      break;
  }
  for (Operation *op : over) {
    useAll(op, position);
    inFlight.remove(op);
  }
}

Lifetimes LifetimeBuilder::run(exec::ProgramOp program) {
  for (Operation &op : program.getBody().front()) {
    auto await = dyn_cast<exec::AwaitOp>(op);
    if (!await && !exec::isWork(&op))
      continue;
    int64_t position = result.positions.size();
    result.positions.push_back(&op);
    if (await) {
      finish(await.getToken().getDefiningOp(), position);
      continue;
    }
    useAll(&op, position);
    classify(&op);
    if (op.getNumResults() != 0)
      inFlight.insert(&op);
  }
  // What nobody awaits is in flight until the end.
  for (Operation *op : inFlight)
    useAll(op, result.positions.size() - 1);
  return std::move(result);
}

int64_t fsdp::alignmentOf(ModuleOp module) {
  auto name = module->getAttrOfType<StringAttr>(exec::kTargetAttr);
  const rt::Target *target = name ? rt::findTarget(name.getValue()) : nullptr;
  return target ? target->alignment : exec::kAlignment;
}

Lifetimes fsdp::computeLifetimes(exec::ProgramOp program) {
  Lifetimes lifetimes = LifetimeBuilder().run(program);
  lifetimes.alignment = alignmentOf(program->getParentOfType<ModuleOp>());
  return lifetimes;
}
