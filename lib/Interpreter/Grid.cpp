//===- Grid.cpp - What programs compute on the ranks of a mesh ------------===//
#include "fsdp/Interpreter/Grid.h"
#include "State.h"
#include "dialects/Fsdp/PlacementRules.h"
#include "fsdp/Support/RangeNames.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>
#include <stdexcept>

using namespace mlir;

namespace fsdp::interpret {

namespace {

/// The mesh of `module`; null if it has none.
dist::MeshOp meshOf(ModuleOp module) {
  if (!module)
    return {};
  auto meshes = module.getOps<dist::MeshOp>();
  if (meshes.empty())
    return {};
  if (std::next(meshes.begin()) != meshes.end())
    fail("the module has more than one fsdp.mesh");
  return *meshes.begin();
}

/// A value on every rank, until its last use.
struct Held {
  Tensors tensors;
  int64_t usesLeft;
};

/// The values of a future, until they are awaited.
struct Future {
  std::vector<Tensors> values;
  bool awaited = false;
};

/// One run: all ranks do an op before any does the next.
class Run {
public:
  Run(func::FuncOp program, const GridInputs &inputs, Rounding rounding)
      : program(program), inputs(inputs), rounding(rounding),
        mesh(meshOf(program->getParentOfType<ModuleOp>())), grid(mesh),
        state(program->getParentOfType<ModuleOp>(), grid, inputs.state,
              rounding, program->hasAttr(dist::kLocalAttr)) {}

  GridOutputs outputs();

private:
  void bindArguments();
  Tensors parts(const std::string &name, Tensors whole,
                const dist::Placement &placement) const;
  void block(Block &block);
  std::vector<Tensors> take(Block &body);
  void execute(Operation *op);

  void local(Operation *op);
  void read(nn::ReadOp op);
  void adamw(nn::AdamWOp op);
  void writeCopy(nn::AdamWOp op, size_t i);
  void accumulate(nn::AccumulateOp op);
  void accumulate(nn::AccumulateProductOp op);
  template <typename OpT> void roundSums(OpT op, Tensors &sums);
  void clear(nn::ClearOp op);
  void fusion(nn::FusionOp op);
  void collective(dist::CollectiveOpInterface op);
  void shardOf(dist::ShardOfOp op);
  void rowsOfShard(dist::RowsOfShardOp op);
  void redistribute(dist::RedistributeOp op);
  void async(dist::AsyncOp op);
  void await(dist::AwaitOp op);

  /// `value` on every rank.
  const Tensors &of(Value value) const;
  void set(Value value, Tensors tensors);
  /// Forgets `value` if this was its last use.
  void release(Value value);
  Reduction reduction(dist::CollectiveReduce kind, Value result) const;
  void roundAs(Value like, Tensors &tensors) const;

  func::FuncOp program;
  const GridInputs &inputs;
  Rounding rounding;
  dist::MeshOp mesh;
  RankGrid grid;
  State state;
  DenseMap<Value, Held> values;
  DenseMap<Value, Future> futures;
};

/// True if a rank has a part of what the argument or result with this
/// fsdp.placement is; else it has what it has.
bool isPlaced(func::FuncOp program, Attribute placement) {
  return placement && program->hasAttr(dist::kLocalAttr);
}

Type elementOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getElementType();
}

std::string nameOf(Operation *op) {
  return "'" + op->getName().getStringRef().str() + "'";
}

} // namespace

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

const Tensors &Run::of(Value value) const {
  auto it = values.find(value);
  if (it == values.end())
    fail("a value is used before it is computed");
  return it->second.tensors;
}

void Run::set(Value value, Tensors tensors) {
  int64_t count = std::distance(value.use_begin(), value.use_end());
  if (count > 0)
    values[value] = {std::move(tensors), count};
}

void Run::release(Value value) {
  auto it = values.find(value);
  if (it != values.end() && --it->second.usesLeft == 0)
    values.erase(it);
}

void Run::roundAs(Value like, Tensors &tensors) const {
  if (rounding == Rounding::Declared)
    for (DenseTensor &tensor : tensors)
      roundTo(elementOf(like), tensor);
}

