//===- ChunkLossPass.cpp - Logits and their loss a chunk of rows at a time ===//
//
// Finds a loss with its gradient, checks that nobody needs its logits whole,
// and writes both anew, chunk by chunk. GraphPasses.td says where the chunks
// stand and which bits change.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"

namespace fsdp {
#define GEN_PASS_DEF_CHUNKLOSS
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

namespace {

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

/// The ops of one loss. Those of gradients that nobody wants are null.
struct Loss {
  nn::LinearOp projection;
  nn::CrossEntropyOp entropy;
  nn::CrossEntropyGradOp entropyGrad;
  nn::LinearInputGradOp inputGrad;
  nn::LinearWeightGradOp weightGrad;
  nn::SumOp biasGrad;

  int64_t rows() { return typeOf(entropy.getRows()).getNumElements(); }
};

/// Takes `op` as the one that produces this gradient; false if there is one.
template <typename OpT> bool take(OpT &place, Operation *op) {
  auto found = dyn_cast<OpT>(op);
  if (!found || place)
    return false;
  place = found;
  return true;
}

/// Whether `op` is the gradient of the projection's bias: a sum over rows.
bool isBiasGrad(Operation *op, nn::LinearOp projection) {
  auto sum = dyn_cast<nn::SumOp>(op);
  if (!sum || !projection.getBias())
    return false;
  auto rows = llvm::seq<int64_t>(0, typeOf(sum.getInput()).getRank() - 1);
  return llvm::equal(sum.getDims(), rows);
}

/// Whether `op` produces a gradient of the projection of `d`, which it takes as
/// the cotangent alone, and adds it to nothing.
bool isGradOf(Operation *op, Value d, nn::LinearOp projection) {
  if (auto input = dyn_cast<nn::LinearInputGradOp>(op))
    return input.getCotangent() == d && input.getWeight() != d;
  auto weight = dyn_cast<nn::LinearWeightGradOp>(op);
  return weight && weight.getCotangent() == d && weight.getInput() != d &&
         weight.getInput() == projection.getInput() && !weight.getSum();
}

/// The ops that use the gradient of the logits.
LogicalResult findGradients(Loss &loss) {
  Value d = loss.entropyGrad.getResult();
  for (Operation *user : d.getUsers()) {
    bool isKnown =
        (isGradOf(user, d, loss.projection) &&
         (take(loss.inputGrad, user) || take(loss.weightGrad, user))) ||
        (isBiasGrad(user, loss.projection) && take(loss.biasGrad, user));
    if (!isKnown)
      return user->emitOpError("uses the gradient of all logits, which chunks "
                               "do not have; leave compile.loss_chunks at 1");
  }
  return success();
}

/// Whether ranks have a part of the classes each, which they then exchange.
bool isGathered(Value logits) {
  Operation *op = logits.getDefiningOp();
  while (op && isa<nn::ReshapeOp, nn::TransposeOp, nn::SliceOp>(op))
    op = op->getOperand(0).getDefiningOp();
  return op && isa<dist::CollectiveOpInterface>(op);
}

/// Takes the loss that `entropyGrad` is the gradient of.
FailureOr<Loss> findLoss(nn::CrossEntropyGradOp entropyGrad) {
  Loss loss;
  loss.entropyGrad = entropyGrad;
  loss.entropy = entropyGrad.getLse().getDefiningOp<nn::CrossEntropyOp>();
  Value logits = entropyGrad.getLogits();
  if (!loss.entropy || loss.entropy.getLogits() != logits ||
      loss.entropy.getTargets() != entropyGrad.getTargets() ||
      loss.entropy.getIgnoreIndex() != entropyGrad.getIgnoreIndex())
    return entropyGrad.emitOpError(
        "does not follow the nn.cross_entropy whose gradient it is");
  loss.projection = logits.getDefiningOp<nn::LinearOp>();
  if (!loss.projection)
    return (loss.entropy.emitOpError(
                "takes logits that no nn.linear of this rank produces, so they "
                "have no chunks: leave compile.loss_chunks at 1")
            << (isGathered(logits)
                    ? ", or do not shard the projection's weight in the policy"
                    : ""))
               .attachNote(logits.getLoc())
           << "they are produced here";
  for (Operation *user : logits.getUsers())
    if (user != loss.entropy && user != entropyGrad)
      return user->emitOpError("uses all logits of the loss, which chunks do "
                               "not have; leave compile.loss_chunks at 1");
  if (failed(findGradients(loss)))
    return failure();
  return loss;
}

//===----------------------------------------------------------------------===//
// The chunks of one loss
//===----------------------------------------------------------------------===//

/// The last values of all chunks, one after another, and the sums so far.
struct Results {
  SmallVector<Value> rows, lse, inputGrad;
  Value weightGrad, biasGrad;
};

class Chunker {
public:
  Chunker(Loss loss, int64_t chunks)
      : loss(loss), chunks(chunks), size(loss.rows() / chunks),
        builder(loss.entropy) {}

