//===- WideProductsPass.cpp - Products of one input as one ----------------===//
//
// GraphPasses.td says what becomes of what. A match is checked whole before an
// op is touched.
//
//===----------------------------------------------------------------------===//
#include "ProductsOfInput.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_WIDEPRODUCTS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;
using namespace fsdp::wide;

namespace {

//===----------------------------------------------------------------------===//
// Gated feed-forward
//===----------------------------------------------------------------------===//

/// No element of a result depends on another element of an operand.
bool isElementwise(Operation *op) {
  auto sharding = dyn_cast<nn::ShardingOpInterface>(op);
  if (!sharding || op->getNumResults() != 1 || op->getNumOperands() == 0)
    return false;
  // What moves elements says by dimension where they go.
  if (nn::movesElements(op) && !isa<nn::CastOp>(op))
    return false;
  auto hasShape = [&](Type type) {
    return cast<ShapedType>(type).getShape() ==
           tensorType(op->getResult(0)).getShape();
  };
  if (!llvm::all_of(op->getOperandTypes(), hasShape))
    return false;
  nn::ShardingRule rule = sharding.getShardingRule();
  return llvm::none_of(rule.factors,
                       [](auto &factor) { return factor.needsReplication; }) &&
         llvm::all_of(rule.operands,
                      [&](auto &dims) { return dims == rule.results[0]; });
}

/// What lies between two products of one input and the products that follow:
/// ops by element, here [.., columns], which become [columns, rows].
class Gate {
public:
  explicit Gate(ProductsOfInput &products) : products(products) {}

  /// False if anything else is among them.
  bool find();
  void write(JoinWriter &writer);

private:
  bool add(Value value);
  bool addProducer(Operation *op);
  bool addUser(Operation *op, Value value);
  void writeOther(JoinWriter &writer, Operation *op);

  ProductsOfInput &products;
  llvm::SmallSetVector<Value, 8> values;
  /// ProductsOfInput with other inputs or of other cotangents.
  llvm::SmallSetVector<Operation *, 4> others;
};

bool Gate::add(Value value) {
  if (tensorType(value).getShape() !=
      tensorType(products.forward[0].getResult()).getShape())
    return false;
  values.insert(value);
  return true;
}

bool Gate::addProducer(Operation *op) {
  if (!op)
    return false;
  if (isa<nn::LinearOp>(op))
    return llvm::is_contained(products.forward, op);
  if (isa<nn::LinearInputGradOp>(op)) {
    others.insert(op);
    return true;
  }
  if (!isElementwise(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value v) { return add(v); });
}

bool Gate::addUser(Operation *op, Value value) {
  if (auto linear = dyn_cast<nn::LinearOp>(op)) {
    others.insert(op);
    return !linear.getBias() && linear.getWeight() != value;
  }
  if (auto grad = dyn_cast<nn::LinearInputGradOp>(op))
    return llvm::is_contained(products.inputGrads, op) &&
           grad.getWeight() != value;
  if (auto grad = dyn_cast<nn::LinearWeightGradOp>(op)) {
    if (llvm::is_contained(products.weightGrads, op))
      return grad.getInput() != value;
    others.insert(op);
    return grad.getInput() == value && !values.contains(grad.getCotangent()) &&
           !grad.getSum() &&
           tensorType(grad.getResult()).getElementType() ==
               tensorType(value).getElementType();
  }
  if (!isElementwise(op))
    return false;
  return llvm::all_of(op->getOperands(), [&](Value v) { return add(v); }) &&
         add(op->getResult(0));
}

bool Gate::find() {
  for (nn::LinearOp op : products.forward)
    if (!add(op.getResult()))
      return false;
  for (Value cotangent : products.cotangents())
    if (!add(cotangent))
      return false;
  for (size_t i = 0; i < values.size(); ++i) {
    Value value = values[i];
    if (!addProducer(value.getDefiningOp()))
      return false;
    for (Operation *user : value.getUsers())
      if (!addUser(user, value))
        return false;
  }
  // What has both sides inside has no side to turn.
  bool hasSides = llvm::none_of(others, [&](Operation *op) {
    return values.contains(op->getResult(0)) &&
           llvm::any_of(op->getOperands(),
                        [&](Value v) { return values.contains(v); });
  });
  return hasSides && products.havePlaces();
}

/// With `h` for a value of the gate, [columns, rows].
void Gate::writeOther(JoinWriter &writer, Operation *op) {
  writer.beginBefore(op);
  Value result = op->getResult(0);
  auto matmul = [&](Value lhs, Value rhs) {
    return writer.create<nn::MatmulOp>(lhs, rhs, /*transposeLhs=*/true,
                                       /*transposeRhs=*/true);
  };
  if (auto linear = dyn_cast<nn::LinearOp>(op)) // h^T w^T
    writer.replace(result, matmul(linear.getInput(), linear.getWeight()));
  else if (auto grad = dyn_cast<nn::LinearInputGradOp>(op)) // w^T dy^T
    result.replaceAllUsesWith(
        matmul(grad.getWeight(), writer.asMatrix(grad.getCotangent())));
  else // dy^T h^T
    writer.replace(
        result,
        matmul(writer.asMatrix(cast<nn::LinearWeightGradOp>(op).getCotangent()),
               cast<nn::LinearWeightGradOp>(op).getInput()));
}

void Gate::write(JoinWriter &writer) {
  JoinPlace forward = products.forwardPlace();
  writer.beginAt(forward);
  Value weight = products.createWeight(writer);
  Value rows = writer.asMatrix(products.input);
  SmallVector<Value> parts;
  for (Value value : values) {
    RankedTensorType type = tensorType(value);
    int64_t columns = type.getShape().back();
    value.setType(type.clone({columns, type.getNumElements() / columns}));
  }
  for (nn::LinearOp op : products.forward)
    parts.push_back(op.getResult());
  writer.replaceByRows(
      parts, writer.create<nn::MatmulOp>(weight, rows, /*transposeLhs=*/false,
                                         /*transposeRhs=*/true));
  for (Operation *op : others)
    writeOther(writer, op);
  if (!products.hasGradients())
    return;
  JoinPlace backward = products.gradientPlace();
  writer.beginAt(backward);
  Value cotangent = writer.concat(products.cotangents());
  Value inputGrad = writer.create<nn::MatmulOp>(
      cotangent, products.weightForGradients(writer, weight),
      /*transposeLhs=*/true);
  Value weightGrad;
  if (!products.weightGrads.empty())
    weightGrad =
        writer.create<nn::MatmulOp>(cotangent, writer.asMatrix(products.input));
  products.replaceGradients(writer, inputGrad, weightGrad);
}

//===----------------------------------------------------------------------===//
// Queries, keys and values
//===----------------------------------------------------------------------===//

/// The heads that an attention takes from three products of one input.
class Heads {
public:
  explicit Heads(nn::AttentionOp attention) : attention(attention) {}

