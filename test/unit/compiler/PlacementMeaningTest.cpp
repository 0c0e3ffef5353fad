//===- PlacementMeaningTest.cpp - A placement changes no meaning ----------===//
//
// Random programs with random placements on random meshes, in f64: the loss and
// every gradient (or the norm and what an optimizer step leaves) of the program
// of one rank, run on all ranks, are those of the logical program.
// FSDP_RANDOM_PROGRAMS sets how many are tried.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "fsdp/Interpreter/Grid.h"
#include "fsdp/Trace/Trace.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include <cmath>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

constexpr double kTolerance = 1e-9;

/// Makes one program from a seed.
class RandomProgram {
public:
  RandomProgram(MLIRContext &context, unsigned seed)
      : generator(seed), builder(&context),
        module(ModuleOp::create(builder, builder.getUnknownLoc())) {
    makeMesh();
    makeProgram();
  }

  ModuleOp get() { return *module; }

  /// Gives declarations and arguments a place.
  void place() {
    for (auto parameter : module->getOps<nn::ParameterOp>())
      parameter->setAttr(
          dist::kPlacementAttr,
          placementFor(parameter.getTensorType(), /*stored=*/true));
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      program.setArgAttr(i, dist::kPlacementAttr,
                         placementFor(program.getArgumentTypes()[i]));
  }

