//===- ProductsOfInput.cpp - Products of one input ------------------------===//
#include "ProductsOfInput.h"
#include "dialects/Fsdp/Fsdp.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::wide;

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

JoinPlace::JoinPlace(ArrayRef<Operation *> ops) : ops(ops) {
  for (Operation *op : ops) {
    first = !first || op->isBeforeInBlock(first) ? op : first;
    last = !last || last->isBeforeInBlock(op) ? op : last;
  }
}

bool JoinPlace::find() {
  for (Operation *op = first; op != last->getNextNode();
       op = op->getNextNode()) {
    bool uses = llvm::any_of(op->getOperands(), [&](Value operand) {
      Operation *def = operand.getDefiningOp();
      return def && (users.contains(def) || llvm::is_contained(ops, def));
    });
    if (!uses)
      continue;
    // Nothing is scheduled yet, so the reduction of a gradient may move.
    bool mayMove = isMemoryEffectFree(op) ||
                   isa<nn::GradientOp, dist::CollectiveOpInterface>(op);
    if (!mayMove || llvm::is_contained(ops, op))
      return false;
    users.insert(op);
  }
  return true;
}

void JoinPlace::open(OpBuilder &builder) {
  [[maybe_unused]] bool found = find();
  assert(found && "the match was checked");
  for (Operation *op : llvm::reverse(users))
    op->moveAfter(last);
  builder.setInsertionPointAfter(last);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

JoinWriter::JoinWriter(MLIRContext *context)
    : b(context), loc(UnknownLoc::get(context)) {}

void JoinWriter::beginAt(JoinPlace &place) {
  place.open(b);
  module = nn::commonModule(place.getOps());
  loc = place.getLast()->getLoc();
}

void JoinWriter::beginBefore(Operation *op) {
  b.setInsertionPoint(op);
  module = nn::moduleOf(op);
  loc = op->getLoc();
}

Value JoinWriter::reshape(Value value, ArrayRef<int64_t> shape) {
  if (tensorType(value).getShape() == shape)
    return value;
  return create<nn::ReshapeOp>(tensorType(value).clone(shape), value);
}

Value JoinWriter::asMatrix(Value value) {
  RankedTensorType type = tensorType(value);
  int64_t columns = type.getShape().back();
  return reshape(value, {type.getNumElements() / columns, columns});
}

Value JoinWriter::concat(ValueRange parts) {
  int64_t rows = 0;
  for (Value part : parts)
    rows += tensorType(part).getDimSize(0);
  int64_t columns = tensorType(parts.front()).getDimSize(1);
  return create<nn::ConcatOp>(tensorType(parts.front()).clone({rows, columns}),
                              parts, /*dim=*/0);
}

void JoinWriter::replace(Value value, Value by) {
  value.replaceAllUsesWith(reshape(by, tensorType(value).getShape()));
}

void JoinWriter::replaceByRows(ValueRange values, Value whole) {
  int64_t row = 0;
  for (Value value : values) {
    value.replaceAllUsesWith(
        create<nn::SliceOp>(value.getType(), whole, ArrayRef<int64_t>{row, 0}));
    row += tensorType(value).getDimSize(0);
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

template <typename OpT> static OpT onlyUser(Value value) {
  return value.hasOneUse() ? dyn_cast<OpT>(*value.user_begin()) : OpT();
}

/// The addition that gives the sum of `parts`, each of which is added once and
/// used for nothing else; null if there is none.
static nn::AddOp sumOf(ArrayRef<Value> parts) {
  llvm::SmallSetVector<Value, 4> left(parts.begin(), parts.end());
  nn::AddOp sum;
  while (left.size() > 1) {
    auto next = llvm::find_if(left, [&](Value part) {
      auto add = onlyUser<nn::AddOp>(part);
      return add && add.getLhs() != add.getRhs() &&
             left.contains(add.getLhs()) && left.contains(add.getRhs()) &&
             add.getLhs().hasOneUse() && add.getRhs().hasOneUse();
    });
    if (next == left.end())
      return {};
    sum = onlyUser<nn::AddOp>(*next);
    left.remove(sum.getLhs());
    left.remove(sum.getRhs());
    left.insert(sum.getResult());
  }
  return sum;
}

bool ProductsOfInput::addGradients(nn::LinearOp op) {
  if (op.getBias() || op.getInput() != input || op.getWeight() == input)
    return false;
  Value cotangent;
  for (Operation *user : op.getWeight().getUsers())
    if (auto grad = dyn_cast<nn::LinearInputGradOp>(user)) {
      if (cotangent || grad.getCotangent() == op.getWeight() ||
          llvm::is_contained(cotangents(), grad.getCotangent()))
        return false;
      cotangent = grad.getCotangent();
      inputGrads.push_back(grad);
    }
  if (!cotangent)
    return true;
  size_t before = weightGrads.size();
  for (Operation *user : cotangent.getUsers())
    if (auto grad = dyn_cast<nn::LinearWeightGradOp>(user);
        grad && grad.getInput() == input) {
      if (grad.getSum() || weightGrads.size() > before ||
          tensorType(grad.getResult()).getElementType() !=
              tensorType(input).getElementType())
        return false;
      weightGrads.push_back(grad);
    }
  return true;
}

bool ProductsOfInput::complete() {
  llvm::SmallDenseSet<Value, 4> weights;
  for (nn::LinearOp op : forward)
    if (!weights.insert(op.getWeight()).second || !addGradients(op))
      return false;
  auto isAllOrNone = [&](size_t count) {
    return count == 0 || count == forward.size();
  };
  if (!isAllOrNone(inputGrads.size()) || !isAllOrNone(weightGrads.size()))
    return false;
  if (!hasGradients())
    return true;
  SmallVector<Value> parts;
  for (nn::LinearInputGradOp grad : inputGrads)
    parts.push_back(grad.getResult());
  inputGrad = sumOf(parts);
  return bool(inputGrad);
}

SmallVector<Value> ProductsOfInput::cotangents() const {
  SmallVector<Value> values;
  for (nn::LinearInputGradOp grad : inputGrads)
    values.push_back(grad.getCotangent());
  return values;
}

JoinPlace ProductsOfInput::forwardPlace() const {
  return JoinPlace(SmallVector<Operation *>(forward.begin(), forward.end()));
}

JoinPlace ProductsOfInput::gradientPlace() const {
  SmallVector<Operation *> ops(inputGrads.begin(), inputGrads.end());
  ops.append(weightGrads.begin(), weightGrads.end());
  return JoinPlace(ops);
}

bool ProductsOfInput::havePlaces() const {
  JoinPlace place = forwardPlace();
  if (!place.find())
    return false;
  if (!hasGradients())
    return true;
  JoinPlace gradients = gradientPlace();
  // The gradients use the wide weight.
  return place.getLast()->isBeforeInBlock(gradients.getLast()) &&
         gradients.find();
}

Value ProductsOfInput::createWeight(JoinWriter &writer) const {
  SmallVector<Value> weights;
  for (nn::LinearOp op : forward)
    weights.push_back(op.getWeight());
  return writer.concat(weights);
}

Value ProductsOfInput::weightForGradients(JoinWriter &writer,
                                          Value weight) const {
  bool isCopied = llvm::any_of(forward, [](nn::LinearOp op) {
    Operation *def = op.getWeight().getDefiningOp();
    return !def || isa<nn::ReadOp>(def) || nn::aliasesOperands(def);
  });
  return isCopied ? createWeight(writer) : weight;
}

void ProductsOfInput::replaceGradients(JoinWriter &writer, Value input,
                                       Value allWeights) const {
  nn::AddOp sum = inputGrad;
  writer.replace(sum.getResult(), input);
  SmallVector<Value> parts;
  for (nn::LinearWeightGradOp grad : weightGrads)
    parts.push_back(grad.getResult());
  if (allWeights)
    writer.replaceByRows(parts, allWeights);
}
