//===- Accumulate.cpp - A step of several microbatches --------------------===//
//
// Takes the training program apart: what is counted over the whole step, what
// every microbatch adds, and what follows once. Passes.td says what the step
// means.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_ACCUMULATE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

// The step, and the programs that it consists of.
constexpr llvm::StringLiteral kTrain = "train";
constexpr llvm::StringLiteral kCount = "count";
constexpr llvm::StringLiteral kAccumulate = "accumulate";
constexpr llvm::StringLiteral kUpdate = "update";

/// What one microbatch adds to a step.
struct Contributions {
  Value loss;
  /// The labels that the loss and its gradients are divided by.
  nn::CountLabelsOp count;
  SmallVector<nn::GradientOp> gradients;
};

struct AccumulatePass : fsdp::impl::AccumulateBase<AccumulatePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    FailureOr<func::FuncOp> train = findTrain(symbols);
    if (failed(train))
      return signalPassFailure();
    FailureOr<Contributions> found = findContributions(*train);
    if (failed(found) || failed(checkNames(symbols, *found)))
      return signalPassFailure();
    FailureOr<func::FuncOp> count = makeCount(*train, found->count);
    if (failed(count))
      return signalPassFailure();
    symbols.insert(*count, Block::iterator(*train));
    declareSums(*found);
    func::FuncOp update = makeUpdate(*train, *found);
    symbols.insert(update, std::next(Block::iterator(*train)));
    addUp(*train, *found);
    if (failed(symbols.rename(*train, kAccumulate)))
      return signalPassFailure();
    module->setAttr(nn::kStepsAttr, steps());
  }

  //===--- What there is --------------------------------------------------===//

  FailureOr<func::FuncOp> findTrain(SymbolTable &symbols) {
    ModuleOp module = getOperation();
    if (microbatches < 2 || microbatches > kMaxActions)
      return module.emitError("a step is cut into 2 to ")
             << kMaxActions << " microbatches, not " << microbatches.getValue();
    if (module->hasAttr(nn::kStepsAttr))
      return module.emitError("the module's steps are lists of programs "
                              "already: it has '")
             << nn::kStepsAttr << "'";
    auto train = symbols.lookup<func::FuncOp>(function);
    if (!train || train.isExternal())
      return module.emitError("the module has no program @")
             << function << " to cut into microbatches";
    if (!train.getBody().hasOneBlock())
      return train.emitError("a program is one block without branches");
    return train;
  }

  FailureOr<Contributions> findContributions(func::FuncOp train) {
    Contributions found;
    Operation *end = train.getBody().front().getTerminator();
    auto name = train.getNumResults() == 1
                    ? train.getResultAttrOfType<StringAttr>(0, nn::kNameAttr)
                    : StringAttr();
    if (!name || name.getValue() != range_name::kLoss)
      return train.emitError("program @")
             << function << " gives other results than the loss alone";
    found.loss = end->getOperand(0);
    FailureOr<nn::CountLabelsOp> count = findCount(train);
    if (failed(count))
      return failure();
    found.count = *count;
    for (auto gradient : train.getOps<nn::GradientOp>()) {
      if (!gradient.getValue().getType().getElementType().isF32())
        return gradient.emitError("sums over microbatches are f32, got ")
               << gradient.getValue().getType();
      found.gradients.push_back(gradient);
    }
    if (found.gradients.empty())
      return train.emitError("program @")
             << function << " has no nn.gradient; run nn-differentiate first";
    return found;
  }

  /// The one count that everything is divided by.
  FailureOr<nn::CountLabelsOp> findCount(func::FuncOp train) {
    Value count;
    for (auto division : train.getOps<nn::DivideByCountOp>()) {
      if (count && division.getCount() != count)
        return division.emitError(
            "divides by another count than the division before it; a step of "
            "several microbatches has one");
      count = division.getCount();
    }
    if (!count)
      return train.emitError("the loss of @")
             << function
             << " is not divided by a count of labels (nn.divide_by_count), so "
                "microbatches have no common mean";
    auto labels = count.getDefiningOp<nn::CountLabelsOp>();
    if (!labels || !isa<BlockArgument>(labels.getTargets()))
      return emitError(count.getLoc(),
                       "counts more than the labels of an argument, which "
                       "have to be known before the first microbatch");
    return labels;
  }

  LogicalResult checkNames(SymbolTable &symbols, const Contributions &found) {
    SmallVector<std::string> names = {kCount.str(), kAccumulate.str(),
                                      kUpdate.str(), range_name::kLossSum};
    for (nn::GradientOp gradient : found.gradients)
      names.push_back(sumOf(gradient));
    for (StringRef name : names)
      if (Operation *taken = symbols.lookup(name))
        return taken->emitError("@")
               << name << " has the name of what nn-accumulate makes";
    return success();
  }

  //===--- What is made ---------------------------------------------------===//

  static std::string sumOf(nn::GradientOp gradient) {
    return (gradient.getName() + range_name::kGradientSumSuffix).str();
  }

  DictionaryAttr named(const Twine &name, Attribute placement = {}) {
    Builder builder(&getContext());
    NamedAttrList attributes;
    attributes.set(nn::kNameAttr, builder.getStringAttr(name));
    if (placement)
      attributes.set(dist::kPlacementAttr, placement);
    return attributes.getDictionary(&getContext());
  }

  /// Counts the labels of all microbatches of a step, which lie one behind the
  /// other along the first dimension.
  FailureOr<func::FuncOp> makeCount(func::FuncOp train,
                                    nn::CountLabelsOp labels) {
    auto slice = cast<BlockArgument>(labels.getTargets());
    auto type = cast<RankedTensorType>(slice.getType());
    unsigned number = slice.getArgNumber();
    auto name = train.getArgAttrOfType<StringAttr>(number, nn::kNameAttr);
    if (!name || type.getRank() == 0)
      return train.emitError("argument ")
             << number << " of @" << function
             << " is no batch with a name (nn.name)";
    SmallVector<int64_t> shape(type.getShape());
    shape[0] = (CheckedSize(shape[0]) * microbatches.getValue()).saturated();
    auto whole = RankedTensorType::get(shape, type.getElementType());
    if (!nn::hasCheckedSize(whole))
      return train.emitError("the ")
             << name << " of " << microbatches.getValue()
             << " microbatches are more than 2^56 bytes";

    OpBuilder builder(&getContext());
    Type result = labels.getResult().getType();
    auto count = func::FuncOp::create(labels.getLoc(), kCount,
                                      builder.getFunctionType(whole, result));
    count.setArgAttrs(0, named(name.getValue() + range_name::kOfStepSuffix,
                               train.getArgAttr(number, dist::kPlacementAttr)));
    count.setResultAttrs(0, named(range_name::kLabelCount));
    Block *body = count.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    IRMapping mapping;
    mapping.map(slice, body->getArgument(0));
    Operation *copy = builder.clone(*labels, mapping);
    func::ReturnOp::create(builder, labels.getLoc(), copy->getResults());
    return count;
  }

  /// Declares the sums behind the declarations so far.
  void declareSums(const Contributions &found) {
    Operation *last = nullptr;
    for (Operation &op : *getOperation().getBody())
      if (isa<nn::ParameterOp, nn::BufferOp>(op))
        last = &op;
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(last);
    auto zeros = nn::ZerosAttr::get(&getContext());
    nn::BufferOp::create(builder, found.loss.getLoc(), range_name::kLossSum,
                         found.loss.getType(), zeros);
    DenseMap<StringAttr, nn::GradientOp> gradients;
    for (nn::GradientOp gradient : found.gradients)
      gradients[gradient.getNameAttr().getAttr()] = gradient;
    for (auto parameter : getOperation().getOps<nn::ParameterOp>()) {
      nn::GradientOp gradient = gradients.lookup(parameter.getSymNameAttr());
      if (!gradient)
        continue;
      auto sum =
          nn::BufferOp::create(builder, parameter.getLoc(), sumOf(gradient),
                               parameter.getType(), zeros);
      sum->setAttr(nn::kStateOfAttr, gradient.getNameAttr());
      if (Attribute placement = parameter->getAttr(dist::kPlacementAttr))
        sum->setAttr(dist::kPlacementAttr, placement);
    }
  }

  /// The sums are the step's loss and gradients, and zero for the next step.
  func::FuncOp makeUpdate(func::FuncOp train, const Contributions &found) {
    OpBuilder builder(&getContext());
    Location location = train.getLoc();
    auto update = func::FuncOp::create(
        location, kUpdate, builder.getFunctionType({}, found.loss.getType()));
    update.setResultAttrs(0, named(range_name::kLoss));
    builder.setInsertionPointToEnd(update.addEntryBlock());
    SmallVector<Attribute> sums = {
        FlatSymbolRefAttr::get(&getContext(), range_name::kLossSum)};
    Value loss =
        nn::ReadOp::create(builder, found.loss.getLoc(), found.loss.getType(),
                           cast<FlatSymbolRefAttr>(sums[0]));
    for (nn::GradientOp gradient : found.gradients) {
      nn::ModuleScope scope(builder, nn::moduleOf(gradient));
      auto name = FlatSymbolRefAttr::get(&getContext(), sumOf(gradient));
      auto read = nn::ReadOp::create(builder, gradient.getLoc(),
                                     gradient.getValue().getType(), name);
      nn::GradientOp::create(builder, gradient.getLoc(), gradient.getNameAttr(),
                             read.getValue());
      sums.push_back(name);
    }
    nn::ClearOp::create(builder, location, builder.getArrayAttr(sums));
    func::ReturnOp::create(builder, location, loss);
    return update;
  }

  /// Makes a microbatch of the training program: the count is that of the
  /// step, and what it gave is added to the sums. That stands at the end, where
  /// no addition keeps a reduction from running beside the backward pass.
  void addUp(func::FuncOp train, const Contributions &found) {
    nn::CountLabelsOp labels = found.count;
    auto type = cast<RankedTensorType>(labels.getResult().getType());
    dist::PlacementAttr everywhere;
    if (!getOperation().getOps<dist::MeshOp>().empty())
      everywhere = dist::PlacementAttr::replicated(&getContext(), 0);
    unsigned number = train.getNumArguments();
    (void)train.insertArgument(number, type,
                               named(range_name::kLabelCount, everywhere),
                               labels.getLoc());
    labels.getResult().replaceAllUsesWith(train.getArgument(number));
    labels.erase();

    Operation *end = train.getBody().front().getTerminator();
    OpBuilder builder(end);
    auto add = [&](StringRef sum, Value value) {
      nn::ModuleScope scope(builder, nn::moduleOfValue(value));
      nn::AccumulateOp::create(builder, value.getLoc(),
                               FlatSymbolRefAttr::get(&getContext(), sum),
                               value);
    };
    add(range_name::kLossSum, found.loss);
    for (nn::GradientOp gradient : found.gradients) {
      add(sumOf(gradient), gradient.getValue());
      gradient.erase();
    }
    end->eraseOperand(0);
    (void)train.eraseResult(0);
  }

  Attribute steps() {
    Builder builder(&getContext());
    auto action = [&](StringRef program, int64_t times) -> Attribute {
      return nn::ActionAttr::get(
          &getContext(), FlatSymbolRefAttr::get(&getContext(), program), times);
    };
    ArrayAttr train = builder.getArrayAttr({action(kCount, 1),
                                            action(kAccumulate, microbatches),
                                            action(kUpdate, 1)});
    return builder.getDictionaryAttr(builder.getNamedAttr(kTrain, train));
  }
};

} // namespace
