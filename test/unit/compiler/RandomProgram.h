//===- RandomProgram.h - Programs, meshes and placements by seed *- C++ -*-===//
//
// For tests of what passes keep: a random program with random placements on a
// random mesh, its inputs, and the comparison of what two programs give.
// FSDP_RANDOM_PROGRAMS sets how many are tried.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_COMPILER_RANDOMPROGRAM_H
#define FSDP_TEST_UNIT_COMPILER_RANDOMPROGRAM_H

#include "TinyLlama.h"
#include "dialects/Fsdp/PlacementRules.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Interpreter/Grid.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include <cmath>
#include <cstdlib>
#include <map>
#include <random>

namespace fsdp {

using namespace mlir;
using namespace fsdp::interpret;

constexpr double kTolerance = 1e-9;

/// What a random program looks like.
enum class ProgramShape { Ops, Blocks };

/// Makes one program from a seed.
class RandomProgram {
public:
  /// With at most `limit` ops before the loss (or in a block): a smaller
  /// program of the seed, for a message.
  RandomProgram(MLIRContext &context, unsigned seed, int64_t limit = 1000,
                ProgramShape shape = ProgramShape::Ops)
      : limit(limit), hasBlocks(shape == ProgramShape::Blocks), generator(seed),
        builder(&context),
        module(ModuleOp::create(builder, builder.getUnknownLoc())) {
    makeMesh();
    makeProgram();
  }

  ModuleOp get() { return *module; }

  /// Gives declarations and arguments a place; those of blocks agree.
  void place() {
    std::map<std::string, Attribute> placed;
    for (auto parameter : module->getOps<nn::ParameterOp>()) {
      auto place = [&] {
        return placementFor(parameter.getTensorType(), /*stored=*/true);
      };
      std::string name = nn::withoutNumbers(parameter.getSymName());
      if (hasBlocks && !placed.count(name))
        placed[name] = place();
      parameter->setAttr(dist::kPlacementAttr,
                         hasBlocks ? placed[name] : Attribute(place()));
    }
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      program.setArgAttr(i, dist::kPlacementAttr,
                         placementFor(program.getArgumentTypes()[i]));
  }

  /// Gives some values of @train a place.
  void pinSome() {
    double share = hasBlocks ? 0.03 : 0.2;
    auto train = module->lookupSymbol<func::FuncOp>("train");
    SmallVector<Value> values;
    train.walk([&](nn::ShardingOpInterface op) {
      bool placed = !op.getShardingRule().combines && chance(share);
      if (placed)
        llvm::append_range(values, op->getResults());
    });
    for (Value value : values)
      pin(value);
  }

  /// Inputs for everything that the program reads.
  GridInputs inputs() {
    GridInputs inputs;
    for (auto parameter : module->getOps<nn::ParameterOp>())
      inputs.state[parameter.getSymName().str()] =
          random(parameter.getTensorType());
    inputs.arguments.resize(1);
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
      inputs.arguments[0]["arg" + std::to_string(i)] =
          random(cast<RankedTensorType>(type));
    inputs.arguments[0]["lr"] = DenseTensor::scalar(0.1);
    inputs.arguments[0]["step"] = DenseTensor::scalar(3);
    return inputs;
  }

private:
  //===--- Choices --------------------------------------------------------===//

  int64_t below(int64_t end) {
    return std::uniform_int_distribution<int64_t>(0, end - 1)(generator);
  }
  bool chance(double p) {
    return std::uniform_real_distribution<double>()(generator) < p;
  }
  template <typename Range> auto &pick(Range &&range) {
    return range[below(std::size(range))];
  }
  int64_t size() {
    static constexpr int64_t kSizes[] = {2, 3, 4, 6, 12};
    return pick(kSizes);
  }

  DenseTensor random(RankedTensorType type) {
    return randomTensor(generator, type.getShape(), -1, 1);
  }

  //===--- Mesh and placements --------------------------------------------===//

  void makeMesh() {
    static const std::vector<std::vector<int64_t>> kMeshes = {
        {2}, {3}, {4}, {2, 2}, {2, 3}, {3, 2}, {2, 2, 2}, {1, 4}};
    SmallVector<Attribute> axes;
    for (int64_t size : pick(kMeshes)) {
      std::string name(1, static_cast<char>('a' + axes.size()));
      axes.push_back(dist::MeshAxisAttr::get(builder.getContext(), name, size,
                                             std::nullopt));
      axisNames.push_back(name);
    }
    builder.setInsertionPointToEnd(module->getBody());
    mesh = dist::MeshOp::create(
        builder, builder.getUnknownLoc(), builder.getStringAttr("mesh"),
        builder.getArrayAttr(axes), builder.getI64IntegerAttr(0));
  }

