//===- MeanOfParts.cpp - A loss as the mean of ranks' means ---------------===//
#include "passes/Graph/MeanOfParts.h"
#include "dialects/NN/ModulePath.h"
#include "passes/Graph/BatchRows.h"

using namespace mlir;
using namespace fsdp;

namespace {

/// sum(rows) / count, as crossEntropy of a model gives it.
struct Mean {
  nn::DivideByCountOp division;
  nn::SumOp sum;
  nn::CountLabelsOp count;
};

} // namespace

static FailureOr<Mean> findMean(func::FuncOp program, Value loss) {
  Mean mean;
  mean.division = loss.getDefiningOp<nn::DivideByCountOp>();
  if (mean.division) {
    mean.sum = mean.division.getSum().getDefiningOp<nn::SumOp>();
    mean.count = mean.division.getCount().getDefiningOp<nn::CountLabelsOp>();
  }
  if (!mean.sum || !mean.count)
    return program.emitError(
        "the loss is not a sum of rows (nn.sum) divided by a count of labels "
        "(nn.count_labels): it has no means of parts");
  return mean;
}

/// The rows with the batch split into `parts`, and the dimension of the parts:
/// [p * n, …] as [p, n, …].
static FailureOr<std::pair<Value, int64_t>>
cutRows(func::FuncOp program, OpBuilder &builder, Mean mean, int64_t parts) {
  Value rows = mean.sum.getInput();
  auto type = cast<RankedTensorType>(rows.getType());
  BatchRows batch(program);
  BatchRows::Place place = batch.of(rows);
  BatchRows::Place labels = batch.of(mean.count.getTargets());
  if (place.kind != BatchRows::Kind::Rows ||
      labels.kind != BatchRows::Kind::Rows || labels.dim != 0 ||
      labels.examples != place.examples)
    return mean.sum.emitError(
        "the rows that the loss adds up and the labels that it counts are not "
        "along the examples of one batch, so parts of the batch have no means");
  if (place.examples % parts != 0)
    return mean.sum.emitError("the batch ")
           << type << " of " << place.examples
           << " examples cannot be split into " << parts
           << " equal parts, each with a mean of its own";
  SmallVector<int64_t> shape(type.getShape());
  shape[place.dim] /= parts;
  shape.insert(shape.begin() + place.dim, parts);
  Value cut = nn::ReshapeOp::create(builder, mean.sum.getLoc(),
                                    type.clone(shape), rows);
  return std::pair(cut, place.dim);
}

LogicalResult fsdp::takeMeanOfParts(func::FuncOp program, Value loss,
                                    int64_t parts) {
  FailureOr<Mean> mean = findMean(program, loss);
  if (failed(mean))
    return failure();
  OpBuilder builder(mean->division);
  nn::ModuleScope scope(builder, nn::moduleOf(mean->division));
  auto cut = cutRows(program, builder, *mean, parts);
  if (failed(cut))
    return failure();
  auto [rows, dimOfParts] = *cut;
  Location loc = mean->division.getLoc();
  auto rank = cast<RankedTensorType>(rows.getType()).getRank();
  auto inPart = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  llvm::erase(inPart, dimOfParts);
  auto sums = nn::SumOp::create(builder, loc, rows, inPart);
  auto counts = nn::CountLabelsOp::create(
      builder, loc, RankedTensorType::get({parts}, builder.getI64Type()),
      mean->count.getTargets(), mean->count.getIgnoreIndex());
  auto means = nn::DivideByCountOp::create(builder, loc, sums, counts);
  auto whole = nn::MeanOp::create(builder, loc, means, ArrayRef<int64_t>{0});
  mean->division.replaceAllUsesWith(whole.getResult());
  return success();
}