  LogicalResult run() {
    FailureOr<Value> early = makeCotangentEarly();
    if (failed(early))
      return failure();
    builder.setInsertionPoint(loss.entropy);
    nn::ModuleScope scope(builder, nn::moduleOf(loss.entropy));
    input = asRows(loss.projection.getInput(), /*dims=*/1);
    targets = asRows(loss.entropy.getTargets(), /*dims=*/0);
    Value cotangent = asRows(*early, /*dims=*/0);
    for (int64_t i = 0; i + 1 < chunks; ++i) {
      forward(i);
      backward(i, cotangent);
    }
    forward(chunks - 1);
    finishForward();
    builder.setInsertionPoint(loss.entropyGrad);
    backward(chunks - 1, asRows(loss.entropyGrad.getCotangent(), /*dims=*/0));
    finishBackward();
    return success();
  }

private:
  FailureOr<Value> makeCotangentEarly();
  LogicalResult moveBeforeLoss(Operation *op);

  /// `value` with its rows as one dimension and `dims` after them.
  Value asRows(Value value, int64_t dims) {
    ArrayRef<int64_t> shape = typeOf(value).getShape();
    SmallVector<int64_t> flat = {loss.rows()};
    llvm::append_range(flat, shape.take_back(dims));
    return reshape(value, flat);
  }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    if (typeOf(value).getShape() == shape)
      return value;
    return nn::ReshapeOp::create(builder, value.getLoc(),
                                 typeOf(value).clone(shape), value);
  }

  /// Rows of chunk `i`.
  Value slice(Value value, int64_t i) {
    SmallVector<int64_t> shape(typeOf(value).getShape());
    SmallVector<int64_t> offsets(shape.size(), 0);
    shape[0] = size;
    offsets[0] = i * size;
    return nn::SliceOp::create(builder, value.getLoc(),
                               typeOf(value).clone(shape), value, offsets);
  }

  void forward(int64_t i);
  void backward(int64_t i, Value cotangent);
  /// Adds dy^T x to `sum`, which is null for the first chunk.
  void add(Value &sum, Value dy, Value x, Operation *like);
  void finishForward();
  void finishBackward();
  /// Puts the chunks of `result` in its place.
  void replace(Value result, ArrayRef<Value> parts);

  Loss loss;
  int64_t chunks, size;
  OpBuilder builder;
  Value input, targets;
  // Of the chunk at work.
  Value rows, logits;
  nn::CrossEntropyOp entropy;
  Results results;
};

} // namespace

/// Brings `op`, which the early cotangent needs, before the chunks.
LogicalResult Chunker::moveBeforeLoss(Operation *op) {
  if (op->isBeforeInBlock(loss.entropy))
    return success();
  if (op == loss.entropy)
    return loss.entropy.emitOpError(
        "has a cotangent that depends on its logits and is not known before "
        "them, so they have no chunks; leave compile.loss_chunks at 1");
  if (!isMemoryEffectFree(op) && !isa<dist::CollectiveOpInterface>(op))
    return op->emitOpError("produces the cotangent of the losses and cannot be "
                           "moved before them; leave compile.loss_chunks at 1");
  op->moveBefore(loss.entropy);
  return success();
}

/// The cotangent of the rows a second time, before the chunks: a clone of
/// what computes it from nn.seed, with a constant for that.
FailureOr<Value> Chunker::makeCotangentEarly() {
  Value cotangent = loss.entropyGrad.getCotangent();
  BackwardSliceOptions options;
  options.inclusive = true;
  options.omitBlockArguments = true;
  options.filter = [&](Operation *op) { return !isa<nn::SeedOp>(op); };
  SetVector<Operation *> producers;
  if (failed(getBackwardSlice(cotangent, &producers, options)))
    return loss.entropyGrad.emitOpError("has a cotangent of unknown origin");
  IRMapping early;
  builder.setInsertionPoint(loss.entropy);
  for (Operation *op : producers) {
    for (Value operand : op->getOperands())
      if (auto seed = operand.getDefiningOp<nn::SeedOp>();
          seed && !early.contains(seed.getResult()))
        early.map(seed.getResult(),
                  nn::ConstantOp::create(builder, seed.getLoc(),
                                         typeOf(seed.getResult()), 1.0));
    bool dependsOnSeed = llvm::any_of(
        op->getOperands(), [&](Value value) { return early.contains(value); });
    if (dependsOnSeed)
      builder.clone(*op, early);
    else if (failed(moveBeforeLoss(op)))
      return failure();
  }
  return early.lookupOrDefault(cotangent);
}

void Chunker::forward(int64_t i) {
  nn::LinearOp whole = loss.projection;
  nn::ModuleScope scope(builder, nn::moduleOf(whole));
  rows = slice(input, i);
  logits = nn::LinearOp::create(builder, whole.getLoc(), rows,
                                whole.getWeight(), whole.getBias());
  nn::ModuleScope lossScope(builder, nn::moduleOf(loss.entropy));
  entropy = nn::CrossEntropyOp::create(
      builder, loss.entropy.getLoc(), logits, slice(targets, i),
      static_cast<int64_t>(loss.entropy.getIgnoreIndex()));
  results.rows.push_back(entropy.getRows());
  results.lse.push_back(entropy.getLse());
}

