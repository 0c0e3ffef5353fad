//===- BatchRows.cpp - Values of microbatches and of the batch ------------===//
#include "passes/Graph/BatchRows.h"
#include "dialects/Fsdp/Fsdp.h"

using namespace mlir;
using namespace fsdp;

using Kind = BatchRows::Kind;
using Place = BatchRows::Place;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Shared, and all elements are the same along all dimensions or along none.
static Place shared(Value value, bool repeats) {
  Place place = {Kind::Shared};
  place.repeats.resize(shapeOf(value).size(), repeats);
  return place;
}

//===----------------------------------------------------------------------===//
// One op
//===----------------------------------------------------------------------===//

/// The first operand of a kind; null if there is none.
Value BatchRows::findOperand(Operation *op, Kind kind) const {
  auto found = llvm::find_if(op->getOperands(), [&](Value operand) {
    return of(operand).kind == kind;
  });
  return found == op->operand_end() ? Value() : *found;
}

/// An op that takes parts of a sum gives parts if it is linear in them: sums of
/// parts, and products with what is the same for every microbatch.
Place BatchRows::ofParts(Operation *op) const {
  auto is = [&](unsigned operand, Kind kind) {
    return of(op->getOperand(operand)).kind == kind;
  };
  bool linear = false;
  if (isa<nn::AddOp, nn::SubOp, nn::ConcatOp>(op))
    linear = llvm::all_of(op->getOperands(), [&](Value operand) {
      return of(operand).kind == Kind::Parts;
    });
  else if (isa<nn::NegOp, nn::CastOp, nn::ReshapeOp, nn::TransposeOp,
               nn::SliceOp, nn::PadOp, nn::BroadcastOp, nn::SumOp, nn::MeanOp,
               dist::RedistributeOp>(op))
    linear = true;
  else if (isa<nn::MulOp>(op))
    linear = is(0, Kind::Shared) || is(1, Kind::Shared);
  else if (isa<nn::DivOp, nn::DivideByCountOp>(op))
    linear = is(0, Kind::Parts) && is(1, Kind::Shared);
  return {linear ? Kind::Parts : Kind::Mixed};
}

/// The elements keep their order, so slices that follow each other behind as
/// many outer elements are the same ones.
Place BatchRows::ofReshape(nn::ReshapeOp op) const {
  auto product = [](ArrayRef<int64_t> sizes) {
    int64_t product = 1;
    for (int64_t size : sizes)
      product *= size;
    return product;
  };
  Place place = of(op.getInput());
  int64_t outer = product(shapeOf(op.getInput()).take_front(place.dim));
  ArrayRef<int64_t> shape = shapeOf(op.getResult());
  for (auto [dim, size] : llvm::enumerate(shape))
    if (product(shape.take_front(dim)) == outer && size % place.examples == 0)
      return {Kind::Rows, static_cast<int64_t>(dim), place.examples};
  return {};
}

/// The factor along which the slices of all operands that are Rows lie, the
/// outermost of its dimension, and the examples of one; -1 if the op cannot be
/// cut along it.
std::pair<int64_t, int64_t>
BatchRows::factorOfRows(Operation *op, const nn::ShardingRule &rule) const {
  std::pair<int64_t, int64_t> found = {-1, 0};
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    Place place = of(operand);
    if (place.kind != Kind::Rows)
      continue;
    ArrayRef<unsigned> factors = dims[place.dim];
    if (factors.empty() || rule.factors[factors.front()].whole)
      return {-1, 0};
    std::pair<int64_t, int64_t> own = {factors.front(), place.examples};
    if (found.first >= 0 && found != own)
      return {-1, 0};
    found = own;
  }
  return found;
}

/// Whether nothing tells one index of `factor` from another: the operands that
/// have it and are no Rows repeat themselves along it.
bool BatchRows::repeats(Operation *op, const nn::ShardingRule &rule,
                        unsigned factor) const {
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    Place place = of(operand);
    for (auto [dim, factors] : llvm::enumerate(dims))
      if (place.kind == Kind::Shared && llvm::is_contained(factors, factor) &&
          !place.repeats.test(dim))
        return false;
  }
  return true;
}

