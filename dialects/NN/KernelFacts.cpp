//===- KernelFacts.cpp - What the kernel of an op reads and gives ---------===//
#include "dialects/NN/KernelFacts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace fsdp::nn;

/// Runs a kernel description in a scratch block and notes what it does.
class KernelProbe::Builder : public KernelBuilder {
public:
  explicit Builder(MLIRContext *context) : b(context) {
    anyFloat = scratch.addArgument(b.getF32Type(), loc());
    anyInteger = scratch.addArgument(b.getI32Type(), loc());
    anyLong = scratch.addArgument(b.getI64Type(), loc());
    b.setInsertionPointToEnd(&scratch);
  }

  KernelFacts run(KernelOpInterface op) {
    facts = KernelFacts();
    facts.space = op.getKernelSpace();
    if (facts.space.isExpressible())
      op.lowerToKernel(*this);
    scratch.clear();
    b.setInsertionPointToEnd(&scratch);
    return std::move(facts);
  }

  OpBuilder &builder() override { return b; }
  Location loc() override { return b.getUnknownLoc(); }
  Value read(Value tensor, KernelAccess access) override {
    auto [at, isNew] = facts.reads.insert({tensor, KernelRead()});
    KernelRead &read = at->second;
    read.access = access;
    read.inReduction |= inReduction;
    // Once needed whatever is used, always so.
    bool isAlways = !isNew && read.forResults == 0;
    read.forResults =
        function == 0 || isAlways ? 0 : read.forResults | function;
    Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
    if (isa<FloatType>(element))
      return anyFloat;
    return element.isInteger(64) ? anyLong : anyInteger;
  }
  Value readAt(Value tensor, Value) override {
    // Another column's value cannot be taken from this column's expression.
    facts.space = KernelSpace::notExpressible();
    return read(tensor, KernelAccess::Element);
  }
  Value column() override { return anyInteger; }
  Value reduceColumns(ReduceKind, Scalar element) override {
    inReduction = true;
    element();
    inReduction = false;
    return anyFloat;
  }
  void define(Value result, Scalar element) override {
    facts.results[result] = KernelForm::Element;
    Operation *last = scratch.empty() ? nullptr : &scratch.back();
    evaluate(result, element);
    Block::iterator begin =
        last ? std::next(last->getIterator()) : scratch.begin();
    for (Operation &op : llvm::make_range(begin, scratch.end()))
      facts.expensive |=
          isa<math::ExpOp, math::LogOp, math::TanhOp, math::ErfOp>(op);
  }
  void defineRow(Value result, Value) override {
    facts.results[result] = KernelForm::Row;
  }
  void defineColumns(Value result, ReduceKind, Scalar element) override {
    facts.results[result] = KernelForm::Columns;
    evaluate(result, element);
  }
  Value constant(double value) override {
    return arith::ConstantOp::create(
        b, loc(), b.getF32FloatAttr(static_cast<float>(value)));
  }

private:
  void evaluate(Value result, const Scalar &element) {
    function = uint32_t(1) << cast<OpResult>(result).getResultNumber();
    element();
    function = 0;
  }

  Block scratch;
  OpBuilder b;
  Value anyFloat, anyInteger, anyLong;
  KernelFacts facts;
  bool inReduction = false;
  /// The bit of the result whose function is evaluated.
  uint32_t function = 0;
};

KernelProbe::KernelProbe(MLIRContext *context)
    : builder(std::make_unique<Builder>(context)) {}
KernelProbe::~KernelProbe() = default;

KernelFacts KernelProbe::run(KernelOpInterface op) { return builder->run(op); }