void Chunker::add(Value &sum, Value dy, Value x, Operation *like) {
  nn::ModuleScope scope(builder, nn::moduleOf(like));
  Type element = typeOf(dy).getElementType();
  if (element.isBF16())
    element = builder.getF32Type();
  auto type = RankedTensorType::get(
      {typeOf(dy).getShape().back(), typeOf(x).getShape().back()}, element);
  sum =
      nn::LinearWeightGradOp::create(builder, like->getLoc(), type, dy, x, sum);
}

void Chunker::backward(int64_t i, Value cotangent) {
  nn::CrossEntropyGradOp whole = loss.entropyGrad;
  nn::ModuleScope scope(builder, nn::moduleOf(whole));
  Value gradient = nn::CrossEntropyGradOp::create(
      builder, whole.getLoc(), logits.getType(), logits, entropy.getTargets(),
      entropy.getLse(), slice(cotangent, i), whole.getIgnoreIndexAttr());
  if (nn::LinearInputGradOp op = loss.inputGrad) {
    nn::ModuleScope inner(builder, nn::moduleOf(op));
    results.inputGrad.push_back(nn::LinearInputGradOp::create(
        builder, op.getLoc(), gradient, op.getWeight()));
  }
  if (loss.weightGrad)
    add(results.weightGrad, gradient, rows, loss.weightGrad);
  if (loss.biasGrad) {
    // A sum over rows is a product with ones, which can be added to in f32.
    Value ones = nn::ConstantOp::create(
        builder, loss.biasGrad.getLoc(),
        RankedTensorType::get({size, 1}, typeOf(gradient).getElementType()),
        1.0);
    add(results.biasGrad, gradient, ones, loss.biasGrad);
  }
}

void Chunker::replace(Value result, ArrayRef<Value> parts) {
  Operation *op = result.getDefiningOp();
  nn::ModuleScope scope(builder, nn::moduleOf(op));
  SmallVector<int64_t> shape(typeOf(parts.front()).getShape());
  shape[0] = loss.rows();
  Value whole = nn::ConcatOp::create(
      builder, op->getLoc(), typeOf(result).clone(shape), parts, /*dim=*/0);
  result.replaceAllUsesWith(reshape(whole, typeOf(result).getShape()));
}

void Chunker::finishForward() {
  replace(loss.entropy.getRows(), results.rows);
  if (!loss.entropy.getLse().hasOneUse())
    replace(loss.entropy.getLse(), results.lse);
}

void Chunker::finishBackward() {
  if (loss.inputGrad)
    replace(loss.inputGrad.getResult(), results.inputGrad);
  auto finish = [&](Operation *op, Value sum) {
    nn::ModuleScope scope(builder, nn::moduleOf(op));
    RankedTensorType type = typeOf(op->getResult(0));
    sum = reshape(sum, type.getShape());
    if (sum.getType() != type)
      sum = nn::CastOp::create(builder, op->getLoc(), type, sum);
    op->getResult(0).replaceAllUsesWith(sum);
  };
  if (loss.weightGrad)
    finish(loss.weightGrad, results.weightGrad);
  if (loss.biasGrad)
    finish(loss.biasGrad, results.biasGrad);
  const std::initializer_list<Operation *> replaced = {
      loss.inputGrad,   loss.weightGrad, loss.biasGrad,
      loss.entropyGrad, loss.entropy,    loss.projection};
  for (Operation *op : replaced)
    if (op)
      op->erase();
}

//===----------------------------------------------------------------------===//
// The module
//===----------------------------------------------------------------------===//

namespace {

struct ChunkLossPass : fsdp::impl::ChunkLossBase<ChunkLossPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (chunks < 1) {
      module.emitError("a loss is split into at least one chunk of rows, not ")
          << chunks.getValue();
      return signalPassFailure();
    }
    if (chunks == 1)
      return;
    SmallVector<nn::CrossEntropyGradOp> gradients;
    module.walk([&](nn::CrossEntropyGradOp op) { gradients.push_back(op); });
    if (gradients.empty()) {
      module.emitError(
          "no program has an nn.cross_entropy and its gradient to split into ")
          << chunks.getValue() << " chunks; leave compile.loss_chunks at 1";
      return signalPassFailure();
    }
    for (nn::CrossEntropyGradOp gradient : gradients)
      if (failed(cut(gradient)))
        return signalPassFailure();
  }

  LogicalResult cut(nn::CrossEntropyGradOp gradient) {
    FailureOr<Loss> loss = findLoss(gradient);
    if (failed(loss))
      return failure();
    if (loss->rows() % chunks != 0)
      return loss->entropy.emitOpError("has ")
             << loss->rows() << " rows on a rank, which " << chunks.getValue()
             << " chunks do not divide; make compile.loss_chunks a divisor of "
             << loss->rows();
    return Chunker(*loss, chunks).run();
  }
};

} // namespace
