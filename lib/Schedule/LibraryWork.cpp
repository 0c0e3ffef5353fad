//===- LibraryWork.cpp - What libraries compute, and their scratch --------===//
//
// The operation of the runtime that an op will be lowered to is created beside
// the program, with buffers of the right types, and asked.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "fsdp/Schedule/ProblemOf.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

namespace {

/// Creates the operation in a block of its own.
class Scratch {
public:
  explicit Scratch(MLIRContext *context) : b(context) {
    b.setInsertionPointToEnd(&block);
  }

  Value buffer(Type tensor) {
    auto type = cast<RankedTensorType>(tensor);
    return add(MemRefType::get(type.getShape(), type.getElementType()));
  }
  /// All dimensions but the last as one.
  Value matrix(Type tensor) {
    auto type = cast<RankedTensorType>(tensor);
    int64_t columns = type.getShape().back();
    return add(MemRefType::get({type.getNumElements() / columns, columns},
                               type.getElementType()));
  }

  /// As ProgramLowering::lowerAsRecorded does.
  exec::RuntimeOpInterface recorded(Operation *op, OperationName name,
                                    const TargetInfo &target,
                                    const LoweringOptions &options) {
    OperationState work(op->getLoc(), name);
    for (Type type : op->getOperandTypes())
      work.addOperands(buffer(type));
    for (Type type : op->getResultTypes())
      work.addOperands(buffer(type));
    work.addAttribute(
        "operandSegmentSizes",
        b.getDenseI32ArrayAttr(
            {int32_t(op->getNumOperands()), int32_t(op->getNumResults()), 0}));
    work.addAttribute(
        "stream", exec::StreamAttr::get(b.getContext(), exec::Stream::Compute));
    for (StringAttr attribute : name.getAttributeNames())
      if (Attribute value = op->getAttr(attribute))
        work.addAttribute(attribute, value);
    auto call = cast<exec::RuntimeOpInterface>(b.create(work));
    exec::chooseAttention(call, target, options.attention);
    return call;
  }

  exec::RuntimeOpInterface product(Operation *op) {
    return TypeSwitch<Operation *, exec::RuntimeOpInterface>(op)
        .Case([&](nn::LinearOp o) {
          SmallVector<Value> inputs = {matrix(o.getInput().getType()),
                                       buffer(o.getWeight().getType())};
          if (o.getBias())
            inputs.push_back(buffer(o.getBias().getType()));
          return gemm(op, inputs, matrix(o.getType()), false, true);
        })
        .Case([&](nn::LinearInputGradOp o) {
          return gemm(op,
                      {matrix(o.getCotangent().getType()),
                       buffer(o.getWeight().getType())},
                      matrix(o.getType()), false, false);
        })
        .Case([&](nn::LinearWeightGradOp o) -> exec::RuntimeOpInterface {
          Value dy = matrix(o.getCotangent().getType()),
                x = matrix(o.getInput().getType()), out = buffer(o.getType());
          if (!o.getSum())
            return gemm(op, {dy, x}, out, true, false);
          return gemmAdd(op, dy, x, out);
        })
        .Case([&](nn::AccumulateProductOp o) {
          return gemmAdd(op, matrix(o.getCotangent().getType()),
                         matrix(o.getInput().getType()),
                         buffer(o.getProductType()));
        })
        .Case([&](nn::MatmulOp o) {
          return gemm(
              op, {buffer(o.getLhs().getType()), buffer(o.getRhs().getType())},
              buffer(o.getType()), o.getTransposeLhs(), o.getTransposeRhs());
        })
        .Default(nullptr);
  }

private:
  Value add(MemRefType type) {
    return block.addArgument(type, b.getUnknownLoc());
  }

  exec::RuntimeOpInterface gemm(Operation *op, ValueRange inputs, Value out,
                                bool transposeLhs, bool transposeRhs) {
    return cast<exec::RuntimeOpInterface>(
        exec::GemmOp::create(b, op->getLoc(), exec::Stream::Compute, inputs,
                             out, /*workspaces=*/ValueRange(), transposeLhs,
                             transposeRhs)
            .getOperation());
  }

  exec::RuntimeOpInterface gemmAdd(Operation *op, Value dy, Value x,
                                   Value sum) {
    return cast<exec::RuntimeOpInterface>(
        exec::GemmAddOp::create(b, op->getLoc(), exec::Stream::Compute,
                                ValueRange{dy, x, sum}, sum,
                                /*workspaces=*/ValueRange(),
                                /*transposeLhs=*/true, /*transposeRhs=*/false)
            .getOperation());
  }

  Block block;
  OpBuilder b;
};

} // namespace

static problem::Math mathOf(const rt::GemmDesc &product) {
  problem::Math math;
  math.type = product.in;
  math.batch = product.batch;
  math.m = product.m;
  math.n = product.n;
  math.k = product.k;
  math.transposeLhs = product.transposeLhs;
  math.transposeRhs = product.transposeRhs;
  return math;
}

static problem::Math mathOf(problem::MathKind kind,
                            const rt::AttentionDesc &attention,
                            nn::CostOpInterface op) {
  problem::Math math;
  math.kind = kind;
  math.type = attention.type;
  math.batch = attention.batch * attention.heads;
  math.m = attention.qLen;
  math.n = attention.kvLen;
  math.k = attention.headDim;
  math.flops = op.getVisibleFlops();
  return math;
}

static std::optional<problem::Math> mathOf(Operation *work, Operation *op) {
  using Result = std::optional<problem::Math>;
  return TypeSwitch<Operation *, Result>(work)
      .Case<exec::GemmOp, exec::GemmAddOp>([](auto product) -> Result {
        return mathOf(product.getDescriptor());
      })
      .Case([&](exec::AttentionOp o) -> Result {
        return mathOf(problem::MathKind::Attention, o.getDescriptor(),
                      cast<nn::CostOpInterface>(op));
      })
      .Case([&](exec::AttentionGradOp o) -> Result {
        return mathOf(problem::MathKind::AttentionGradient, o.getDescriptor(),
                      cast<nn::CostOpInterface>(op));
      })
      .Default(std::nullopt);
}

FailureOr<LibraryWork> fsdp::schedule::libraryWorkOf(
    Operation *op, const exec::RecordedLowerings &recorded,
    const TargetInfo &target, const LoweringOptions &options) {
  Scratch scratch(op->getContext());
  exec::RuntimeOpInterface work;
  if (std::optional<OperationName> name = recorded.of(op))
    work = scratch.recorded(op, *name, target, options);
  else if (op->hasTrait<nn::MatrixProduct>())
    work = scratch.product(op);
  LibraryWork needs;
  if (!work)
    return needs;
  for (int64_t each : work.getWorkspaceBytes(target, op)) {
    if (each < 0 || each > kMaxTensorBytes)
      return op->emitError("is too large for the library of this target");
    needs.workspaceBytes += each;
  }
  needs.math = mathOf(work, op);
  return needs;
}