  /// Each axis shards a dimension that it divides, or none.
  dist::PlacementAttr placementFor(Type type, bool stored = false) {
    auto tensor = cast<RankedTensorType>(type);
    dist::Placement placement(tensor.getRank());
    std::vector<std::string> names = axisNames;
    std::shuffle(names.begin(), names.end(), generator);
    for (const std::string &name : names) {
      auto axis = dist::AxisRefAttr::get(builder.getContext(), name);
      if (tensor.getRank() == 0 || chance(0.4))
        continue;
      int64_t d = below(tensor.getRank());
      dist::Placement::Dim &dim = placement.dims[d];
      int64_t parts = mesh.sizeOf(dim.compute) * mesh.sizeOf(axis);
      if (stored && chance(0.5))
        dim.storage.push_back(axis);
      else if (dim.storage.empty() && tensor.getDimSize(d) % parts == 0)
        dim.compute.push_back(axis);
    }
    return placement.attribute(builder.getContext());
  }

  void pin(Value value) {
    builder.setInsertionPointAfterValue(value);
    auto place = dist::RedistributeOp::create(
        builder, value.getLoc(), value,
        FlatSymbolRefAttr::get(mesh.getSymNameAttr()),
        placementFor(value.getType()));
    value.replaceAllUsesExcept(place, place);
  }

  //===--- Programs -------------------------------------------------------===//

  RankedTensorType type(ArrayRef<int64_t> shape) {
    // Declared roundings are ignored.
    return RankedTensorType::get(shape, builder.getF32Type());
  }

  static ArrayRef<int64_t> shapeOf(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape();
  }

  Value parameter(ArrayRef<int64_t> shape) {
    for (auto old : module->getOps<nn::ParameterOp>()) // tied, now and then
      if (!hasBlocks && old.getTensorType() == type(shape) && chance(0.5))
        return read(old.getSymName(), shape);
    // In blocks, some of which agree in names.
    std::string name = "layers." + std::to_string(parameters / 2) + ".w" +
                       std::to_string(parameters % 2) + ".weight";
    if (hasBlocks)
      name = scope + ".w" + std::to_string(parameters) + ".weight";
    ++parameters;
    OpBuilder outside(program);
    nn::ParameterOp::create(outside, builder.getUnknownLoc(), name, type(shape),
                            nn::ZerosAttr::get(builder.getContext()));
    return read(name, shape);
  }

  Value read(StringRef name, ArrayRef<int64_t> shape) {
    return nn::ReadOp::create(builder, builder.getUnknownLoc(), type(shape),
                              name);
  }

  template <typename OpT, typename... Args> Value make(Args &&...args) {
    auto op = OpT::create(builder, builder.getUnknownLoc(),
                          std::forward<Args>(args)...);
    return op->getResult(0);
  }

  void makeProgram() {
    SmallVector<Type> arguments = {type({size(), size(), size()}),
                                   type({size(), size()})};
    program = func::FuncOp::create(
        builder, builder.getUnknownLoc(), "forward",
        FunctionType::get(builder.getContext(), arguments, type({})));
    program.setResultAttr(0, nn::kNameAttr, builder.getStringAttr("loss"));
    for (unsigned i = 0; i < arguments.size(); ++i)
      program.setArgAttr(i, nn::kNameAttr,
                         builder.getStringAttr("arg" + std::to_string(i)));
    builder.setInsertionPointToStart(program.addEntryBlock());
    llvm::append_range(values, program.getArguments());
    if (hasBlocks)
      return makeBlocks();
    for (int64_t i = 0, count = 4 + below(8); i < std::min(count, limit); ++i)
      if (Value next = step(values[below(values.size())]))
        values.push_back(next);
    Value loss;
    for (Value value : ArrayRef(values).take_back(3)) {
      Value one = lossOf(value);
      loss = loss ? make<nn::AddOp>(type({}), loss, one) : one;
    }
    func::ReturnOp::create(builder, builder.getUnknownLoc(), loss);
  }

  /// A number in which every element of `x` has another weight.
  Value lossOf(Value x) {
    Value weight = parameter(shapeOf(x));
    return make<nn::MSELossOp>(x, weight);
  }

  //===--- Blocks ---------------------------------------------------------===//

  /// `work` makes ops of `module`, whose parameters are called after it.
  Value within(const std::string &module, llvm::function_ref<Value()> work) {
    scope = module;
    parameters = 0;
    nn::ModuleScope ops(builder, builder.getStringAttr(module));
    return work();
  }