  /// Gives some values of @train a place.
  void pinSome() {
    auto train = module->lookupSymbol<func::FuncOp>("train");
    SmallVector<Value> values;
    train.walk([&](nn::ShardingOpInterface op) {
      bool placed = !op.getShardingRule().combines && chance(0.2);
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
    inputs.arguments[0]["lr"] = Tensor::scalar(0.1);
    inputs.arguments[0]["step"] = Tensor::scalar(3);
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

  Tensor random(RankedTensorType type) {
    std::uniform_real_distribution<double> uniform(-1, 1);
    Tensor tensor = Tensor::full(type.getShape().vec());
    for (double &value : tensor.values)
      value = uniform(generator);
    return tensor;
  }

  //===--- Mesh and placements --------------------------------------------===//

  void makeMesh() {
    static const std::vector<std::vector<int64_t>> kMeshes = {
        {2}, {3}, {4}, {2, 2}, {2, 3}, {3, 2}, {2, 2, 2}, {1, 4}};
    SmallVector<Attribute> axes;
    for (int64_t size : pick(kMeshes)) {
      std::string name(1, static_cast<char>('a' + axes.size()));
      axes.push_back(dist::MeshAxisAttr::get(builder.getContext(), name, size));
      axisNames.push_back(name);
    }
    builder.setInsertionPointToEnd(module->getBody());
    mesh = dist::MeshOp::create(
        builder, builder.getUnknownLoc(), builder.getStringAttr("mesh"),
        builder.getArrayAttr(axes), builder.getI64IntegerAttr(0));
  }

  /// Each axis cuts a dimension that it divides, or none.
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
      if (old.getTensorType() == type(shape) && chance(0.5))
        return read(old.getSymName(), shape);
    std::string name = "p" + std::to_string(parameters++);
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
    builder.setInsertionPointToStart(program.addEntryBlock());
    llvm::append_range(values, program.getArguments());
    for (int64_t i = 0, count = 4 + below(8); i < count; ++i)
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

  Value step(Value x) {
    SmallVector<int64_t> shape(shapeOf(x));
    int64_t rank = shape.size(), last = rank - 1;
    switch (below(14)) {
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
std::string difference(const TensorMap &actual, const TensorMap &expected) {
  if (actual.size() != expected.size())
    return "another number of tensors";
  for (const auto &[name, tensor] : expected) {
    const Tensor &other = actual.at(name);
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

std::string text(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.print(os);
  return text;
}

LogicalResult makeStep(ModuleOp module, bool update) {
  return update ? runPasses(module, createDifferentiate(), createOptimizer())
                : runPasses(module, createDifferentiate());
}

func::FuncOp trainOf(ModuleOp module) {
  return module.lookupSymbol<func::FuncOp>("train");
}

/// A context with the dialects of a placed program.
struct PlacedContext : MLIRContext {
  PlacedContext() : MLIRContext(Threading::DISABLED) {
    loadDialect<nn::NNDialect, dist::FsdpDialect, func::FuncDialect>();
  }
};

int programs() {
  const char *count = std::getenv("FSDP_RANDOM_PROGRAMS");
  return count ? std::atoi(count) : 200;
}

TEST(PlacementMeaning, IsThatOfTheLogicalProgram) {
  PlacedContext context;
  for (int seed = 0; seed < programs(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram random(context, seed);
    ModuleOp module = random.get();
    GridInputs inputs = random.inputs();
    bool update = seed % 2 == 1;
    OwningOpRef<ModuleOp> whole = module.clone();
    ASSERT_TRUE(succeeded(makeStep(*whole, update)));
    GridOutputs expected = run(trainOf(*whole), inputs);
    random.place();
    ASSERT_TRUE(succeeded(verify(module))) << text(module);
    ASSERT_TRUE(succeeded(makeStep(module, update))) << text(module);
    random.pinSome();
    std::string before = text(module);
    ASSERT_TRUE(succeeded(
        runPasses(module, createPropagate(), createVerifyPlacements())))
        << before;
    std::string placed = text(module);
    GridOutputs logical = run(trainOf(module), inputs);
    ASSERT_EQ(difference(logical.state, expected.state), "") << placed;
    ASSERT_TRUE(succeeded(runPasses(module, createExpand()))) << placed;
    try {
      GridOutputs local = run(trainOf(module), inputs);
      ASSERT_EQ(difference(local.state, expected.state), "")
          << placed << text(module);
      for (const TensorMap &results : local.results)
        ASSERT_EQ(difference(results, expected.results[0]), "")
            << placed << text(module);
    } catch (const std::runtime_error &error) {
      FAIL() << error.what() << "\n" << placed << text(module);
    }
  }
}

//===----------------------------------------------------------------------===//
// Llama with tensor parallel layers
//===----------------------------------------------------------------------===//

struct Parallelism {
  const char *name;
  int64_t dp, tp; // sizes of the axes
  /// The residual stream is cut along the sequence over "tp".
  bool sequence;
  /// Parameters rest cut over "dp" as well.
  bool stored;
};

void PrintTo(const Parallelism &parallelism, std::ostream *out) {
  *out << parallelism.name;
}

constexpr int64_t kBatch = 2, kSequence = 8, kVocab = 12;

class ParallelLlama {
public:
  ParallelLlama(MLIRContext &context, const Parallelism &parallelism,
                int64_t layers)
      : context(context), builder(&context), parallelism(parallelism) {
    LlamaConfig config;
    config.dim = 16;
    config.layers = layers;
    config.heads = 8;
    config.kvHeads = 4;
    config.ffnDim = 24;
    config.vocab = kVocab;
    ModelSpec spec{"tiny", config, kBatch, kSequence};
    module = llvm::cantFail(traceModel(context, spec, {kBatch, kSequence}));
  }

  ModuleOp get() { return *module; }

  void place() {
    builder.setInsertionPointToStart(module->getBody());
    auto axis = [&](StringRef name, int64_t size) -> Attribute {
      return dist::MeshAxisAttr::get(&context, name, size);
    };
    dist::MeshOp::create(builder, module->getLoc(),
                         builder.getStringAttr("mesh"),
                         builder.getArrayAttr({axis("dp", parallelism.dp),
                                               axis("tp", parallelism.tp)}),
                         builder.getI64IntegerAttr(0));
    for (auto parameter : module->getOps<nn::ParameterOp>())
      parameter->setAttr(dist::kPlacementAttr, placementOf(parameter));
    auto forward = module->lookupSymbol<func::FuncOp>("forward");
    for (unsigned i = 0; i < forward.getNumArguments(); ++i)
      forward.setArgAttr(i, dist::kPlacementAttr, parse("<[{\"dp\"}, {}]>"));
    // The residual stream is what norms read.
    forward.walk([&](nn::RMSNormOp norm) { pin(norm); });
  }

  GridInputs inputs() {
    std::mt19937_64 generator(5);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    GridInputs inputs;
    for (auto parameter : module->getOps<nn::ParameterOp>()) {
      Tensor tensor = Tensor::full(parameter.getTensorType().getShape().vec());
      for (double &value : tensor.values)
        value = uniform(generator);
      inputs.state[parameter.getSymName().str()] = tensor;
    }
    inputs.arguments.resize(1);
    for (const char *name : {"tokens", "targets"}) {
      Tensor tensor = Tensor::full({kBatch, kSequence});
      for (double &value : tensor.values)
        value = generator() % kVocab;
      inputs.arguments[0][name] = tensor;
    }
    // Ranks count different numbers of labels, so a mean of their means would
    // be another loss.
    std::fill_n(inputs.arguments[0]["targets"].values.begin(), 3, -100);
    return inputs;
  }

private:
  dist::PlacementAttr parse(const std::string &text) {
    return cast<dist::PlacementAttr>(
        parseAttribute("#fsdp.placement" + text, &context));
  }

  /// Products are cut along their outputs, and those behind them along their
  /// inputs (Shoeybi et al., 2019).
  dist::PlacementAttr placementOf(nn::ParameterOp parameter) {
    StringRef name = parameter.getSymName();
    name.consume_back(".weight");
    dist::Placement placement(parameter.getTensorType().getRank());
    auto tp = dist::AxisRefAttr::get(&context, "tp");
    for (const char *column : {"wq", "wk", "wv", "w1", "w3"})
      if (name.ends_with(column))
        placement.dims[0].compute.push_back(tp);
    for (const char *row : {"wo", "w2"})
      if (name.ends_with(row))
        placement.dims[1].compute.push_back(tp);
    if (parallelism.stored)
      placement.dims[0].storage.push_back(
          dist::AxisRefAttr::get(&context, "dp"));
    return placement.attribute(&context);
  }

  void pin(nn::RMSNormOp norm) {
    builder.setInsertionPoint(norm);
    auto place = dist::RedistributeOp::create(
        builder, norm.getLoc(), norm.getInput(),
        FlatSymbolRefAttr::get(&context, "mesh"),
        parse(parallelism.sequence ? "<[{\"dp\"}, {\"tp\"}, {}]>"
                                   : "<[{\"dp\"}, {}, {}]>"));
    norm.getInput().replaceAllUsesExcept(place, place);
  }

  MLIRContext &context;
  OpBuilder builder;
  const Parallelism &parallelism;
  OwningOpRef<ModuleOp> module;
};

class LlamaPlacement : public testing::TestWithParam<Parallelism> {
protected:
  LogicalResult localize(ModuleOp module) {
    return runPasses(module, createDifferentiate(), createCanonicalizerPass(),
                     createCSEPass(), createPropagate(),
                     createVerifyPlacements(), createExpand());
  }

  /// Collectives over "tp" by kind, in a model of so many layers.
  std::map<std::string, int> collectives(int64_t layers) {
    ParallelLlama llama(context, GetParam(), layers);
    llama.place();
    EXPECT_TRUE(succeeded(localize(llama.get())));
    std::map<std::string, int> counts;
    trainOf(llama.get()).walk([&](Operation *op) {
      auto axes = op->getAttrOfType<ArrayAttr>("axes");
      if (axes && !isa<dist::ShardOfOp>(op) &&
          llvm::any_of(dist::axisRefs(axes), [](dist::AxisRefAttr axis) {
            return axis.getName() == "tp";
          }))
        ++counts[op->getName().stripDialect().str()];
    });
    return counts;
  }

  PlacedContext context;
};

TEST_P(LlamaPlacement, KeepsLossAndGradients) {
  ParallelLlama llama(context, GetParam(), /*layers=*/2);
  ModuleOp module = llama.get();
  GridInputs inputs = llama.inputs();
  OwningOpRef<ModuleOp> whole = module.clone();
  ASSERT_TRUE(succeeded(runPasses(*whole, createDifferentiate())));
  GridOutputs expected = run(trainOf(*whole), inputs);
  llama.place();
  ASSERT_TRUE(succeeded(localize(module)));
  GridOutputs local = run(trainOf(module), inputs);
  EXPECT_EQ(difference(local.state, expected.state), "") << text(module);
  for (const TensorMap &results : local.results)
    EXPECT_EQ(difference(results, expected.results[0]), "");
}

// Activations alone move over "tp": the input and output of attention and of
// the feed-forward network, forwards and backwards. Norm weights have parts of
// their gradient on every rank if the sequence is cut.
TEST_P(LlamaPlacement, MovesWhatTensorParallelismMoves) {
  std::map<std::string, int> perLayer = collectives(3);
  for (const auto &[kind, count] : collectives(2))
    perLayer[kind] -= count;
  if (GetParam().tp == 1) {
    for (const auto &[kind, count] : perLayer)
      EXPECT_EQ(count, 0) << kind;
  } else if (GetParam().sequence) {
    EXPECT_EQ(perLayer["all_gather"], 4);
    EXPECT_EQ(perLayer["reduce_scatter"], 4);
    EXPECT_EQ(perLayer["all_reduce"], 2);
  } else {
    EXPECT_EQ(perLayer["all_gather"], 0);
    EXPECT_EQ(perLayer["reduce_scatter"], 0);
    EXPECT_EQ(perLayer["all_reduce"], 4);
  }
  EXPECT_EQ(perLayer["all_to_all"], 0);
}

// Rows of the loss lie where their tokens do; nothing gathers them. Numbers
// alone are added: the sum of the losses and the count of the labels.
TEST_P(LlamaPlacement, CutsTheRowsOfTheLoss) {
  ParallelLlama llama(context, GetParam(), /*layers=*/1);
  llama.place();
  ASSERT_TRUE(succeeded(localize(llama.get())));
  int64_t sequence = kSequence / (GetParam().sequence ? GetParam().tp : 1);
  SmallVector<int64_t> rows = {kBatch / GetParam().dp, sequence};
  int losses = 0, counts = 0;
  trainOf(llama.get()).walk([&](Operation *op) {
    if (auto loss = dyn_cast<nn::CrossEntropyOp>(op)) {
      ++losses;
      EXPECT_EQ(loss.getRows().getType().getShape(), ArrayRef(rows));
    } else if (auto count = dyn_cast<nn::CountLabelsOp>(op)) {
      ++counts;
      // Every rank of "tp" has all targets of its sequences.
      EXPECT_EQ(count.getTargets().getType().getShape()[0], rows[0]);
      EXPECT_EQ(isa<dist::AllReduceOp>(*count->user_begin()),
                GetParam().dp > 1);
    }
  });
  EXPECT_EQ(losses, 1);
  EXPECT_EQ(counts, 1);
}

//===----------------------------------------------------------------------===//
// Faults in what moves: none is found by a verifier, all by the interpreter
//===----------------------------------------------------------------------===//

/// Plants one fault into `op`; false if the op can have none of its kind.
using Plant = bool (*)(Operation *op);

struct MoveFault {
  const char *name;
  Plant plant;
};

/// Any part of one repeated number is as good as another.
bool isRepeatedNumber(Operation *op) {
  while (auto shard = dyn_cast_or_null<dist::ShardOfOp>(op))
    op = shard->getOperand(0).getDefiningOp();
  auto broadcast = dyn_cast_or_null<nn::BroadcastOp>(op);
  return broadcast && broadcast.getInput().getType().getRank() == 0;
}

bool alongOtherAxis(Operation *op) {
  auto axes = op->getAttrOfType<ArrayAttr>("axes");
  if (!axes || axes.size() != 1 || isRepeatedNumber(op))
    return false;
  bool isTp = cast<dist::AxisRefAttr>(axes[0]).getName() == "tp";
  op->setAttr("axes",
              dist::axesAttr(op->getContext(),
                             dist::AxisRefAttr::get(op->getContext(),
                                                    isTp ? "dp" : "tp")));
  return true;
}

bool maximumForSum(Operation *op) {
  auto kind = dist::CollectiveReduceAttr::get(op->getContext(),
                                              dist::CollectiveReduce::Max);
  if (!isa<dist::ReduceScatterOp, dist::AllReduceOp>(op))
    return false;
  op->setAttr("kind", kind);
  return true;
}

bool otherScale(Operation *op) {
  // The verifier lets integers have no scale but 1.
  if (!isa<dist::ReduceScatterOp, dist::AllReduceOp>(op) ||
      !isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))))
    return false;
  op->setAttr("scale", Builder(op->getContext()).getF64FloatAttr(0.5));
  return true;
}

/// The parts of one rank are taken for the sum.
bool noReduction(Operation *op) {
  if (!isa<dist::AllReduceOp>(op) ||
      op->getOperand(0).getType() != op->getResult(0).getType())
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

/// A sum of two cotangents, or a residual, is half lost.
bool lostSummand(Operation *op) {
  if (!isa<nn::AddOp>(op))
    return false;
  op->getResult(0).replaceAllUsesWith(op->getOperand(0));
  op->erase();
  return true;
}

const MoveFault kMoveFaults[] = {
    {"along the other axis", alongOtherAxis},
    {"a maximum instead of a sum", maximumForSum},
    {"another scale", otherScale},
    {"no reduction", noReduction},
    {"a summand is lost", lostSummand},
};

TEST(PlacementMeaning, FaultsAreFound) {
  PlacedContext context;
  const Parallelism parallelism{"", 2, 2, /*sequence=*/true, /*stored=*/true};
  ParallelLlama llama(context, parallelism, /*layers=*/2);
  llama.place();
  ModuleOp module = llama.get();
  GridInputs inputs = llama.inputs();
  ASSERT_TRUE(succeeded(runPasses(module, createDifferentiate(),
                                  createCanonicalizerPass(), createCSEPass(),
                                  createPropagate(), createExpand())));
  GridOutputs expected = run(trainOf(module), inputs);
  int64_t ops = 0, planted = 0;
  trainOf(module).walk([&](Operation *) { ++ops; });
  for (const MoveFault &fault : kMoveFaults)
    for (int64_t which = 0; which < ops; ++which) {
      OwningOpRef<ModuleOp> copy = module.clone();
      SmallVector<Operation *> all;
      trainOf(*copy).walk([&](Operation *op) { all.push_back(op); });
      if (!fault.plant(all[which]))
        continue;
      ++planted;
      // Otherwise it would need no interpreter.
      ASSERT_TRUE(succeeded(verify(*copy)));
      std::string found;
      try {
        GridOutputs actual = run(trainOf(*copy), inputs);
        found = difference(actual.state, expected.state) +
                difference(actual.results[0], expected.results[0]);
      } catch (const std::runtime_error &error) {
        found = error.what();
      }
      EXPECT_NE(found, "") << fault.name << " at op " << which;
    }
  std::printf("%lld faults planted\n", static_cast<long long>(planted));
  EXPECT_GT(planted, 100);
}

const Parallelism kParallelisms[] = {
    {"dp2", 2, 1, false, false},
    {"tp2", 1, 2, false, false},
    {"tp4", 1, 4, false, false},
    {"tp2_sequence", 1, 2, true, false},
    {"tp4_sequence", 1, 4, true, false},
    {"dp2_tp2", 2, 2, false, true},
    {"dp2_tp2_sequence", 2, 2, true, true},
};

INSTANTIATE_TEST_SUITE_P(Meshes, LlamaPlacement,
                         testing::ValuesIn(kParallelisms),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