//===----------------------------------------------------------------------===//
// Ops of one rank
//===----------------------------------------------------------------------===//

void Run::local(Operation *op) {
  std::vector<Tensors> results(op->getNumResults());
  for (int64_t rank = 0; rank < grid.ranks(); ++rank) {
    Tensors operands;
    for (Value operand : op->getOperands())
      operands.push_back(of(operand)[rank]);
    try {
      for (auto [all, one] :
           llvm::zip_equal(results, evaluate(op, operands, rounding)))
        all.push_back(std::move(one));
    } catch (const std::out_of_range &) {
      fail(nameOf(op) + " on rank " + std::to_string(rank) +
           " has an index that is outside its table");
    }
  }
  for (auto [result, tensors] : llvm::zip_equal(op->getResults(), results))
    set(result, std::move(tensors));
}

void Run::read(nn::ReadOp op) {
  const Tensors &local = state.read(op.getName());
  if (local[0].shape != shapeOf(op.getValue()))
    fail("'" + op.getName().str() + "' has the local shape " +
         textOf(local[0].shape) + ", but is read as " +
         textOf(shapeOf(op.getValue())));
  set(op.getValue(), local);
}

void Run::fusion(nn::FusionOp op) {
  Block &body = op.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), op->getOperands()))
    set(argument, of(operand));
  block(body);
  for (auto [result, tensors] : llvm::zip_equal(op->getResults(), take(body)))
    set(result, std::move(tensors));
}

namespace {

/// What one AdamW step needs besides tensors.
struct AdamW {
  AdamW(nn::AdamWOp op, double lr, double step, double clip)
      : lr(lr), clip(clip), beta1(op.getBeta1().convertToDouble()),
        beta2(op.getBeta2().convertToDouble()),
        eps(op.getEps().convertToDouble()),
        decay(op.getWeightDecay().convertToDouble()),
        correction1(1 - std::pow(beta1, step)),
        correction2(1 - std::pow(beta2, step)) {}

  void update(const DenseTensor &gradient, DenseTensor &p, DenseTensor &m,
              DenseTensor &v) const {
    if (std::isnan(clip))
      return;
    for (int64_t j = 0; j < p.size(); ++j) {
      double g = gradient.values[j] * clip;
      p.values[j] -= lr * decay * p.values[j];
      m.values[j] += (g - m.values[j]) * (1 - beta1);
      v.values[j] = v.values[j] * beta2 + g * g * (1 - beta2);
      double root = std::sqrt(v.values[j]) / std::sqrt(correction2);
      p.values[j] -= lr / correction1 * m.values[j] / (root + eps);
    }
  }

  double lr, clip, beta1, beta2, eps, decay, correction1, correction2;
};

} // namespace

void Run::adamw(nn::AdamWOp op) {
  auto scalar = [&](Value value, int64_t rank) {
    return of(value)[rank].values[0];
  };
  for (size_t i = 0; i < op.getGradients().size(); ++i) {
    Value gradient = op.getGradients()[i];
    StringRef names[3];
    Tensors tensors[3]; // parameter, moments
    ArrayAttr lists[] = {op.getParameters(), op.getFirstMoments(),
                         op.getSecondMoments()};
    for (auto [which, list] : llvm::enumerate(lists)) {
      names[which] = cast<FlatSymbolRefAttr>(list[i]).getValue();
      tensors[which] = state.read(names[which]);
    }
    for (int64_t rank = 0; rank < grid.ranks(); ++rank) {
      const DenseTensor &g = of(gradient)[rank];
      for (const Tensors &tensor : tensors)
        if (tensor[rank].shape != g.shape)
          fail(nameOf(op) + " has a gradient of another shape than '" +
               names[0].str() + "'");
      AdamW(op, scalar(op.getLr(), rank), scalar(op.getStep(), rank),
            scalar(op.getCoefficient(), rank))
          .update(g, tensors[0][rank], tensors[1][rank], tensors[2][rank]);
    }
    for (int which = 0; which < 3; ++which) {
      roundAs(op.getLr(), tensors[which]); // all state is f32
      state.write(names[which], names[which], std::move(tensors[which]));
    }
    if (!op.getCopyNames().empty())
      writeCopy(op, i);
  }
}

