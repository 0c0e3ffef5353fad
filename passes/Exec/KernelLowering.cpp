//===- KernelLowering.cpp - nn ops to one exec.kernel ---------------------===//
#include "passes/Exec/KernelLowering.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

MemRefType lower::memRefOf(Type tensor) {
  auto type = cast<RankedTensorType>(tensor);
  return MemRefType::get(type.getShape(), type.getElementType());
}

std::optional<double> lower::splatOf(Value tensor) {
  if (auto constant = tensor.getDefiningOp<nn::ConstantOp>())
    return constant.getSplat();
  if (tensor.getDefiningOp<nn::SeedOp>())
    return 1.0;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// KernelCache
//===----------------------------------------------------------------------===//

KernelCache::KernelCache(ModuleOp module) : module(module) {
  for (Operation &op : *module.getBody())
    if (auto name = SymbolTable::getSymbolName(&op))
      names.insert(name.getValue());
}

exec::KernelOp KernelCache::share(exec::KernelOp kernel, StringRef wanted) {
  // Printed under one name and without locations, equal kernels are equal
  // texts.
  std::string text;
  llvm::raw_string_ostream os(text);
  kernel->print(os, OpPrintingFlags().useLocalScope());
  exec::KernelOp &shared = byText[text];
  if (shared) {
    kernel->erase();
    return shared;
  }
  std::string name = wanted.str();
  for (int number = 2; !names.insert(name).second;) {
    int &next = suffixes.try_emplace(wanted, number).first->second;
    name = (wanted + "_" + Twine(next++)).str();
  }
  kernel.setSymName(name);
  // Kernels stand before the programs, which are appended.
  module.getBody()->push_back(kernel);
  shared = kernel;
  return shared;
}

//===----------------------------------------------------------------------===//
// KernelLowering
//===----------------------------------------------------------------------===//

static exec::Access accessOf(nn::KernelAccess access) {
  switch (access) {
  case nn::KernelAccess::Element:
    return exec::Access::Element;
  case nn::KernelAccess::Row:
    return exec::Access::Row;
  case nn::KernelAccess::Column:
    return exec::Access::Column;
  case nn::KernelAccess::Scalar:
    return exec::Access::Scalar;
  }
  llvm_unreachable("an access");
}

static exec::ReduceKind reduceOf(nn::ReduceKind kind) {
  return kind == nn::ReduceKind::Sum ? exec::ReduceKind::Sum
                                     : exec::ReduceKind::Max;
}

namespace {

class KernelLowering : public nn::KernelBuilder {
public:
  /// `outputs` are the values that leave the kernel, in order.
  KernelLowering(nn::KernelSpace space, Location loc, ValueRange outputs);

  /// `inner` stands for the tensor `outer` outside the kernel.
  void bind(Value inner, Value outer) { outside[inner] = outer; }

  /// Stores the outputs and gives the finished kernel with its inputs.
  std::pair<exec::KernelOp, SmallVector<Value>> finish();

  OpBuilder &builder() override { return b; }
  Location loc() override { return location; }
  Value read(Value tensor, nn::KernelAccess access) override;
  Value readAt(Value tensor, Value col) override;
  Value column() override;
  Value reduceColumns(nn::ReduceKind kind, Scalar element) override;
  void define(Value result, Scalar element) override;
  void defineRow(Value result, Value scalar) override;
  void defineColumns(Value result, nn::ReduceKind kind,
                     Scalar element) override;
  Value constant(double value) override;
  /// A constant of the scalar type of `tensor`.
  Value splat(double value, Type tensor);

private:
  /// A place where element functions are evaluated, with what it already has.
  struct Stage {
    /// The exec.reduce, exec.map or exec.reduce_rows; null at the top level.
    Operation *op = nullptr;
    DenseMap<Value, Value> scalars;   // tensor -> as a reader sees it
    DenseMap<Value, Value> unrounded; // tensor -> as its function gave it
    DenseMap<Attribute, Value> constants;
    Value column;
    bool otherColumn = false; // loads name the column
  };
  struct SumOverRows {
    size_t output; // its number
    nn::ReduceKind kind;
    Scalar element;
  };

  Value load(Value tensor, exec::Access access);
  Value loadHere(BlockArgument argument, Value column);
  BlockArgument input(Value outer, exec::Access access);
  /// Evaluates the function of an element-wise value at the current place.
  Value evaluate(Value tensor);
  Value rounded(Value scalar, Type tensor);
  void setAccess(Value output, exec::Access access);
  template <typename Body> void inStage(Stage &inner, Body body);
  void reduceRows(const SumOverRows &sum);

  OpBuilder b;
  Location location;
  nn::KernelSpace space;
  exec::KernelOp kernel;
  Block *body;
  SmallVector<Value> inputs;
  SmallVector<exec::Access> inputAccess, outputAccess;
  SmallVector<Value> outputs;
  DenseMap<Value, Value> outside;
  DenseMap<std::pair<Value, unsigned>, BlockArgument> arguments;
  DenseMap<Value, Scalar> elements; // defined by `define`
  DenseMap<Value, Value> rows;      // defined by `defineRow`, rounded
  DenseMap<Value, Value> rowStores; // the same before rounding
  SmallVector<SumOverRows> sums;
  /// The first of the loops that store results.
  Operation *firstStore = nullptr;
  Stage top;
  Stage *stage = &top;
};

} // namespace

KernelLowering::KernelLowering(nn::KernelSpace space, Location loc,
                               ValueRange outputs)
    : b(loc.getContext()), location(loc), space(space),
      outputAccess(outputs.size(), exec::Access::Element),
      outputs(outputs.begin(), outputs.end()) {
  kernel = exec::KernelOp::create(b, loc, "kernel", space.rows, space.cols,
                                  b.getArrayAttr({}), outputs.size(),
                                  space.columnReduction);
  body = &kernel.getBody().emplaceBlock();
  for (Value output : outputs)
    body->addArgument(memRefOf(output.getType()), b.getUnknownLoc());
  b.setInsertionPointToEnd(body);
}

template <typename Body>
void KernelLowering::inStage(Stage &inner, Body evaluateBody) {
  OpBuilder::InsertionGuard guard(b);
  Stage *outer = stage;
  stage = &inner;
  if (inner.op)
    b.setInsertionPointToEnd(&inner.op->getRegion(0).emplaceBlock());
  evaluateBody();
  stage = outer;
}

Value KernelLowering::rounded(Value scalar, Type tensor) {
  Type element = cast<RankedTensorType>(tensor).getElementType();
  if (!isa<FloatType>(element) || element == scalar.getType())
    return scalar;
  Value narrow = arith::TruncFOp::create(b, location, element, scalar);
  return arith::ExtFOp::create(b, location, scalar.getType(), narrow);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

BlockArgument KernelLowering::input(Value outer, exec::Access access) {
  BlockArgument &argument = arguments[{outer, static_cast<unsigned>(access)}];
  if (!argument) {
    argument = body->insertArgument(inputs.size(), memRefOf(outer.getType()),
                                    b.getUnknownLoc());
    inputs.push_back(outer);
    inputAccess.push_back(access);
  }
  return argument;
}

Value KernelLowering::loadHere(BlockArgument argument, Value column) {
  Type element = cast<MemRefType>(argument.getType()).getElementType();
  Type scalar = isa<FloatType>(element) ? b.getF32Type() : element;
  return exec::LoadOp::create(b, location, scalar, argument, column);
}

Value KernelLowering::load(Value tensor, exec::Access access) {
  Value bound = outside.lookup(tensor);
  Value outer = bound ? bound : tensor;
  if (std::optional<double> value = splatOf(outer))
    return splat(*value, outer.getType());
  BlockArgument argument = input(outer, access);
  bool perRow = access == exec::Access::Row || access == exec::Access::Scalar;
  if (!perRow || space.columnReduction || stage == &top)
    return loadHere(argument, stage->otherColumn ? stage->column : Value());
  // What is the same for the whole row is loaded once, before the loops.
  Value &scalar = top.scalars[tensor];
  if (!scalar) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(firstStore ? firstStore
                                   : b.getInsertionBlock()->getParentOp());
    scalar = loadHere(argument, Value());
  }
  return scalar;
}

Value KernelLowering::evaluate(Value tensor) {
  if (Value known = stage->unrounded.lookup(tensor))
    return known;
  Value scalar = elements.find(tensor)->second();
  return stage->unrounded[tensor] = scalar;
}

Value KernelLowering::read(Value tensor, nn::KernelAccess access) {
  if (Value row = rows.lookup(tensor))
    return row;
  if (Value known = stage->scalars.lookup(tensor))
    return known;
  Value scalar = elements.contains(tensor)
                     ? rounded(evaluate(tensor), tensor.getType())
                     : load(tensor, accessOf(access));
  return stage->scalars[tensor] = scalar;
}

Value KernelLowering::readAt(Value tensor, Value col) {
  Stage other;
  other.column = col;
  other.otherColumn = true;
  Value scalar;
  inStage(other, [&] { scalar = read(tensor, nn::KernelAccess::Element); });
  return scalar;
}

Value KernelLowering::column() {
  assert(stage != &top && "only an element has a column");
  if (!stage->column)
    stage->column = exec::ColumnOp::create(b, location, b.getI32Type());
  return stage->column;
}

Value KernelLowering::constant(double value) {
  FloatAttr attr = b.getF32FloatAttr(static_cast<float>(value));
  Value &known = stage->constants[attr];
  if (!known)
    known = arith::ConstantOp::create(b, location, attr);
  return known;
}

Value KernelLowering::splat(double value, Type tensor) {
  Type element = cast<RankedTensorType>(tensor).getElementType();
  if (isa<FloatType>(element))
    return constant(value);
  return arith::ConstantOp::create(
      b, location, b.getIntegerAttr(element, static_cast<int64_t>(value)));
}

//===----------------------------------------------------------------------===//
// Defining
//===----------------------------------------------------------------------===//

void KernelLowering::setAccess(Value output, exec::Access access) {
  for (auto [value, entry] : llvm::zip(outputs, outputAccess))
    if (value == output)
      entry = access;
}

Value KernelLowering::reduceColumns(nn::ReduceKind kind, Scalar element) {
  assert(stage == &top && "reductions belong to the row");
  auto reduce =
      exec::ReduceOp::create(b, location, b.getF32Type(), reduceOf(kind));
  Stage inner;
  inner.op = reduce;
  inStage(inner, [&] {
    Value value = element();
    exec::YieldOp::create(b, location, value);
  });
  return reduce.getResult();
}

void KernelLowering::define(Value result, Scalar element) {
  elements[result] = std::move(element);
  setAccess(result, exec::Access::Element);
}

void KernelLowering::defineRow(Value result, Value scalar) {
  rowStores[result] = scalar;
  rows[result] = rounded(scalar, result.getType());
  setAccess(result, exec::Access::Row);
}

void KernelLowering::defineColumns(Value result, nn::ReduceKind kind,
                                   Scalar element) {
  setAccess(result,
            space.columnReduction ? exec::Access::Column : exec::Access::Block);
  for (auto [number, output] : llvm::enumerate(outputs))
    if (output == result)
      sums.push_back({number, kind, element});
}

/// What a kernel of `space` gives for a sum over its rows.
static MemRefType blocksOf(nn::KernelSpace space, MLIRContext *context) {
  return MemRefType::get({space.rows / nn::kRowBlock, space.cols},
                         Float32Type::get(context));
}

void KernelLowering::reduceRows(const SumOverRows &sum) {
  BlockArgument target = body->getArgument(inputs.size() + sum.output);
  if (!space.columnReduction)
    target.setType(blocksOf(space, b.getContext()));
  auto reduce = exec::ReduceRowsOp::create(b, location, reduceOf(sum.kind),
                                           target, /*in_order=*/false);
  firstStore = firstStore ? firstStore : reduce;
  Stage inner;
  inner.op = reduce;
  inStage(inner, [&] {
    Value value = sum.element();
    exec::YieldOp::create(b, location, value);
  });
}

std::pair<exec::KernelOp, SmallVector<Value>> KernelLowering::finish() {
  SmallVector<std::pair<Value, Value>> stores; // element value, output
  if (llvm::any_of(outputs, [&](Value v) { return elements.contains(v); })) {
    auto map = exec::MapOp::create(b, location);
    firstStore = map;
    Stage inner;
    inner.op = map;
    inStage(inner, [&] {
      SmallVector<Value> values;
      for (Value output : outputs)
        values.push_back(elements.contains(output) ? evaluate(output)
                                                   : Value());
      for (auto [index, value] : llvm::enumerate(values))
        if (value)
          exec::StoreOp::create(b, location, value,
                                body->getArgument(inputs.size() + index));
    });
  }
  for (const SumOverRows &sum : sums)
    reduceRows(sum);
  for (auto [index, output] : llvm::enumerate(outputs))
    if (Value value = rowStores.lookup(output))
      exec::StoreOp::create(b, location, value,
                            body->getArgument(inputs.size() + index));
  SmallVector<Attribute> access;
  for (exec::Access entry :
       llvm::concat<exec::Access>(inputAccess, outputAccess))
    access.push_back(exec::AccessAttr::get(b.getContext(), entry));
  kernel.setAccessAttr(b.getArrayAttr(access));
  return {kernel, inputs};
}

//===----------------------------------------------------------------------===//
// Sums over rows, block by block
//===----------------------------------------------------------------------===//

/// The kernel that combines `blocks` into `result` as one over all rows would.
static exec::KernelOp combineBlocks(MemRefType blocks, Value result,
                                    exec::ReduceKind kind) {
  OpBuilder b(result.getContext());
  Location loc = b.getUnknownLoc();
  auto access = [&](exec::Access of) -> Attribute {
    return exec::AccessAttr::get(b.getContext(), of);
  };
  auto kernel = exec::KernelOp::create(
      b, result.getLoc(), "kernel", blocks.getDimSize(0), blocks.getDimSize(1),
      b.getArrayAttr(
          {access(exec::Access::Element), access(exec::Access::Column)}),
      /*outputs=*/1, /*column_reduction=*/true);
  Block &body = kernel.getBody().emplaceBlock();
  Value from = body.addArgument(blocks, loc);
  Value to = body.addArgument(memRefOf(result.getType()), loc);
  b.setInsertionPointToEnd(&body);
  auto reduce = exec::ReduceRowsOp::create(b, loc, kind, to, /*in_order=*/true);
  b.setInsertionPointToEnd(&reduce.getBody().emplaceBlock());
  Value block = exec::LoadOp::create(b, loc, b.getF32Type(), from, Value());
  exec::YieldOp::create(b, loc, block);
  return kernel;
}

/// For each of the `results` that `kernel` gives block by block.
static SmallVector<exec::KernelOp>
kernelsOfBlocks(exec::KernelOp kernel, ValueRange results, KernelCache &cache) {
  SmallVector<exec::KernelOp> kernels(results.size());
  if (kernel.getColumnReduction())
    return kernels;
  Block &body = kernel.getBody().front();
  unsigned inputs = body.getNumArguments() - kernel.getOutputs();
  for (auto reduce : body.getOps<exec::ReduceRowsOp>()) {
    auto target = cast<BlockArgument>(reduce.getTarget());
    unsigned at = target.getArgNumber() - inputs;
    bool adds = reduce.getKind() == exec::ReduceKind::Sum;
    kernels[at] = cache.share(combineBlocks(cast<MemRefType>(target.getType()),
                                            results[at], reduce.getKind()),
                              adds ? "sum_of_blocks" : "max_of_blocks");
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

/// Ops whose names would only lengthen the name of a kernel.
static bool isUnnamed(Operation *op) {
  return nn::movesElements(op) || op->hasTrait<OpTrait::ConstantLike>();
}

/// "add_rms_norm"; long chains keep their ends: "add_mul_9_ops_rms_norm".
static std::string kernelName(ArrayRef<Operation *> ops) {
  constexpr size_t longest = 4;
  SmallVector<StringRef> kinds;
  for (Operation *op : ops)
    if (!isUnnamed(op))
      kinds.push_back(op->getName().stripDialect());
  if (kinds.empty())
    return ops.back()->getName().stripDialect().str();
  if (kinds.size() <= longest)
    return llvm::join(kinds, "_");
  return (kinds[0] + "_" + kinds[1] + "_" + Twine(kinds.size() - 3) + "_ops_" +
          kinds.back())
      .str();
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

/// Lowers `ops`, in order; `outputs` are the values among their results that
/// leave.
static FailureOr<std::pair<exec::KernelOp, SmallVector<Value>>>
buildKernel(Operation *owner, ArrayRef<Operation *> ops, ValueRange outputs,
            Block *fusion) {
  nn::KernelSpace space =
      fusion ? cast<nn::FusionOp>(owner).getKernelSpace()
             : cast<nn::KernelOpInterface>(owner).getKernelSpace();
  if (!space.isExpressible())
    return ops.front()->emitOpError(
        "has no kernel: its dimensions are neither leading "
        "nor trailing; transpose first");
  KernelLowering lowering(space, owner->getLoc(), outputs);
  if (fusion)
    for (auto [inner, outer] :
         llvm::zip(fusion->getArguments(), owner->getOperands()))
      lowering.bind(inner, outer);
  for (Operation *op : ops)
    cast<nn::KernelOpInterface>(op).lowerToKernel(lowering);
  return lowering.finish();
}

FailureOr<KernelUse> lower::lowerToKernel(Operation *op, KernelCache &cache) {
  SmallVector<Operation *> ops = {op};
  SmallVector<Value> inner, outer;
  SmallVector<Operation *> definers;
  auto fusion = dyn_cast<nn::FusionOp>(op);
  Block *body = fusion ? &fusion.getBody().front() : nullptr;
  ValueRange given = op->getResults();
  if (fusion) {
    ops.clear();
    for (Operation &each : body->without_terminator())
      ops.push_back(&each);
    given = body->getTerminator()->getOperands();
  }
  for (auto [value, result] : llvm::zip(given, op->getResults())) {
    if (result.use_empty())
      continue;
    inner.push_back(value);
    outer.push_back(result);
    definers.push_back(value.getDefiningOp());
  }
  auto built = buildKernel(op, ops, inner, body);
  if (failed(built))
    return failure();
  exec::KernelOp kernel = cache.share(built->first, kernelName(ops));
  return KernelUse{kernel, built->second, outer, definers,
                   kernelsOfBlocks(kernel, outer, cache)};
}

KernelUse lower::splatKernel(Value tensor, KernelCache &cache) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t cols = type.getRank() == 0 ? 1 : type.getShape().back();
  nn::KernelSpace space;
  space.rows = type.getNumElements() / cols;
  space.cols = cols;
  KernelLowering lowering(space, tensor.getLoc(), tensor);
  lowering.define(tensor,
                  [&] { return lowering.splat(*splatOf(tensor), type); });
  exec::KernelOp kernel = lowering.finish().first;
  StringRef name = tensor.getDefiningOp()->getName().stripDialect();
  return {cache.share(kernel, name),
          {},
          {tensor},
          {tensor.getDefiningOp()},
          {exec::KernelOp()}};
}
