//===- Program.cpp - A schedule as steps with costs -----------------------===//
#include "fsdp/Schedule/Program.h"
#include "dialects/Fsdp/Placement.h"
#include "fsdp/Schedule/Address.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

namespace {

/// Builds the steps of one program.
class StepMaker {
public:
  StepMaker(func::FuncOp program, dist::MeshOp mesh,
            const nn::AdjacentReads &adjacent)
      : body(program.getBody().front()), mesh(mesh), adjacent(adjacent),
        addresses(body) {}

  std::vector<Step> run() {
    for (Operation &op : body)
      if (!op.hasTrait<OpTrait::IsTerminator>())
        add(op);
    return std::move(steps);
  }

private:
  void add(Operation &op) {
    unsigned number = steps.size();
    Step &step = steps.emplace_back();
    llvm::SetVector<unsigned> needs;
    if (auto async = dyn_cast<dist::AsyncOp>(op))
      describeStart(async, step, needs);
    else if (auto await = dyn_cast<dist::AwaitOp>(op))
      describeWait(await, step, needs);
    else
      describe(op, step, needs);
    followState(op, number, needs);
    for (Value result : op.getResults())
      makers[result] = number;
    step.needs.assign(needs.begin(), needs.end());
    llvm::sort(step.needs);
  }

  void needOperands(Operation &op, llvm::SetVector<unsigned> &needs) {
    for (Value operand : op.getOperands())
      if (auto it = makers.find(operand); it != makers.end())
        needs.insert(it->second);
  }

  void describe(Operation &op, Step &step, llvm::SetVector<unsigned> &needs) {
    name(op, step);
    needOperands(op, needs);
    if (auto fusion = dyn_cast<nn::FusionOp>(op)) {
      for (auto inner : fusion.getBody().getOps<nn::CostOpInterface>())
        step.flops += inner.getFlops();
      step.bytes = nn::bytesOfOperandsAndResults(&op) + bytesOfBlocks(fusion);
    } else if (auto cost = dyn_cast<nn::CostOpInterface>(op)) {
      step.flops = cost.getFlops();
      auto join = dyn_cast<nn::ConcatOp>(op);
      step.bytes = join && adjacent.groupOf(join) ? 0 : cost.getBytes();
    }
    describeCollective(op, step);
  }

  /// Sums of blocks of rows are written, and read by the kernel that adds them.
  static int64_t bytesOfBlocks(nn::FusionOp fusion) {
    nn::KernelSpace space = fusion.getKernelSpace();
    int64_t elements = 0;
    for (auto kernel : fusion.getBody().getOps<nn::KernelOpInterface>())
      if (kernel.getKernelSpace().columnReduction && !space.columnReduction &&
          !kernel->use_empty())
        elements += space.blockElements();
    return 2 * elements * int64_t(sizeof(float));
  }

  void describeCollective(Operation &op, Step &step) {
    auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
    if (!collective)
      return;
    step.bytes = nn::bytesOfOperandsAndResults(&op);
    step.wireBytes = collective.getWireBytes(
        mesh.sizeOf(dist::axisRefs(collective.getAxes())));
  }

  /// A collective in flight; what its body awaits comes before it.
  void describeStart(dist::AsyncOp async, Step &step,
                     llvm::SetVector<unsigned> &needs) {
    for (auto await : async.getBody().getOps<dist::AwaitOp>()) {
      needs.insert(makers.lookup(await.getFuture()));
      for (Value result : await.getResults())
        makers[result] = makers.lookup(await.getFuture());
    }
    Operation *started = async.getInnerOp();
    name(*started, step);
    step.where = cast<dist::InFlightOpInterface>(started).getStreamRole() ==
                         dist::StreamRole::Gather
                     ? Where::Gather
                     : Where::Reduce;
    needOperands(*started, needs);
    describeCollective(*started, step);
  }

  void describeWait(dist::AwaitOp await, Step &step,
                    llvm::SetVector<unsigned> &needs) {
    unsigned start = makers.lookup(await.getFuture());
    needs.insert(start);
    step.name = "await " + steps[start].name;
  }

  static std::string kindOf(Operation &op) {
    if (op.hasTrait<nn::MatrixProduct>())
      return "matmul";
    if (isa<nn::FusionOp, nn::KernelOpInterface>(op))
      return "kernel";
    StringRef mnemonic = op.getName().stripDialect();
    mnemonic.consume_back("_grad");
    return mnemonic.str();
  }

  void name(Operation &op, Step &step) {
    step.kind = kindOf(op);
    auto add = [&](Operation &named) {
      dist::OriginAttr origin = addresses.of(&named);
      if (!origin)
        return;
      step.name += (step.origin ? ", " : "") + origin.getText().str();
      step.origin = step.origin ? step.origin : origin;
    };
    if (auto fusion = dyn_cast<nn::FusionOp>(op)) {
      llvm::for_each(fusion.getBody().front().without_terminator(), add);
      return;
    }
    add(op);
    if (!step.origin)
      step.name = op.getName().stripDialect();
  }

  /// What the op reads and writes of the model's state.
  void followState(Operation &op, unsigned number,
                   llvm::SetVector<unsigned> &needs) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    if (!effects || isa<dist::CollectiveOpInterface>(op))
      return;
    bool writes = effects.hasEffect<MemoryEffects::Write>();
    if (!writes && !effects.hasEffect<MemoryEffects::Read>())
      return;
    for (NamedAttribute attribute : op.getAttrs())
      attribute.getValue().walk([&](FlatSymbolRefAttr symbol) {
        Accesses &accesses = state[symbol.getValue()];
        if (accesses.write)
          needs.insert(*accesses.write);
        if (!writes)
          return accesses.reads.push_back(number);
        needs.insert(accesses.reads.begin(), accesses.reads.end());
        accesses = {number, {}};
      });
    needs.remove(number);
  }

  /// The last write of a tensor, and its reads since.
  struct Accesses {
    std::optional<unsigned> write;
    SmallVector<unsigned> reads;
  };

  Block &body;
  dist::MeshOp mesh;
  const nn::AdjacentReads &adjacent;
  Addresses addresses;
  std::vector<Step> steps;
  DenseMap<Value, unsigned> makers;
  llvm::StringMap<Accesses> state;
};

} // namespace

std::vector<Step> fsdp::schedule::stepsOf(func::FuncOp program,
                                          dist::MeshOp mesh,
                                          const nn::AdjacentReads &adjacent) {
  return StepMaker(program, mesh, adjacent).run();
}