Place BatchRows::ofRows(Operation *op, unsigned result,
                        const nn::ShardingRule &rule) const {
  auto [factor, examples] = factorOfRows(op, rule);
  if (rule.combines || factor < 0 || !repeats(op, rule, factor))
    return {};
  for (auto [dim, factors] : llvm::enumerate(rule.results[result]))
    if (llvm::is_contained(factors, factor))
      return factors.front() == factor
                 ? Place{Kind::Rows, static_cast<int64_t>(dim), examples}
                 : Place{};
  // A mean divides by the number of rows that it is given.
  bool adds = rule.partial == nn::PartialKind::Sum &&
              !isa<nn::MeanOp, nn::MSELossOp, nn::MSELossGradOp>(op);
  return {adds ? Kind::Parts : Kind::Mixed};
}

Place BatchRows::ofShared(Operation *op, unsigned result,
                          const nn::ShardingRule &rule) const {
  Place place = {Kind::Shared};
  for (const auto &factors : rule.results[result])
    place.repeats.push_back(llvm::all_of(factors, [&](unsigned factor) {
      return !rule.factors[factor].whole && repeats(op, rule, factor);
    }));
  return place;
}

Place BatchRows::placeOf(OpResult result) const {
  Operation *op = result.getOwner();
  unsigned number = result.getResultNumber();
  // The cotangent of the loss is one.
  if (isa<nn::SeedOp>(op))
    return shared(result, /*repeats=*/true);
  if (findOperand(op, Kind::Mixed))
    return {};
  if (findOperand(op, Kind::Parts))
    return ofParts(op);
  if (isa<dist::RedistributeOp>(op))
    return of(op->getOperand(0));
  bool hasRows = findOperand(op, Kind::Rows) != nullptr;
  if (auto reshape = dyn_cast<nn::ReshapeOp>(op); reshape && hasRows)
    return ofReshape(reshape);
  // Counts of parts are of other parts where the batch is larger.
  if (isa<nn::CountLabelsOp>(op) && hasRows && !shapeOf(result).empty())
    return {};
  auto sharding = dyn_cast<nn::ShardingOpInterface>(op);
  if (!sharding)
    return hasRows ? Place{} : shared(result, /*repeats=*/false);
  return hasRows ? ofRows(op, number, sharding.getShardingRule())
                 : ofShared(op, number, sharding.getShardingRule());
}

//===----------------------------------------------------------------------===//
// A program
//===----------------------------------------------------------------------===//

BatchRows::BatchRows(func::FuncOp program, Value known) {
  Block &body = program.getBody().front();
  auto add = [&](Value value, Place place) {
    if (value == known)
      place = shared(value, /*repeats=*/false);
    // What has one element has the same one for every example.
    if (place.kind == Kind::Shared)
      for (auto [dim, size] : llvm::enumerate(shapeOf(value)))
        if (size == 1)
          place.repeats.set(dim);
    places[value] = place;
  };
  for (BlockArgument argument : body.getArguments())
    if (auto type = dyn_cast<RankedTensorType>(argument.getType()))
      add(argument, type.getRank() > 0
                        ? Place{Kind::Rows, 0, type.getDimSize(0)}
                        : Place{});
  for (Operation &op : body)
    for (OpResult result : op.getResults())
      if (isa<RankedTensorType>(result.getType()))
        add(result, placeOf(result));
}

LogicalResult BatchRows::verifyIsSum(Value value, const Twine &what) const {
  auto fail = [&](const Twine &why) {
    return emitError(value.getLoc(), what)
           << " is not the sum over microbatches: " << why
           << "; change that, or use one microbatch";
  };
  while (of(value).kind != Kind::Parts) {
    Operation *op = value.getDefiningOp();
    if (of(value).kind == Kind::Shared)
      return fail("this is the same in each and would count once per "
                  "microbatch");
    if (!op)
      return fail("this argument has no examples along a first dimension");
    if (of(value).kind == Kind::Rows)
      return fail("this has a value per example");
    Value parts = findOperand(op, Kind::Parts);
    Value same = findOperand(op, Kind::Shared);
    if (Value mixed = findOperand(op, Kind::Mixed))
      value = mixed;
    else if (parts && same && isa<nn::AddOp, nn::SubOp>(op))
      value = same;
    else
      return fail("'" + op->getName().getStringRef() +
                  (parts ? "' is not linear in what is a sum over the batch"
                         : "' makes of the examples of a batch something else "
                           "than a value for each, or a sum"));
  }
  return success();
}
