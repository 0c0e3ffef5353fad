//===- AccumulatePass.cpp - A step of several microbatches ----------------===//
//
// Takes the training program apart: what is counted over the whole step, what
// every microbatch adds, and what follows once. GraphPasses.td says what the
// step means.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Placement.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/Graph/BatchRows.h"
#include "passes/Graph/Declarations.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_ACCUMULATE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

// The step, and the programs that it consists of.
constexpr llvm::StringLiteral kTrainAttr = "train";
constexpr llvm::StringLiteral kGather = "gather";
constexpr llvm::StringLiteral kCount = "count";
constexpr llvm::StringLiteral kAccumulate = "accumulate";
constexpr llvm::StringLiteral kUpdate = "update";

/// A gather of a parameter that a step keeps, and the buffer that it is kept
/// in.
struct Gather {
  dist::RedistributeOp op;
  std::string buffer;
};

/// What one microbatch adds to a step.
struct Contributions {
  Value loss;
  /// The labels that the loss and its gradients are divided by.
  nn::CountLabelsOp count;
  SmallVector<nn::GradientOp> gradients;
  SmallVector<Gather> gathers;
};

struct AccumulatePass : fsdp::impl::AccumulateBase<AccumulatePass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    parameters.clear();
    for (auto parameter : module.getOps<nn::ParameterOp>())
      parameters[parameter.getSymNameAttr()] = parameter;
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
    last = lastDeclaration(getOperation());
    if (!found->gathers.empty())
      symbols.insert(keep(*train, *found), Block::iterator(*count));
    findBatchAxes(*train, *found);
    declareSums(*found);
    func::FuncOp update = makeUpdate(*train, *found);
    symbols.insert(update, std::next(Block::iterator(*train)));
    addUp(*train, *found);
    if (failed(symbols.rename(*train, kAccumulate)))
      return signalPassFailure();
    module->setAttr(nn::kStepsAttr, steps(!found->gathers.empty()));
  }

  //===--- What there is --------------------------------------------------===//

  FailureOr<func::FuncOp> findTrain(SymbolTable &symbols) {
    ModuleOp module = getOperation();
    if (microbatches < 2 || microbatches > kMaxProgramRuns)
      return module.emitError("a step is split into 2 to ")
             << kMaxProgramRuns << " microbatches, not "
             << microbatches.getValue();
    if (module->hasAttr(nn::kStepsAttr))
      return module.emitError("the module's steps are lists of programs "
                              "already: it has '")
             << nn::kStepsAttr << "'";
    auto train = symbols.lookup<func::FuncOp>(function);
    if (!train || train.isExternal())
      return module.emitError("the module has no program @")
             << function << " to split into microbatches";
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
      return emitNoGradient(train, "set optimizer.name to none and train with "
                                   "one microbatch");
    if (failed(checkSums(train, found)))
      return failure();
    if (keepGathers)
      findGathers(train, found);
    return found;
  }

  nn::ParameterOp parameterOf(nn::ReadOp read) {
    return parameters.lookup(read.getNameAttr().getAttr());
  }

  /// Reads of parameters that are not stored where they are computed with.
  void findGathers(func::FuncOp train, Contributions &found) {
    auto meshes = getOperation().getOps<dist::MeshOp>();
    DenseMap<StringAttr, unsigned> counts;
    for (auto gather : train.getOps<dist::RedistributeOp>()) {
      auto read = gather.getInput().getDefiningOp<nn::ReadOp>();
      nn::ParameterOp parameter = read ? parameterOf(read) : nn::ParameterOp();
      auto storage = parameter ? parameter->getAttrOfType<dist::PlacementAttr>(
                                     dist::kPlacementAttr)
                               : dist::PlacementAttr();
      if (storage && !dist::movesBetween(dist::Placement(storage),
                                         dist::Placement(gather.getPlacement()),
                                         *meshes.begin())
                          .empty())
        found.gathers.push_back(
            {gather, gatheredOf(read, ++counts[read.getNameAttr().getAttr()])});
    }
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
    if (labels.getType().getRank() != 0)
      return labels.emitOpError("counts the labels of parts of the batch; "
                                "microbatches have one mean");
    return labels;
  }

  /// The loss and the gradients of microbatches add up to those of the step.
  static LogicalResult checkSums(func::FuncOp train,
                                 const Contributions &found) {
    nn::CountLabelsOp count = found.count;
    BatchRows rows(train, count.getResult());
    if (failed(rows.verifyIsSum(found.loss, "the loss")))
      return failure();
    for (nn::GradientOp gradient : found.gradients)
      if (failed(
              rows.verifyIsSum(gradient.getValue(),
                               "the gradient of '" + gradient.getName() + "'")))
        return failure();
    return success();
  }

  LogicalResult checkNames(SymbolTable &symbols, const Contributions &found) {
    SmallVector<std::string> names = {kCount.str(), kAccumulate.str(),
                                      kUpdate.str(), range_name::kLossSum};
    for (nn::GradientOp gradient : found.gradients)
      names.push_back(sumOf(gradient));
    for (const Gather &gather : found.gathers)
      names.push_back(gather.buffer);
    if (!found.gathers.empty())
      names.push_back(kGather.str());
    for (StringRef name : names)
      if (Operation *taken = symbols.lookup(name))
        return taken->emitError("@")
               << name << " has a name that nn-accumulate creates";
    return success();
  }

  //===--- What is built --------------------------------------------------===//

  static std::string sumOf(nn::GradientOp gradient) {
    return (gradient.getName() + range_name::kGradientSumSuffix).str();
  }

  /// "w.gathered", and of further gathers of @w "w.gathered.2".
  static std::string gatheredOf(nn::ReadOp read, unsigned number) {
    std::string name = (read.getName() + range_name::kGatheredSuffix).str();
    return number == 1 ? name : name + "." + std::to_string(number);
  }

  DictionaryAttr named(const Twine &name, Attribute placement = {}) {
    Builder builder(&getContext());
    NamedAttrList attributes;
    attributes.set(nn::kNameAttr, builder.getStringAttr(name));
    if (placement)
      attributes.set(dist::kPlacementAttr, placement);
    return attributes.getDictionary(&getContext());
  }

  /// Counts the labels of all microbatches of a step, which lie one after the
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

  /// Declares a buffer of zeros after the declarations so far. It belongs to
  /// `parameter`, if there is one, and is stored at `placement`, if that is
  /// said.
  nn::BufferOp declare(Location location, StringRef name, Type type,
                       nn::ParameterOp parameter, Attribute placement) {
    OpBuilder builder(&getContext());
    builder.setInsertionPointAfter(last);
    auto buffer = nn::BufferOp::create(builder, location, name, type,
                                       nn::ZerosAttr::get(&getContext()));
    if (parameter)
      buffer->setAttr(nn::kStateOfAttr,
                      FlatSymbolRefAttr::get(parameter.getSymNameAttr()));
    if (placement)
      buffer->setAttr(dist::kPlacementAttr, placement);
    last = buffer;
    return buffer;
  }

  /// Builds the program that gathers parameters once, and lets a microbatch
  /// read what it has gathered.
  func::FuncOp keep(func::FuncOp train, const Contributions &found) {
    OpBuilder builder(&getContext());
    auto program = func::FuncOp::create(train.getLoc(), kGather,
                                        builder.getFunctionType({}, {}));
    builder.setInsertionPointToEnd(program.addEntryBlock());
    for (auto [gather, name] : found.gathers) {
      auto read = gather.getInput().getDefiningOp<nn::ReadOp>();
      auto symbol = FlatSymbolRefAttr::get(&getContext(), name);
      declare(gather.getLoc(), name, gather.getType(), parameterOf(read),
              gather.getPlacement());
      IRMapping mapping;
      builder.clone(*read, mapping);
      Operation *copy = builder.clone(*gather, mapping);
      nn::ModuleScope scope(builder, nn::moduleOf(gather));
      nn::WriteOp::create(builder, gather.getLoc(), symbol, copy->getResult(0));

      OpBuilder here(gather);
      nn::ModuleScope module(here, nn::moduleOf(gather));
      gather.replaceAllUsesWith(
          nn::ReadOp::create(here, gather.getLoc(), gather.getType(), symbol)
              .getValue());
      gather.erase();
      if (read->use_empty())
        read.erase();
    }
    func::ReturnOp::create(builder, train.getLoc());
    return program;
  }

  /// The axes over which ranks have other rows, of which there are several.
  void findBatchAxes(func::FuncOp train, const Contributions &found) {
    batchAxes.clear();
    nn::CountLabelsOp labels = found.count;
    auto slice = cast<BlockArgument>(labels.getTargets());
    auto placement = train.getArgAttrOfType<dist::PlacementAttr>(
        slice.getArgNumber(), dist::kPlacementAttr);
    if (!placement)
      return;
    dist::MeshOp mesh = *getOperation().getOps<dist::MeshOp>().begin();
    for (dist::AxisRefAttr axis : placement.getDims()[0].getCompute())
      if (mesh.sizeOf(axis) > 1)
        batchAxes.push_back(axis);
  }

  /// What brings a gradient, and nothing else, to where its parameter is
  /// stored; null if nothing does.
  static dist::RedistributeOp reductionOf(nn::GradientOp gradient) {
    auto found = gradient.getValue().getDefiningOp<dist::RedistributeOp>();
    return found && found->hasOneUse() ? found : dist::RedistributeOp();
  }

  /// Where the sum of a gradient is stored: where the parameter does, or, if it
  /// is reduced once, where that is computed with, as partial.
  dist::PlacementAttr placementOfSum(nn::ParameterOp parameter,
                                     nn::GradientOp gradient) {
    auto storage =
        parameter->getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
    if (!reduceOnce || batchAxes.empty() || !storage || !reductionOf(gradient))
      return storage;
    dist::Placement parts = dist::Placement(storage).withoutStorage();
    parts.partial = batchAxes;
    return parts.attribute(&getContext());
  }

  dist::PlacementAttr declaredPlacement(nn::GradientOp gradient) {
    nn::BufferOp sum = declaredSums.lookup(gradient);
    return sum->getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
  }

  bool isReducedOnce(nn::GradientOp gradient) {
    dist::PlacementAttr placement = declaredPlacement(gradient);
    return placement && !placement.getPartial().empty();
  }

  void declareSums(const Contributions &found) {
    declare(found.loss.getLoc(), range_name::kLossSum, found.loss.getType(), {},
            {});
    DenseMap<StringAttr, nn::GradientOp> gradients;
    for (nn::GradientOp gradient : found.gradients)
      gradients[gradient.getNameAttr().getAttr()] = gradient;
    declaredSums.clear();
    for (nn::ParameterOp parameter :
         llvm::to_vector(getOperation().getOps<nn::ParameterOp>()))
      if (nn::GradientOp gradient =
              gradients.lookup(parameter.getSymNameAttr()))
        declaredSums[gradient] =
            declare(parameter.getLoc(), sumOf(gradient), parameter.getType(),
                    parameter, placementOfSum(parameter, gradient));
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
      Value sum = nn::ReadOp::create(builder, gradient.getLoc(),
                                     gradient.getValue().getType(), name);
      if (dist::RedistributeOp reduction = reductionOf(gradient);
          reduction && isReducedOnce(gradient))
        sum = dist::RedistributeOp::create(
            builder, gradient.getLoc(), gradient.getValue().getType(), sum,
            reduction.getMeshAttr(), reduction.getPlacement(),
            reduction.getWireAttr());
      nn::GradientOp::create(builder, gradient.getLoc(), gradient.getNameAttr(),
                             sum);
      sums.push_back(name);
    }
    nn::ClearOp::create(builder, location, builder.getArrayAttr(sums));
    func::ReturnOp::create(builder, location, loss);
    return update;
  }

  /// Builds a microbatch of the training program: the count is that of the
  /// step, and what it gave is added to the sums. That stands at the end, where
  /// no addition keeps a reduction from running beside the backward pass.
  void addUp(func::FuncOp train, const Contributions &found) {
    nn::CountLabelsOp labels = found.count;
    auto type = cast<RankedTensorType>(labels.getResult().getType());
    unsigned number = train.getNumArguments();
    (void)train.insertArgument(number, type, named(range_name::kLabelCount),
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
      if (isReducedOnce(gradient))
        reductionOf(gradient).setPlacementAttr(declaredPlacement(gradient));
      add(sumOf(gradient), gradient.getValue());
      gradient.erase();
    }
    end->eraseOperand(0);
    (void)train.eraseResult(0);
  }

  Attribute steps(bool gathers) {
    Builder builder(&getContext());
    auto action = [&](StringRef program, int64_t times) -> Attribute {
      return nn::ActionAttr::get(
          &getContext(), FlatSymbolRefAttr::get(&getContext(), program), times);
    };
    SmallVector<Attribute> train;
    if (gathers)
      train.push_back(action(kGather, 1));
    llvm::append_values(train, action(kCount, 1),
                        action(kAccumulate, microbatches), action(kUpdate, 1));
    return builder.getDictionaryAttr(
        builder.getNamedAttr(kTrainAttr, builder.getArrayAttr(train)));
  }

  /// Of the module, by name.
  DenseMap<StringAttr, nn::ParameterOp> parameters;
  /// The sums of gradients.
  DenseMap<nn::GradientOp, nn::BufferOp> declaredSums;
  /// The last nn.parameter or nn.buffer.
  Operation *last = nullptr;
  /// The axes over which ranks have other rows.
  dist::AxisList batchAxes;
};

} // namespace
