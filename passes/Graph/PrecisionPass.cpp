//===- PrecisionPass.cpp - A mixed-precision program of an f32 one --------===//
//
// One walk in program order: when it comes to an op, the operands have their
// final types, and the rule in its record (PrecisionRule) says which types the
// results get.
//
//===----------------------------------------------------------------------===//
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "passes/Passes.h"
#include "llvm/Support/GlobPattern.h"

namespace fsdp {
#define GEN_PASS_DEF_PRECISION
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

//===----------------------------------------------------------------------===//
// Rules of ops
//===----------------------------------------------------------------------===//

/// The element type of a tensor of floating-point numbers, else null.
static FloatType floatTypeOf(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
}

static bool isNarrow(Value value) {
  FloatType type = floatTypeOf(value);
  return type && type.isBF16();
}

/// The rule of an op; none for reads and for what is not of `nn`.
static std::optional<nn::PrecisionRule> ruleOf(Operation *op) {
  auto precision = dyn_cast<nn::PrecisionOpInterface>(op);
  if (!precision)
    return std::nullopt;
  return precision.getPrecisionRule();
}

/// Whether an op takes `parameter`, or its elements moved, in f32.
static bool isWantedWide(Value parameter) {
  return llvm::any_of(parameter.getUses(), [](OpOperand &use) {
    Operation *user = use.getOwner();
    auto precision = dyn_cast<nn::PrecisionOpInterface>(user);
    if (!precision)
      return false;
    return precision.getWideOperand() == &use ||
           precision.getPrecisionRule() == nn::PrecisionRule::Wide ||
           isa<nn::CastOp>(user) ||
           (nn::movesElements(user) && isWantedWide(user->getResult(0)));
  });
}

namespace {

//===----------------------------------------------------------------------===//
// One program
//===----------------------------------------------------------------------===//

/// The names of a module's parameters.
struct Parameters {
  DenseSet<StringAttr> all;
  DenseSet<StringAttr> wide; // of them, those that stay f32
};

/// Finds the types of one program.
class Assignment {
public:
  Assignment(func::FuncOp program, const Parameters &parameters)
      : program(program), parameters(parameters),
        narrow(BFloat16Type::get(program.getContext())),
        wide(Float32Type::get(program.getContext())) {}

  LogicalResult run();

private:
  bool isMixedAlready();
  LogicalResult check();
  LogicalResult assign(Operation *op);
  void assignByOperands(Operation *op);
  void assignRead(nn::ReadOp read);
  void assignProduct(Operation *op);
  void assignFollowing(Operation *op);
  void assignToInput(nn::PrecisionOpInterface op);
  void assignResults(func::ReturnOp op);

  bool dependsOnConstantsAlone(Operation *op) const;
  FloatType widest(ValueRange values) const;
  void retype(Value value, FloatType type);
  void castOperands(Operation *op, FloatType type);
  void castOperand(OpOperand &operand, FloatType type);