  /// False if it takes them from anything else.
  bool find();
  void write(JoinWriter &writer);

private:
  bool addProduct(nn::ReshapeOp heads);
  bool findGradients();
  void writeGradients(JoinWriter &writer, Value weight);

  nn::AttentionOp attention;
  nn::RotaryOp query, key;
  ProductsOfInput products;
  /// Gradients of query, key and value; the first two not rotated back.
  SmallVector<Value> gradients;
};

bool Heads::addProduct(nn::ReshapeOp heads) {
  auto linear =
      heads ? heads.getInput().getDefiningOp<nn::LinearOp>() : nn::LinearOp();
  if (!linear || !linear->hasOneUse() ||
      llvm::is_contained(products.forward, linear))
    return false;
  // Only the last dimension became heads.
  if (tensorType(linear).getRank() != 3 ||
      tensorType(linear).getShape().take_front(2) !=
          tensorType(heads).getShape().take_front(2))
    return false;
  products.input = linear.getInput();
  products.forward.push_back(linear);
  return true;
}

bool Heads::find() {
  query = attention.getQuery().getDefiningOp<nn::RotaryOp>();
  key = attention.getKey().getDefiningOp<nn::RotaryOp>();
  if (!query || !key || query == key || query.getInverse() ||
      key.getInverse() || query.getTable() != key.getTable() ||
      query.getPairs() != key.getPairs())
    return false;
  auto asHeads = [](Value value) {
    return value.getDefiningOp<nn::ReshapeOp>();
  };
  if (!query.getInput().hasOneUse() || !key.getInput().hasOneUse() ||
      !addProduct(asHeads(query.getInput())) ||
      !addProduct(asHeads(key.getInput())) ||
      !addProduct(asHeads(attention.getValue())))
    return false;
  if (!products.complete() || !products.havePlaces())
    return false;
  Operation *table = query.getTable().getDefiningOp();
  Operation *first = products.forwardPlace().getFirst();
  return (!table || table->isBeforeInBlock(first)) && findGradients();
}

bool Heads::findGradients() {
  for (auto [i, cotangent] : llvm::enumerate(products.cotangents())) {
    auto reshape = cotangent.getDefiningOp<nn::ReshapeOp>();
    if (!reshape)
      return false;
    Value heads = reshape.getInput();
    RankedTensorType type = tensorType(
        i == 2 ? attention.getValue() : (i == 0 ? query : key).getResult());
    if (i < 2) {
      auto back = heads.getDefiningOp<nn::RotaryOp>();
      if (!back || !back.getInverse() || back.getTable() != query.getTable() ||
          back.getPairs() != query.getPairs())
        return false;
      heads = back.getInput();
    }
    if (heads.getType() != type)
      return false;
    gradients.push_back(heads);
  }
  return true;
}

void Heads::write(JoinWriter &writer) {
  JoinPlace place = products.forwardPlace();
  writer.beginAt(place);
  Value weight = products.createWeight(writer);
  Value whole = writer.create<nn::LinearOp>(products.input, weight);
  RankedTensorType q = tensorType(query), v = tensorType(attention.getValue());
  SmallVector<int64_t> shape(q.getShape());
  shape[2] += 2 * v.getDimSize(2);
  auto split =
      writer.create<nn::SplitHeadsOp>(q, v, v, writer.reshape(whole, shape),
                                      query.getTable(), query.getPairs());
  Value old = attention.getValue();
  query.getResult().replaceAllUsesWith(split.getQuery());
  key.getResult().replaceAllUsesWith(split.getKey());
  old.replaceAllUsesWith(split.getValue());
  if (products.hasGradients())
    writeGradients(writer, weight);
}

void Heads::writeGradients(JoinWriter &writer, Value weight) {
  JoinPlace place = products.gradientPlace();
  writer.beginAt(place);
  SmallVector<int64_t> shape(tensorType(gradients[0]).getShape());
  shape[2] += 2 * tensorType(gradients[2]).getDimSize(2);
  Value joined = writer.create<nn::JoinHeadsOp>(
      tensorType(gradients[0]).clone(shape), gradients[0], gradients[1],
      gradients[2], query.getTable(), query.getPairs());
  Value cotangent =
      writer.reshape(joined, {shape[0], shape[1], shape[2] * shape[3]});
  Value inputGrad = writer.create<nn::LinearInputGradOp>(
      cotangent, products.weightForGradients(writer, weight));
  Value weightGrad;
  if (!products.weightGrads.empty())
    weightGrad =
        writer.create<nn::LinearWeightGradOp>(cotangent, products.input);
  products.replaceGradients(writer, inputGrad, weightGrad);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Ops that nobody needs any more.
void eraseUnused(Block &block) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

struct WideProductsPass : fsdp::impl::WideProductsBase<WideProductsPass> {
  void runOnOperation() override {
    if (!getOperation().getBody().hasOneBlock())
      return;
    Block &block = getOperation().front();
    if (joinHeads(block))
      eraseUnused(block);
    if (joinGates(block))
      eraseUnused(block);
  }

  bool joinHeads(Block &block) {
    bool changed = false;
    JoinWriter writer(&getContext());
    for (auto attention : llvm::to_vector(block.getOps<nn::AttentionOp>())) {
      Heads heads(attention);
      if (!heads.find())
        continue;
      heads.write(writer);
      changed = true;
    }
    return changed;
  }

  bool joinGates(Block &block) {
    bool changed = false;
    JoinWriter writer(&getContext());
    llvm::DenseSet<Operation *> seen;
    for (auto linear : llvm::to_vector(block.getOps<nn::LinearOp>())) {
      // What another gate was written for has no users any more.
      if (linear->use_empty() || seen.contains(linear))
        continue;
      ProductsOfInput products = productsLike(linear);
      seen.insert(products.forward.begin(), products.forward.end());
      if (products.forward.size() < 2 || !products.complete())
        continue;
      Gate gate(products);
      if (!gate.find())
        continue;
      gate.write(writer);
      changed = true;
    }
    return changed;
  }

  /// Those of the same input and shape, in their order.
  static ProductsOfInput productsLike(nn::LinearOp linear) {
    ProductsOfInput products;
    products.input = linear.getInput();
    for (Operation *user : products.input.getUsers())
      if (auto other = dyn_cast<nn::LinearOp>(user);
          other && other.getType() == linear.getType() &&
          other.getInput() == products.input && !other->use_empty())
        products.forward.push_back(other);
    llvm::sort(products.forward, [](nn::LinearOp a, nn::LinearOp b) {
      return a->isBeforeInBlock(b);
    });
    return products;
  }
};

} // namespace
