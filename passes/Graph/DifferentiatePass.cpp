//===- DifferentiatePass.cpp - Reverse mode over an op interface ----------===//
//
// Joint: clones the forward program as @train, walks it backwards calling each
// op's reverse rule, and renames the original to @evaluate. Split: the reverse
// pass becomes a program of its own, which takes what the forward program has
// left for it. See GraphPasses.td for the order of sums, which is part of the
// numerical contract. Linear in the number of ops.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Placement.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Graph/MeanOfParts.h"
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

/// Backwards, so that what a dead op alone used dies too.
void eraseDeadOps(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// The reverse pass of one program.
class ReversePass {
public:
  ReversePass(func::FuncOp program, SymbolTable &symbols)
      : body(program.getBody().front()), symbols(symbols) {
    for (Operation &op : body.without_terminator())
      forward.push_back(&op);
  }

  /// Asks for the cotangent of an argument too.
  void addArgument(BlockArgument argument) { active.insert(argument); }

  /// Appends seed, reverse pass and gradients before the terminator.
  LogicalResult run(Value loss) {
    OpBuilder builder(body.getTerminator());
    nn::ModuleScope scope(builder, nn::moduleOfValue(loss));
    cotangents[loss] =
        nn::SeedOp::create(builder, loss.getLoc(), loss).getCotangent();
    return run(builder);
  }

  /// The same for any results, whose cotangents are given.
  LogicalResult run(ArrayRef<std::pair<Value, Value>> given) {
    OpBuilder builder(body.getTerminator());
    for (auto [result, cotangent] : given)
      accumulate(cotangents[result], cotangent, result.getLoc(), builder);
    return run(builder);
  }

  /// Of a value that has been asked for; null if no result depends on it.
  Value cotangentOf(Value value) { return cotangents.lookup(value); }

private:
  LogicalResult run(OpBuilder &builder) {
    findActiveValues();
    for (Operation *op : llvm::reverse(forward))
      if (failed(reverse(op, builder)))
        return failure();
    return success();
  }

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

  /// The placement of the parameter or buffer that `value` is read from.
  dist::PlacementAttr declaredPlacement(Value value) {
    auto read = value.getDefiningOp<nn::ReadOp>();
    Operation *declaration =
        read ? symbols.lookup(read.getNameAttr().getAttr()) : nullptr;
    return declaration ? declaration->getAttrOfType<dist::PlacementAttr>(
                             dist::kPlacementAttr)
                       : dist::PlacementAttr();
  }

  /// A value is active if it depends on a trained parameter, or an argument
  /// that was asked for: only such values need cotangents.
  void findActiveValues() {
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
    if (auto redistribute = dyn_cast<dist::RedistributeOp>(op))
      operandCotangents[0] = dist::buildRedistributeVjp(
          builder, redistribute, resultCotangents[0],
          declaredPlacement(redistribute.getInput()));
    else
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
  SmallVector<Operation *> forward;
  DenseSet<Value> active;
  DenseMap<Value, Value> cotangents;
  DenseMap<StringAttr, unsigned> readsLeft;
  DenseMap<StringAttr, Value> gradients;
};

/// The reverse pass of a program as a program of its own. What it needs of the
/// forward pass and cannot cheaply repeat are results of the forward program:
/// its residuals.
class Splitter {
public:
  Splitter(func::FuncOp forward, StringRef name, SymbolTable &symbols)
      : forward(forward), symbols(symbols),
        backward(cast<func::FuncOp>(forward->clone(clones))) {
    backward.setName(name);
    symbols.insert(backward, std::next(Block::iterator(forward)));
    for (const auto &[original, clone] : clones.getValueMap())
      originals[clone] = original;
    for (Operation &op : forward.getBody().front())
      if (writes(&op))
        op.getAttrDictionary().walk(
            [&](FlatSymbolRefAttr name) { written.insert(name.getAttr()); });
  }

  LogicalResult run(ArrayRef<std::string> wrt) {
    ReversePass reverse(backward, symbols);
    FailureOr<SmallVector<BlockArgument>> asked = findArguments(wrt);
    if (failed(asked))
      return failure();
    for (BlockArgument argument : *asked)
      reverse.addArgument(argument);
    Block &body = backward.getBody().front();
    DenseSet<Operation *> forwardOps;
    for (Operation &op : body.without_terminator())
      forwardOps.insert(&op);
    unsigned ownArguments = body.getNumArguments();
    if (failed(reverse.run(takeCotangents())) ||
        failed(giveCotangents(reverse, *asked)))
      return failure();
    eraseDeadOps(body); // What nobody reads needs nothing kept.
    for (Operation &op : body)
      if (!forwardOps.contains(&op))
        for (OpOperand &operand : op.getOpOperands())
          if (Operation *maker = operand.get().getDefiningOp();
              maker && forwardOps.contains(maker) && !isRepeated(maker))
            operand.set(residual(operand.get()));
    // What the forward program writes must not be written twice.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
      if (forwardOps.contains(&op) && writes(&op))
        op.erase();
    eraseUnused(ownArguments);
    return success();
  }

private:
  static bool writes(Operation *op) {
    return hasEffect<MemoryEffects::Write>(op);
  }

  static DictionaryAttr withName(DictionaryAttr attributes, const Twine &name,
                                 MLIRContext *context) {
    NamedAttrList list(attributes);
    list.set(nn::kNameAttr, StringAttr::get(context, name));
    return list.getDictionary(context);
  }

  FailureOr<SmallVector<BlockArgument>>
  findArguments(ArrayRef<std::string> names) {
    SmallVector<BlockArgument> found;
    for (const std::string &name : names) {
      BlockArgument argument;
      for (BlockArgument each : backward.getArguments())
        if (auto own = backward.getArgAttrOfType<StringAttr>(
                each.getArgNumber(), nn::kNameAttr);
            own && own.getValue() == name && isFloat(each))
          argument = each;
      if (!argument)
        return forward.emitError("program @")
               << forward.getSymName()
               << " has no floating argument with nn.name = \"" << name << "\"";
      found.push_back(argument);
    }
    return found;
  }

  /// An argument for the cotangent of every floating result.
  SmallVector<std::pair<Value, Value>> takeCotangents() {
    SmallVector<std::pair<Value, Value>> given;
    Operation *end = backward.getBody().front().getTerminator();
    for (auto [i, result] : llvm::enumerate(end->getOperands())) {
      if (!isFloat(result))
        continue;
      Value cotangent = addArgument(
          result, withName(backward.getResultAttrDict(i),
                           resultName(i) + range_name::kCotangentSuffix,
                           backward.getContext()));
      given.push_back({result, cotangent});
    }
    return given;
  }

  std::string resultName(unsigned i) {
    auto name = forward.getResultAttrOfType<StringAttr>(i, nn::kNameAttr);
    return name ? name.getValue().str() : "result" + std::to_string(i);
  }

  Value addArgument(Value like, DictionaryAttr attributes) {
    unsigned number = backward.getNumArguments();
    (void)backward.insertArgument(number, like.getType(), attributes,
                                  like.getLoc());
    return backward.getArgument(number);
  }

  /// The results are the cotangents that were asked for.
  LogicalResult giveCotangents(ReversePass &reverse,
                               ArrayRef<BlockArgument> asked) {
    Operation *end = backward.getBody().front().getTerminator();
    end->setOperands({});
    (void)backward.eraseResults(
        llvm::BitVector(backward.getNumResults(), true));
    for (auto [i, argument] : llvm::enumerate(asked)) {
      Value cotangent = reverse.cotangentOf(argument);
      auto name = backward.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                        nn::kNameAttr);
      if (!cotangent)
        return forward.emitError("no result of @")
               << forward.getSymName() << " depends on " << name;
      end->insertOperands(i, cotangent);
      (void)backward.insertResult(
          i, cotangent.getType(),
          withName(backward.getArgAttrDict(argument.getArgNumber()),
                   name.getValue() + range_name::kCotangentSuffix,
                   backward.getContext()));
    }
    return success();
  }

  /// Constants, parameters and what brings those where they are computed with
  /// are made again: they would be kept in vain. But what the forward program
  /// writes has another value when the reverse pass runs.
  bool isRepeated(Operation *op) const {
    if (isa<nn::ConstantOp>(op))
      return true;
    if (op->getNumOperands() == 1 && isa<nn::CastOp, dist::RedistributeOp>(op))
      op = op->getOperand(0).getDefiningOp();
    auto read = dyn_cast_if_present<nn::ReadOp>(op);
    return read && !written.contains(read.getNameAttr().getAttr());
  }

  /// The argument for a value of the forward pass, which its program returns.
  Value residual(Value clone) {
    Value &argument = residuals[clone];
    if (argument)
      return argument;
    Value original = originals.lookup(clone);
    Operation *end = forward.getBody().front().getTerminator();
    OperandRange known = end->getOperands();
    auto number = static_cast<unsigned>(
        std::distance(known.begin(), llvm::find(known, original)));
    MLIRContext *context = forward.getContext();
    if (number == end->getNumOperands()) {
      std::string name =
          range_name::kResidualPrefix + std::to_string(residualCount++);
      (void)forward.insertResult(number, original.getType(),
                                 withName({}, name, context));
      end->insertOperands(number, original);
    }
    argument = addArgument(clone, withName(forward.getResultAttrDict(number),
                                           resultName(number), context));
    return argument;
  }

  /// What is left of the forward pass, and arguments that it alone has read.
  void eraseUnused(unsigned ownArguments) {
    Block &body = backward.getBody().front();
    eraseDeadOps(body);
    llvm::BitVector unused(body.getNumArguments());
    for (unsigned i = 0; i < ownArguments; ++i)
      if (body.getArgument(i).use_empty())
        unused.set(i);
    (void)backward.eraseArguments(unused);
  }

  func::FuncOp forward;
  SymbolTable &symbols;
  IRMapping clones;
  func::FuncOp backward;
  DenseMap<Value, Value> originals; // of clones
  DenseMap<Value, Value> residuals; // of clones
  DenseSet<StringAttr> written;     // names, by the forward program
  unsigned residualCount = 0;
};

struct DifferentiatePass : fsdp::impl::DifferentiateBase<DifferentiatePass> {
  using Base::Base;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    FailureOr<func::FuncOp> forward = findForward(symbols);
    if (failed(forward) || failed(checkParts()))
      return signalPassFailure();
    if (split) {
      if (failed(Splitter(*forward, backward, symbols).run(wrt)))
        signalPassFailure();
      return;
    }
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
    if (parts != 1 &&
        failed(takeMeanOfParts(train, terminator->getOperand(0), parts)))
      return signalPassFailure();
    ReversePass reverse(train, symbols);
    if (failed(reverse.run(terminator->getOperand(0))))
      return signalPassFailure();
    eraseDeadOps(train.getBody().front());
  }

  LogicalResult checkParts() {
    if (parts < 1)
      return getOperation().emitError("a loss is the mean of at least one "
                                      "part, not of ")
             << parts.getValue();
    if (split && parts != 1)
      return getOperation().emitError("a split program has no loss to take the "
                                      "mean of parts of");
    return success();
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
    SmallVector<StringRef> made = {kTrain, kEvaluate};
    if (split)
      made = {backward.getValue()};
    for (StringRef name : made)
      if (Operation *taken = symbols.lookup(name);
          taken && (split || taken != forward)) {
        taken->emitError("@")
            << name
            << " has the name of the program that nn-differentiate creates";
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
};

} // namespace