  /// Blocks of one structure, one after another, between two other modules.
  void makeBlocks() {
    Value x = within("first", [&] { return linear(values[0], size()); });
    uint64_t choices = generator();
    for (int64_t i = 0, count = 2 + below(3); i < count; ++i)
      x = within("layers." + std::to_string(i), [&] {
        std::mt19937_64 rest(choices);
        std::swap(generator, rest);
        Value result = block(x);
        std::swap(generator, rest);
        return result;
      });
    Value loss = within("last", [&] { return lossOf(linear(x, size())); });
    func::ReturnOp::create(builder, builder.getUnknownLoc(), loss);
  }

  Value linear(Value x, int64_t columns) {
    return make<nn::LinearOp>(x, parameter({columns, shapeOf(x).back()}));
  }

  Value block(Value x) {
    values = {x};
    for (int64_t i = 0, count = 2 + below(4); i < std::min(count, limit); ++i)
      values.push_back(sameShape(values[below(values.size())]));
    // Nothing is for nothing.
    Value sum = make<nn::AddOp>(x.getType(), x, values.back());
    for (Value value : values)
      if (value.use_empty())
        sum = make<nn::AddOp>(x.getType(), sum, value);
    return sum;
  }

  /// What leaves the shape of `x` as it is.
  Value sameShape(Value x) {
    SmallVector<int64_t> shape(shapeOf(x));
    switch (below(9)) {
    case 0:
    case 1: {
      Value inner = linear(x, size());
      return linear(make<nn::SiluOp>(inner.getType(), inner), shape.back());
    }
    case 2:
      return make<nn::MulOp>(x.getType(), x, like(x));
    case 3:
      return make<nn::SiluOp>(x.getType(), x);
    case 4:
      return make<nn::RMSNormOp>(x, parameter({shape.back()}), 1e-5);
    case 5:
      return make<nn::SoftmaxOp>(x.getType(), x);
    case 6: {
      int64_t d = below(shape.size());
      SmallVector<int64_t> offsets(shape.size(), 0), twice = shape;
      twice[d] *= 2;
      offsets[d] = 1 + below(shape[d] - 1); // of both
      Value both = make<nn::ConcatOp>(type(twice), ValueRange{x, like(x)}, d);
      return make<nn::SliceOp>(type(shape), both, offsets);
    }
    case 7:
      return attention(x);
    default: {
      Value moved = make<nn::TransposeOp>(x, ArrayRef<int64_t>{1, 0, 2});
      moved = make<nn::SiluOp>(moved.getType(), moved);
      return make<nn::TransposeOp>(moved, ArrayRef<int64_t>{1, 0, 2});
    }
    }
  }

  //===--- Ops ------------------------------------------------------------===//

  Value step(Value x) {
    SmallVector<int64_t> shape(shapeOf(x));
    int64_t rank = shape.size(), last = rank - 1;
    switch (below(15)) {
    case 0: {
      Value w = parameter({size(), shape[last]});
      return make<nn::LinearOp>(x, w);
    }
    case 1:
      return make<nn::AddOp>(x.getType(), x, like(x));
    case 2:
      return make<nn::MulOp>(x.getType(), x, like(x));
    case 3:
      return make<nn::SiluOp>(x.getType(), x);
    case 4: {
      std::shuffle(shape.begin(), shape.end(), generator);
      return make<nn::ReshapeOp>(type(shape), x);
    }
    case 5: {
      SmallVector<int64_t> order = llvm::to_vector(llvm::seq<int64_t>(0, rank));
      std::shuffle(order.begin(), order.end(), generator);
      return make<nn::TransposeOp>(x, order);
    }
    case 6:
      return split(x);
    case 7:
      return joined(x);
    case 8: {
      Value w = parameter({shape[last]});
      return make<nn::RMSNormOp>(x, w, 1e-5);
    }
    case 9:
      return make<nn::SoftmaxOp>(x.getType(), x);
    case 10:
      return rank < 3 ? Value() : Value(make<nn::SumOp>(x, below(rank)));
    case 11: {
      int64_t d = below(rank);
      SmallVector<int64_t> offsets(rank, 0);
      offsets[d] = below(shape[d]);
      shape[d] -= offsets[d];
      return make<nn::SliceOp>(type(shape), x, offsets);
    }
    case 12: {
      int64_t d = below(rank);
      Value other = like(x);
      shape[d] *= 2;
      return make<nn::ConcatOp>(type(shape), ValueRange{x, other}, d);
    }
    case 13:
      return attention(x);
    default: {
      shape.insert(shape.begin(), size());
      if (rank > 2)
        return {};
      SmallVector<int64_t> dims =
          llvm::to_vector(llvm::seq<int64_t>(1, rank + 1));
      return make<nn::BroadcastOp>(type(shape), x, dims);
    }
    }
  }