  func::FuncOp program;
  Parameters parameters;
  FloatType narrow, wide;
  /// Casts of arguments stand before it.
  Operation *entry = nullptr;
  /// The casts that operands needed: a value is cast once to a type.
  DenseMap<std::pair<Value, FloatType>, Value> casts;
  /// Constants, and what is computed from them alone.
  DenseSet<Value> constants;
  /// Parameters that stay f32, and their elements moved.
  DenseSet<Value> wideValues;
};

LogicalResult Assignment::run() {
  if (isMixedAlready())
    return success();
  if (failed(check()))
    return failure();
  Block &block = program.getBody().front();
  for (auto read : block.getOps<nn::ReadOp>())
    if (isWantedWide(read.getValue()))
      parameters.wide.insert(read.getNameAttr().getAttr());
  entry = &block.front();
  for (Operation &op : llvm::make_early_inc_range(block))
    if (failed(assign(&op)))
      return failure();
  program.setFunctionType(
      FunctionType::get(program.getContext(), program.getArgumentTypes(),
                        block.getTerminator()->getOperandTypes()));
  return success();
}

bool Assignment::isMixedAlready() {
  auto hasNarrowResult = [](Operation *op) {
    return llvm::any_of(op->getResults(), isNarrow) ? WalkResult::interrupt()
                                                    : WalkResult::advance();
  };
  return llvm::any_of(program.getArguments(), isNarrow) ||
         program.walk(hasNarrowResult).wasInterrupted();
}

LogicalResult Assignment::check() {
  if (!program.getBody().hasOneBlock())
    return program.emitError("a program is one block without branches");
  for (Operation &op : program.getBody().front()) {
    if (isa<nn::SeedOp, nn::GradientOp>(op))
      return op.emitOpError("shows that the program is already differentiated; "
                            "run nn-precision before nn-differentiate");
    for (Value value : llvm::concat<Value>(op.getOperands(), op.getResults()))
      if (FloatType type = floatTypeOf(value); type && type.isF64())
        return op.emitOpError("is in f64; nn-precision takes an f32 program");
  }
  return success();
}

LogicalResult Assignment::assign(Operation *op) {
  if (auto read = dyn_cast<nn::ReadOp>(op)) {
    assignRead(read);
    return success();
  }
  if (auto end = dyn_cast<func::ReturnOp>(op)) {
    assignResults(end);
    return success();
  }
  switch (ruleOf(op).value_or(nn::PrecisionRule::Later)) {
  case nn::PrecisionRule::Matrix:
  case nn::PrecisionRule::Wide:
  case nn::PrecisionRule::Operands:
    assignByOperands(op);
    return success();
  case nn::PrecisionRule::Input:
    assignToInput(cast<nn::PrecisionOpInterface>(op));
    return success();
  case nn::PrecisionRule::Constant:
    constants.insert(op->result_begin(), op->result_end());
    return success();
  case nn::PrecisionRule::Declared:
    return success();
  case nn::PrecisionRule::Later:
    break;
  }
  return op->emitOpError(
      "has no precision rule; run nn-precision on the traced program, before "
      "fsdp-shard and nn-differentiate");
}

/// Ops whose operands of floating point all get one type.
void Assignment::assignByOperands(Operation *op) {
  if (dependsOnConstantsAlone(op))
    constants.insert(op->result_begin(), op->result_end());
  else if (ruleOf(op) == nn::PrecisionRule::Matrix)
    assignProduct(op);
  else if (ruleOf(op) == nn::PrecisionRule::Wide)
    castOperands(op, wide);
  else
    assignFollowing(op);
}

void Assignment::assignRead(nn::ReadOp read) {
  StringAttr name = read.getNameAttr().getAttr();
  if (!parameters.all.contains(name))
    return;
  if (parameters.wide.contains(name)) {
    wideValues.insert(read);
    return;
  }
  OpBuilder builder(program.getContext());
  builder.setInsertionPointAfter(read);
  auto type = cast<RankedTensorType>(read.getType()).clone(narrow);
  auto narrowed = nn::CastOp::create(builder, read.getLoc(), type, read);
  narrowed->setDiscardableAttrs(read->getDiscardableAttrDictionary());
  read.getValue().replaceAllUsesExcept(narrowed, narrowed);
}

void Assignment::assignProduct(Operation *op) {
  bool hasWideParameter = llvm::any_of(op->getOperands(), [&](Value value) {
    return wideValues.contains(value);
  });
  bool hasNarrow = llvm::any_of(op->getOperands(), isNarrow);
  FloatType type = hasNarrow && !hasWideParameter ? narrow : wide;
  castOperands(op, type);
  // The statistics of nn.attention, its second result, are f32.
  retype(op->getResult(0), type);
}

void Assignment::assignFollowing(Operation *op) {
  FloatType type = widest(op->getOperands());
  if (!type) // integers moved
    return;
  castOperands(op, type);
  retype(op->getResult(0), type);
  if (nn::movesElements(op) &&
      llvm::any_of(op->getOperands(),
                   [&](Value value) { return wideValues.contains(value); }))
    wideValues.insert(op->getResult(0));
}

/// Statistics, which are other results, are f32.
void Assignment::assignToInput(nn::PrecisionOpInterface op) {
  FloatType common = widest(op->getOperands().drop_front());
  for (OpOperand &operand : op->getOpOperands().drop_front())
    if (FloatType type = op.getWideOperand() == &operand ? wide : common;
        type && floatTypeOf(operand.get()))
      castOperand(operand, type);
  retype(op->getResult(0), floatTypeOf(op->getOperand(0)));
}

/// What an op takes in f32 is returned so: a prediction beside its loss.
void Assignment::assignResults(func::ReturnOp op) {
  for (OpOperand &operand : op->getOpOperands())
    if (Value widened = casts.lookup({operand.get(), wide}))
      operand.set(widened);
}

bool Assignment::dependsOnConstantsAlone(Operation *op) const {
  return op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperands(),
                      [&](Value value) { return constants.contains(value); });
}

/// The widest type of `values`, constants not counted, which have none of
/// their own; null if nothing is left.
FloatType Assignment::widest(ValueRange values) const {
  FloatType type;
  for (Value value : values)
    if (FloatType own = floatTypeOf(value); own && !constants.contains(value))
      type = own == wide || !type ? own : type;
  return type;
}

void Assignment::retype(Value value, FloatType type) {
  value.setType(cast<RankedTensorType>(value.getType()).clone(type));
}

void Assignment::castOperands(Operation *op, FloatType type) {
  for (OpOperand &operand : op->getOpOperands())
    if (floatTypeOf(operand.get()))
      castOperand(operand, type);
}

void Assignment::castOperand(OpOperand &operand, FloatType type) {
  Value value = operand.get();
  if (floatTypeOf(value) == type)
    return;
  Value &converted = casts[{value, type}];
  if (!converted) {
    // A cast belongs to the module of the op that needs it; that of an argument
    // to the whole model.
    bool isArgument = isa<BlockArgument>(value);
    Operation *user = operand.getOwner();
    OpBuilder builder(isArgument ? entry : user);
    auto op = nn::CastOp::create(
        builder, isArgument ? program.getLoc() : user->getLoc(),
        cast<RankedTensorType>(value.getType()).clone(type), value);
    if (!isArgument)
      op->setDiscardableAttrs(user->getDiscardableAttrDictionary());
    converted = op;
  }
  operand.set(converted);
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

/// Whether `pattern` matches `name` or a module that it lies in.
bool matchesNameOrModule(const llvm::GlobPattern &pattern, StringRef name) {
  while (!name.empty() && !pattern.match(name))
    name = nn::parentOf(name);
  return !name.empty();
}

struct PrecisionPass : fsdp::impl::PrecisionBase<PrecisionPass> {
  using Base::Base;

  void runOnOperation() override {
    if (computeDtype == ComputeType::F32)
      return;
    FailureOr<Parameters> parameters = collectParameters();
    if (failed(parameters))
      return signalPassFailure();
    for (auto program : getOperation().getOps<func::FuncOp>())
      if (!program.isExternal() &&
          failed(Assignment(program, *parameters).run()))
        return signalPassFailure();
  }

  FailureOr<Parameters> collectParameters() {
    ModuleOp module = getOperation();
    Parameters parameters;
    for (auto parameter : module.getOps<nn::ParameterOp>())
      parameters.all.insert(parameter.getSymNameAttr());
    for (StringRef text : wide) {
      llvm::Expected<llvm::GlobPattern> pattern =
          llvm::GlobPattern::create(text);
      if (!pattern) {
        module.emitError("wide: \"")
            << text
            << "\" is no pattern: " << llvm::toString(pattern.takeError());
        return failure();
      }
      bool isUsed = false;
      for (StringAttr name : parameters.all)
        if (matchesNameOrModule(*pattern, name)) {
          parameters.wide.insert(name);
          isUsed = true;
        }
      if (!isUsed) {
        module.emitError("wide: \"")
            << text << "\" names no parameter and no module";
        return failure();
      }
    }
    return parameters;
  }
};

} // namespace