/// The parameter as it is now in bf16, unless nothing has changed.
void Run::writeCopy(nn::AdamWOp op, size_t i) {
  StringRef copy = cast<FlatSymbolRefAttr>(op.getCopyNames()[i]).getValue();
  Tensors old = state.read(copy),
          value = state.read(
              cast<FlatSymbolRefAttr>(op.getParameters()[i]).getValue());
  for (int64_t rank = 0; rank < grid.ranks(); ++rank)
    if (std::isnan(of(op.getCoefficient())[rank].values[0]))
      value[rank] = old[rank];
    else if (rounding == Rounding::Declared)
      roundTo(BFloat16Type::get(op.getContext()), value[rank]);
  state.write(copy, copy, std::move(value));
}

void Run::accumulate(nn::AccumulateOp op) {
  Tensors sums = state.read(op.getName());
  for (auto [sum, value] : llvm::zip_equal(sums, of(op.getValue()))) {
    if (sum.shape != value.shape)
      fail(nameOf(op) + " adds " + textOf(value.shape) + " to '" +
           op.getName().str() + "' of " + textOf(sum.shape));
    for (int64_t i = 0; i < sum.size(); ++i)
      sum.values[i] += value.values[i];
  }
  roundSums(op, sums);
  state.write(op.getName(), op.getName(), std::move(sums));
}

void Run::accumulate(nn::AccumulateProductOp op) {
  Tensors sums = state.read(op.getName());
  const Tensors &cotangents = of(op.getCotangent()),
                &inputs = of(op.getInput());
  for (size_t rank = 0; rank < sums.size(); ++rank) {
    const std::vector<int64_t> shape = {cotangents[rank].shape.back(),
                                        inputs[rank].shape.back()};
    if (sums[rank].shape != shape)
      fail(nameOf(op) + " adds " + textOf(shape) + " to '" +
           op.getName().str() + "' of " + textOf(sums[rank].shape));
    sums[rank] = linearWeightGrad({cotangents[rank], inputs[rank], sums[rank]});
  }
  roundSums(op, sums);
  state.write(op.getName(), op.getName(), std::move(sums));
}

/// As the sum is: a value in bf16 may be added to one in f32.
template <typename OpT> void Run::roundSums(OpT op, Tensors &sums) {
  auto buffer =
      SymbolTable::lookupNearestSymbolFrom<nn::BufferOp>(op, op.getNameAttr());
  if (rounding == Rounding::Declared)
    for (DenseTensor &sum : sums)
      roundTo(buffer.getTensorType().getElementType(), sum);
}