  /// Another value of x's shape.
  Value like(Value x) {
    SmallVector<Value> same;
    llvm::copy_if(values, std::back_inserter(same),
                  [&](Value value) { return value.getType() == x.getType(); });
    return chance(0.3) ? parameter(shapeOf(x)) : pick(same);
  }

  /// The last dimension as two, or the first two as one.
  Value split(Value x) {
    SmallVector<int64_t> shape(shapeOf(x));
    int64_t last = shape.pop_back_val();
    int64_t inner = last % 2 == 0 ? 2 : 1;
    shape.push_back(last / inner);
    shape.push_back(inner);
    return make<nn::ReshapeOp>(type(shape), x);
  }

  Value joined(Value x) {
    SmallVector<int64_t> shape(shapeOf(x).drop_front());
    if (shape.size() < 2)
      return {};
    shape[0] *= shapeOf(x)[0];
    return make<nn::ReshapeOp>(type(shape), x);
  }

  /// Of x, [batch, sequence, features], with as many or fewer key heads: over
  /// all keys, earlier ones or the last of these, with scores capped or not, in
  /// one document or two.
  Value attention(Value x) {
    if (shapeOf(x).size() != 3)
      return {};
    int64_t batch = shapeOf(x)[0], sequence = shapeOf(x)[1];
    int64_t heads = shapeOf(x)[2] % 2 == 0 ? 2 : 1, dim = shapeOf(x)[2] / heads;
    int64_t keyHeads = chance(0.5) ? heads : 1;
    auto project = [&](Value from, int64_t count) -> Value {
      return make<nn::ReshapeOp>(type({batch, sequence, count, dim}),
                                 linear(from, count * dim));
    };
    nn::AttentionView view;
    view.causal = chance(0.75);
    if (view.causal && chance(0.6))
      view.window = 1 + below(sequence);
    if (chance(0.5))
      view.cap = 0.5;
    Value q = project(x, heads);
    Value k = project(like(x), keyHeads), v = project(like(x), keyHeads);
    Value starts;
    if (view.causal && chance(0.4)) {
      auto type = RankedTensorType::get({batch, sequence}, builder.getI32Type());
      starts = make<nn::ConstantOp>(
          type, DenseElementsAttr::get(
                    type, static_cast<int32_t>(below(sequence))));
    }
    Value seen = make<nn::AttentionOp>(q, k, v, 0.5, view, starts);
    return make<nn::ReshapeOp>(x.getType(), seen);
  }

  int64_t limit;
  bool hasBlocks;
  std::string scope; // of the ops that are made
  std::mt19937_64 generator;
  OpBuilder builder;
  OwningOpRef<ModuleOp> module;
  dist::MeshOp mesh;
  std::vector<std::string> axisNames;
  func::FuncOp program;
  std::vector<Value> values;
  int parameters = 0;
};

template <typename... Passes>
LogicalResult runPasses(ModuleOp module, Passes &&...passes) {
  PassManager manager(module.getContext());
  (manager.addPass(std::move(passes)), ...);
  return manager.run(module);
}

/// "" if `actual` is `expected` up to rounding.
inline std::string difference(const TensorMap &actual,
                              const TensorMap &expected) {
  if (actual.size() != expected.size())
    return "another number of tensors";
  for (const auto &[name, tensor] : expected) {
    const DenseTensor &other = actual.at(name);
    double largest = 1;
    for (double value : tensor.values)
      largest = std::max(largest, std::fabs(value));
    if (other.shape != tensor.shape)
      return name + " has another shape";
    for (int64_t i = 0; i < tensor.size(); ++i)
      if (!(std::fabs(other.values[i] - tensor.values[i]) <=
            kTolerance * largest))
        return name + " is " + std::to_string(other.values[i]) + ", not " +
               std::to_string(tensor.values[i]) + ", at " + std::to_string(i);
  }
  return "";
}

inline std::string text(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

inline LogicalResult makeStep(ModuleOp module, bool update) {
  return update ? runPasses(module, createDifferentiate(), createOptimizer())
                : runPasses(module, createDifferentiate());
}

inline func::FuncOp trainOf(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>("train");
}

/// A context with the dialects of a placed program.
struct PlacedContext : MLIRContext {
  PlacedContext() : MLIRContext(Threading::DISABLED) {
    loadDialect<nn::NNDialect, dist::FsdpDialect, func::FuncDialect>();
  }
};

inline int programs() {
  const char *count = std::getenv("FSDP_RANDOM_PROGRAMS");
  return count ? std::atoi(count) : 200;
}

} // namespace fsdp

#endif // FSDP_TEST_UNIT_COMPILER_RANDOMPROGRAM_H
