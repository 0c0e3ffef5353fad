//===- Differentiate.cpp - Reverse mode over an op interface --------------===//
//
// Clones the forward program as @train, walks it backwards calling each op's
// reverse rule, and renames the original to @evaluate. See Passes.td for the
// order of sums, which is part of the numerical contract. Linear in the
// number of ops.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Passes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace fsdp {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

constexpr llvm::StringLiteral kTrain = "train";
constexpr llvm::StringLiteral kEvaluate = "evaluate";

bool isFloat(Value value) {
  auto type = dyn_cast<ShapedType>(value.getType());
  return type && isa<FloatType>(type.getElementType());
}

/// The reverse pass of one program.
class ReversePass {
public:
  ReversePass(func::FuncOp program, SymbolTable &symbols)
      : body(program.getBody().front()), symbols(symbols) {}

  /// Appends seed, reverse pass and gradients before the terminator.
  LogicalResult run(Value loss) {
    SmallVector<Operation *> forward;
    for (Operation &op : body.without_terminator())
      forward.push_back(&op);
    findActiveValues(forward);
    OpBuilder builder(body.getTerminator());
    nn::ModuleScope scope(builder, nn::moduleOfValue(loss));
    cotangents[loss] =
        nn::SeedOp::create(builder, loss.getLoc(), loss).getCotangent();
    for (Operation *op : llvm::reverse(forward))
      if (failed(reverse(op, builder)))
        return failure();
    return success();
  }

private:
  /// The parameter that `op` reads, if it is trained.
  nn::ParameterOp trainedParameter(Operation *op) {
    auto read = dyn_cast<nn::ReadOp>(op);
    if (!read)
      return {};
    auto parameter =
        symbols.lookup<nn::ParameterOp>(read.getNameAttr().getAttr());
    bool trained = parameter && !parameter->hasAttr(nn::kFrozenAttr);
    return trained ? parameter : nn::ParameterOp();
  }

  /// A value is active if it depends on a trained parameter: only such values
  /// need cotangents.
  void findActiveValues(ArrayRef<Operation *> forward) {
    for (Operation *op : forward) {
      bool source = trainedParameter(op) != nullptr;
      if (source)
        ++readsLeft[cast<nn::ReadOp>(op).getNameAttr().getAttr()];
      else if (llvm::none_of(op->getOperands(),
                             [&](Value v) { return active.contains(v); }))
        continue;
      for (Value result : op->getResults())
        if (isFloat(result))
          active.insert(result);
    }
  }

  LogicalResult reverse(Operation *op, OpBuilder &builder) {
    nn::ModuleScope scope(builder, nn::moduleOf(op));
    if (trainedParameter(op)) {
      finishRead(cast<nn::ReadOp>(op), builder);
      return success();
    }
    SmallVector<Value> resultCotangents;
    for (Value result : op->getResults())
      resultCotangents.push_back(cotangents.lookup(result));
    bool reached = llvm::any_of(resultCotangents, [](Value v) { return v; });
    bool needed = llvm::any_of(op->getOperands(),
                               [&](Value v) { return active.contains(v); });
    if (!reached || !needed)
      return success();
    auto rule = dyn_cast<nn::DifferentiableOpInterface>(op);
    if (!rule)
      return op->emitError("'")
             << op->getName()
             << "' has no reverse rule but lies between a trained parameter "
                "and the loss";
    SmallVector<Value> operandCotangents(op->getNumOperands());
    rule.buildVjp(builder, resultCotangents, operandCotangents);
    // An active op has a gradient; a rule that gives none has said why.
    if (llvm::none_of(operandCotangents,
                      [](Value cotangent) { return cotangent != nullptr; }))
      return failure();
    for (auto [operand, cotangent] :
         llvm::zip(op->getOperands(), operandCotangents))
      if (cotangent && active.contains(operand))
        accumulate(cotangents[operand], cotangent, op->getLoc(), builder);
    return success();
  }