void Run::clear(nn::ClearOp op) {
  for (auto name : op.getNames().getAsRange<FlatSymbolRefAttr>()) {
    Tensors zeros = state.read(name.getValue());
    for (DenseTensor &tensor : zeros)
      llvm::fill(tensor.values, 0);
    state.write(name.getValue(), name.getValue(), std::move(zeros));
  }
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

Reduction Run::reduction(dist::CollectiveReduce kind, Value result) const {
  bool declared = rounding == Rounding::Declared;
  return {kind, declared ? elementOf(result) : Type()};
}

/// What a rank has is combined, joined and split, as the layout says.
void Run::collective(dist::CollectiveOpInterface op) {
  auto axes = dist::axisRefs(op.getAxes());
  for (auto [input, result] :
       llvm::zip_equal(op->getOperands(), op->getResults())) {
    Tensors tensors = of(input);
    if (auto kind = op.getReduction())
      tensors = grid.reduce(tensors, axes, reduction(*kind, result));
    if (auto dim = op.getJoinedDim())
      tensors = grid.gather(tensors, axes, *dim, shapeOf(result)[*dim]);
    if (auto dim = op.getSplitDim())
      tensors = grid.scatter(tensors, axes, *dim);
    set(result, std::move(tensors));
  }
}

void Run::shardOf(dist::ShardOfOp op) {
  set(op.getResult(), grid.scatter(of(op.getInput()),
                                   dist::axisRefs(op.getAxes()), op.getDim()));
}

void Run::rowsOfShard(dist::RowsOfShardOp op) {
  auto axes = dist::axisRefs(op.getAxes());
  Tensors tensors = of(op.getInput());
  int64_t parts = grid.parts(axes), classes = op.getClasses();
  int64_t rows = dist::shardSize(classes, parts);
  for (int64_t rank = 0; rank < grid.ranks(); ++rank) {
    int64_t first = grid.position(rank, axes) * rows;
    int64_t count = tensors[rank].size();
    for (int64_t i = 0; i < count; ++i) {
      double &index = tensors[rank].values[i];
      if (index < 0 || index >= classes)
        fail(nameOf(op) + " got the index " + std::to_string(int64_t(index)) +
             " into a table of " + std::to_string(classes) + " rows");
      int64_t row = int64_t(index) - first;
      int64_t piece = op.getByRank() ? i / (count / parts) : 0;
      index = row < 0 || row >= rows ? -1 : double(piece * rows + row);
    }
  }
  set(op.getResult(), std::move(tensors));
}

/// A placement changes no logical tensor; a cast may be declared beside it.
void Run::redistribute(dist::RedistributeOp op) {
  Tensors tensors = of(op.getInput());
  roundAs(op.getResult(), tensors);
  set(op.getResult(), std::move(tensors));
}

//===----------------------------------------------------------------------===//
// Futures
//===----------------------------------------------------------------------===//

// Values move at the moment of issue: a schedule that is right computes the
// same whenever its collectives really run.
void Run::async(dist::AsyncOp op) {
  Block &body = op.getBody().front();
  block(body);
  futures[op.getFuture()] = {take(body)};
}

void Run::await(dist::AwaitOp op) {
  auto it = futures.find(op.getFuture());
  if (it == futures.end())
    fail(nameOf(op) + " waits for a future that nothing started");
  if (it->second.awaited)
    fail(nameOf(op) + " waits for a future that was awaited before");
  it->second.awaited = true;
  for (auto [result, value] :
       llvm::zip_equal(op->getResults(), it->second.values))
    set(result, std::move(value));
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

void Run::execute(Operation *op) {
  TypeSwitch<Operation *>(op)
      .Case([&](nn::ReadOp op) { read(op); })
      .Case([&](nn::GradientOp op) {
        state.write((op.getName() + range_name::kGradientSuffix).str(),
                    op.getName(), of(op.getValue()));
      })
      .Case([&](nn::AdamWOp op) { adamw(op); })
      .Case<nn::AccumulateOp, nn::AccumulateProductOp>(
          [&](auto op) { accumulate(op); })
      .Case([&](nn::WriteOp op) {
        state.write(op.getName(), op.getName(), of(op.getValue()));
      })
      .Case([&](nn::ClearOp op) { clear(op); })
      .Case([&](nn::FusionOp op) { fusion(op); })
      .Case([&](dist::CollectiveOpInterface op) { collective(op); })
      .Case([&](dist::ShardOfOp op) { shardOf(op); })
      .Case([&](dist::RowsOfShardOp op) { rowsOfShard(op); })
      .Case([&](dist::RedistributeOp op) { redistribute(op); })
      .Case([&](dist::AsyncOp op) { async(op); })
      .Case([&](dist::AwaitOp op) { await(op); })
      .Default([&](Operation *op) { local(op); });
}

void Run::block(Block &block) {
  for (Operation &op : block.without_terminator()) {
    execute(&op);
    for (Value operand : op.getOperands())
      release(operand);
  }
}

/// The values that a body gives.
std::vector<Tensors> Run::take(Block &body) {
  std::vector<Tensors> taken;
  for (Value value : body.getTerminator()->getOperands()) {
    taken.push_back(of(value));
    release(value);
  }
  return taken;
}

/// Each rank's part of an argument.
Tensors Run::parts(const std::string &name, Tensors whole,
                   const dist::Placement &placement) const {
  if (!placement.partial.empty())
    fail(
        "'" + name +
        "' has a partial placement, so its values on the ranks are not unique");
  return grid.parts(std::move(whole), placement);
}

void Run::bindArguments() {
  int64_t given = inputs.arguments.size();
  if (given != 1 && given != grid.ranks())
    fail("arguments are given for " + std::to_string(given) +
         " ranks, but the mesh has " + std::to_string(grid.ranks()));
  for (BlockArgument argument : program.getArguments()) {
    unsigned number = argument.getArgNumber();
    std::string name = argumentName(program, number);
    GivenArgument wanted = givenArgument(program, number);
    Tensors tensors;
    for (int64_t rank = 0; rank < grid.ranks(); ++rank) {
      const TensorMap &own = inputs.arguments[given == 1 ? 0 : rank];
      auto it = own.find(name);
      if (it == own.end())
        fail("no input is called '" + name + "'");
      if (ArrayRef(it->second.shape) != wanted.type.getShape())
        fail("input '" + name + "' is " + textOf(it->second.shape) +
             ", but the argument is " + textOf(wanted.type.getShape()));
      tensors.push_back(it->second);
    }
    if (wanted.isShared)
      tensors =
          parts(name, std::move(tensors), dist::placementOf(program, argument));
    roundAs(argument, tensors);
    set(argument, std::move(tensors));
  }
}

GridOutputs Run::outputs() {
  if (!program.getBody().hasOneBlock())
    fail("@" + program.getName().str() + " is not one block of ops");
  bindArguments();
  Block &body = program.getBody().front();
  block(body);
  Operation *end = body.getTerminator();
  for (const auto &[future, held] : futures)
    if (!held.awaited)
      fail("a future of @" + program.getName().str() + " is never awaited");
  GridOutputs outputs;
  outputs.state = state.written();
  outputs.results.resize(grid.ranks());
  for (auto [i, tensors] : llvm::enumerate(take(body))) {
    std::string name = resultName(program, i);
    Type type = program.getResultTypes()[i];
    dist::Placement placement =
        dist::resultPlacement(program, i)
            .value_or(dist::Placement(shapeOf(end->getOperand(i)).size()));
    RankedTensorType logical =
        dist::logicalType(type, placement, program, mesh);
    if (isPlaced(program, program.getResultAttr(i, dist::kPlacementAttr)))
      tensors.assign(grid.ranks(),
                     grid.joined(name, tensors, placement, logical.getShape()));
    for (auto [rank, tensor] : llvm::enumerate(tensors))
      outputs.results[rank][name] = tensor;
  }
  return outputs;
}

GivenArgument givenArgument(func::FuncOp program, unsigned i) {
  BlockArgument argument = program.getArgument(i);
  return {dist::logicalType(argument.getType(),
                            dist::placementOf(program, argument), program,
                            meshOf(program->getParentOfType<ModuleOp>())),
          isPlaced(program, program.getArgAttr(i, dist::kPlacementAttr))};
}

int64_t worldSize(ModuleOp module) { return RankGrid(meshOf(module)).ranks(); }

static std::string nameOr(StringAttr name, const char *otherwise, unsigned i) {
  return name ? name.getValue().str() : otherwise + std::to_string(i);
}

std::string argumentName(func::FuncOp program, unsigned i) {
  return nameOr(program.getArgAttrOfType<StringAttr>(i, nn::kNameAttr), "arg",
                i);
}

std::string resultName(func::FuncOp program, unsigned i) {
  return nameOr(program.getResultAttrOfType<StringAttr>(i, nn::kNameAttr),
                "result", i);
}

GridOutputs run(func::FuncOp program, const GridInputs &inputs,
                Rounding rounding) {
  return Run(program, inputs, rounding).outputs();
}

TensorMap evaluate(func::FuncOp program, const TensorMap &inputs,
                   Rounding rounding) {
  if (worldSize(program->getParentOfType<ModuleOp>()) != 1)
    fail("@" + program.getName().str() + " is a program of several ranks");
  GridOutputs outputs = run(program, {inputs, {inputs}}, rounding);
  outputs.state.merge(outputs.results[0]);
  return std::move(outputs.state);
}

} // namespace fsdp::interpret
