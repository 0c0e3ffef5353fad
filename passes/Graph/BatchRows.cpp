//===- BatchRows.cpp - Values of microbatches and of the batch ------------===//
#include "passes/Graph/BatchRows.h"
#include "dialects/Fsdp/Fsdp.h"
#include <numeric>

using namespace mlir;
using namespace fsdp;

using Kind = BatchRows::Kind;
using Place = BatchRows::Place;

static ArrayRef<int64_t> shapeOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// Shared, and all elements are the same along all dimensions or, as far as is
/// known, along none.
static Place shared(Value value, bool repeats) {
  Place place = {Kind::Shared};
  for (int64_t size : shapeOf(value))
    place.repeats.push_back(repeats ? size : 1);
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

/// Whether those of microbatches add up to the batch's value. What one example
/// has does: a reshape may be all that its backward pass sums with.
bool BatchRows::isPart(Value value) const {
  Place place = of(value);
  return place.kind == Kind::Parts ||
         (place.kind == Kind::Rows && place.examples == 1);
}

/// An op that takes partial values gives such if it is linear in them: sums of
/// parts, and what is linear in one operand where the others are the same for
/// every microbatch.
Place BatchRows::ofParts(Operation *op) const {
  auto changing =
      llvm::make_filter_range(op->getOpOperands(), [&](OpOperand &operand) {
        return of(operand.get()).kind != Kind::Shared;
      });
  bool linear = false;
  auto sharding = dyn_cast<nn::ShardingOpInterface>(op);
  if (sharding && sharding.getShardingRule().passesPartial)
    linear = llvm::all_of(op->getOperands(),
                          [&](Value operand) { return isPart(operand); });
  else if (llvm::hasSingleElement(changing))
    linear = sharding ? sharding.isLinearIn(*changing.begin())
                      : isa<dist::RedistributeOp>(op);
  return {linear ? Kind::Parts : Kind::Mixed};
}

/// The elements keep their order, so slices that follow each other inside as
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
/// sharded along it.
std::pair<int64_t, int64_t>
BatchRows::factorOfRows(Operation *op, const nn::ShardingRule &rule) const {
  std::pair<int64_t, int64_t> found = {-1, 0};
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOperands(), rule.operands)) {
    Place place = of(operand);
    if (place.kind != Kind::Rows)
      continue;
    ArrayRef<unsigned> factors = dims[place.dim];
    if (factors.empty() || rule.factors[factors.front()].needsReplication)
      return {-1, 0};
    std::pair<int64_t, int64_t> own = {factors.front(), place.examples};
    if (found.first >= 0 && found != own)
      return {-1, 0};
    found = own;
  }
  return found;
}

/// How often `value` repeats itself along `factor`, of which its dimensions
/// have `dims`.
int64_t BatchRows::repeatsOf(Value value, const nn::ShardingRule::Dims &dims,
                             const nn::ShardingRule &rule,
                             unsigned factor) const {
  Place place = of(value);
  int64_t found = rule.factors[factor].size;
  if (place.kind != Kind::Shared)
    return found;
  for (auto [repeats, factors] : llvm::zip_equal(place.repeats, dims)) {
    // What the factors further out leave of the dimension's repeats.
    int64_t left = repeats;
    for (unsigned own : factors) {
      int64_t size = rule.factors[own].size;
      if (own == factor)
        found = std::gcd(found, left);
      left = left % size == 0 ? left / size : 1;
    }
  }
  return found;
}

/// The first operand that tells examples apart which lie along `factor`, as
/// many as `examples`, and is no Rows; null if there is none.
OpOperand *BatchRows::findUnlike(Operation *op, const nn::ShardingRule &rule,
                                 unsigned factor, int64_t examples) const {
  int64_t size = rule.factors[factor].size;
  for (auto [operand, dims] :
       llvm::zip_equal(op->getOpOperands(), rule.operands)) {
    int64_t repeats = repeatsOf(operand.get(), dims, rule, factor);
    if (repeats != size && repeats % examples != 0)
      return &operand;
  }
  return nullptr;
}

Place BatchRows::ofRows(Operation *op, unsigned result,
                        const nn::ShardingRule &rule) const {
  auto [factor, examples] = factorOfRows(op, rule);
  if (rule.combines || factor < 0 || findUnlike(op, rule, factor, examples))
    return {};
  for (auto [dim, factors] : llvm::enumerate(rule.results[result]))
    if (llvm::is_contained(factors, factor))
      return factors.front() == factor
                 ? Place{Kind::Rows, static_cast<int64_t>(dim), examples}
                 : Place{};
  // A mean divides by the number of rows that it is given.
  bool adds = rule.partial == nn::PartialKind::Sum &&
              !op->hasTrait<nn::DividesByCount>();
  return {adds ? Kind::Parts : Kind::Mixed};
}

Place BatchRows::ofShared(Operation *op, unsigned result,
                          const nn::ShardingRule &rule) const {
  auto repeatsAlong = [&](unsigned factor) {
    int64_t found = rule.factors[factor].size;
    for (auto [operand, dims] :
         llvm::zip_equal(op->getOperands(), rule.operands))
      found = std::gcd(found, repeatsOf(operand, dims, rule, factor));
    return rule.factors[factor].needsReplication ? 1 : found;
  };
  Place place = {Kind::Shared};
  for (const auto &factors : rule.results[result]) {
    int64_t &repeats = place.repeats.emplace_back(1);
    for (unsigned factor : factors) {
      int64_t own = repeatsAlong(factor);
      repeats *= own;
      if (own != rule.factors[factor].size)
        break;
    }
  }
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

/// Why an op that takes no partial values makes something else of Rows.
std::string BatchRows::whyMixed(Operation *op) const {
  std::string name = ("'" + op->getName().getStringRef() + "'").str();
  if (auto sharding = dyn_cast<nn::ShardingOpInterface>(op)) {
    nn::ShardingRule rule = sharding.getShardingRule();
    auto [factor, examples] = factorOfRows(op, rule);
    if (factor >= 0)
      if (OpOperand *unlike = findUnlike(op, rule, factor, examples))
        return "operand " + std::to_string(unlike->getOperandNumber()) +
               " of " + name +
               " is the same for every microbatch but not for every example "
               "of one (nn.broadcast repeats a value along the batch)";
  }
  return name + " computes from the examples of a batch neither a value for "
                "each nor a sum";
}

LogicalResult BatchRows::verifyIsSum(Value value, const Twine &what) const {
  auto fail = [&](const Twine &why) {
    return emitError(value.getLoc(), what)
           << " is not the sum over microbatches: " << why
           << "; change that, or use one microbatch";
  };
  while (!isPart(value)) {
    Operation *op = value.getDefiningOp();
    if (of(value).kind == Kind::Shared)
      return fail("it is the same in each microbatch and would count once per "
                  "microbatch");
    if (!op)
      return fail(
          "it is an argument without examples along its first dimension");
    if (of(value).kind == Kind::Rows)
      return fail("it has a value per example");
    Value parts = findOperand(op, Kind::Parts);
    Value same = findOperand(op, Kind::Shared);
    if (Value mixed = findOperand(op, Kind::Mixed))
      value = mixed;
    else if (parts && same && isa<nn::AddOp, nn::SubOp>(op))
      value = same;
    else
      return parts ? fail("'" + op->getName().getStringRef() +
                          "' is not known to be linear in an operand that is a "
                          "sum over the batch")
                   : fail(whyMixed(op));
  }
  return success();
}