  /// Adds `contribution` to `sum` in order of arrival.
  void accumulate(Value &sum, Value contribution, Location location,
                  OpBuilder &builder) {
    sum = sum ? nn::AddOp::create(builder, location, sum, contribution)
                    .getResult()
              : contribution;
  }

  /// A parameter's gradient is complete at its first read in program order,
  /// the last one met.
  void finishRead(nn::ReadOp read, OpBuilder &builder) {
    StringAttr name = read.getNameAttr().getAttr();
    if (Value cotangent = cotangents.lookup(read.getValue()))
      accumulate(gradients[name], cotangent, read.getLoc(), builder);
    if (--readsLeft[name] > 0)
      return;
    if (Value gradient = gradients.lookup(name))
      nn::GradientOp::create(builder, read.getLoc(), read.getNameAttr(),
                             gradient);
  }

  Block &body;
  SymbolTable &symbols;
  DenseSet<Value> active;
  DenseMap<Value, Value> cotangents;
  DenseMap<StringAttr, unsigned> readsLeft;
  DenseMap<StringAttr, Value> gradients;
};

struct DifferentiatePass : fsdp::impl::DifferentiateBase<DifferentiatePass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    FailureOr<func::FuncOp> forward = findForward(symbols);
    if (failed(forward))
      return signalPassFailure();
    FailureOr<unsigned> loss = findLoss(*forward);
    if (failed(loss))
      return signalPassFailure();

    auto train = cast<func::FuncOp>((*forward)->clone());
    train.setName(kTrain);
    symbols.insert(train, Block::iterator(*forward));
    if (failed(symbols.rename(*forward, kEvaluate)))
      return signalPassFailure();
    keepOnlyResult(train, *loss);
    Operation *terminator = train.getBody().front().getTerminator();
    ReversePass reverse(train, symbols);
    if (failed(reverse.run(terminator->getOperand(0))))
      return signalPassFailure();
    eraseDeadOps(train.getBody().front());
  }

  FailureOr<func::FuncOp> findForward(SymbolTable &symbols) {
    auto forward = symbols.lookup<func::FuncOp>(function);
    if (!forward || forward.isExternal()) {
      getOperation().emitError("the module has no program @")
          << function << " to differentiate";
      return failure();
    }
    if (!forward.getBody().hasOneBlock()) {
      forward.emitError("a program is one block without branches");
      return failure();
    }
    for (StringRef name : {StringRef(kTrain), StringRef(kEvaluate)})
      if (Operation *taken = symbols.lookup(name); taken && taken != forward) {
        taken->emitError("@")
            << name
            << " has the name of the program that nn-differentiate "
               "makes";
        return failure();
      }
    return forward;
  }

  /// Index of the result called "loss".
  FailureOr<unsigned> findLoss(func::FuncOp forward) {
    for (unsigned i = 0, e = forward.getNumResults(); i < e; ++i) {
      auto name = forward.getResultAttrOfType<StringAttr>(i, nn::kNameAttr);
      if (!name || name.getValue() != range_name::kLoss)
        continue;
      auto type = dyn_cast<RankedTensorType>(forward.getResultTypes()[i]);
      if (type && type.getRank() == 0 && isa<FloatType>(type.getElementType()))
        return i;
      forward.emitError("result \"loss\" must be a floating tensor of rank 0");
      return failure();
    }
    forward.emitError("program @")
        << function << " has no result with nn.name = \"loss\"";
    return failure();
  }

  void keepOnlyResult(func::FuncOp train, unsigned kept) {
    llvm::BitVector others(train.getNumResults(), true);
    others.reset(kept);
    train.getBody().front().getTerminator()->eraseOperands(others);
    (void)train.eraseResults(others);
  }

  /// Backwards, so that what a dead op alone used dies too.
  void eraseDeadOps(Block &body) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
