//===- PlacementMeaningTest.cpp - A placement changes no meaning ----------===//
//
// Random programs with random placements on random meshes, in f64: the loss and
// every gradient (or the norm and what an optimizer step leaves) of the program
// of one rank, run on all ranks, are those of the logical program.
// FSDP_RANDOM_PROGRAMS sets how many are tried.
//
//===----------------------------------------------------------------------===//
#include "RandomProgram.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Families/TraceModel.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Transforms/Passes.h"
#include <gtest/gtest.h>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::interpret;

namespace {

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
  /// The residual stream is sharded along the sequence over "tp".
  bool sequence;
  /// Parameters are stored sharded over "dp" as well.
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
    DecoderConfig config = checkpoint::findFamily("llama3")->base;
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
      return dist::MeshAxisAttr::get(&context, name, size, std::nullopt);
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
    // Of pre-norm blocks the residual stream is what norms read.
    forward.walk([&](nn::RMSNormOp norm) { pin(norm); });
  }

  GridInputs inputs() {
    std::mt19937_64 generator(5);
    std::uniform_real_distribution<double> uniform(-0.5, 0.5);
    GridInputs inputs;
    for (auto parameter : module->getOps<nn::ParameterOp>()) {
      DenseTensor tensor =
          DenseTensor::full(parameter.getTensorType().getShape().vec());
      for (double &value : tensor.values)
        value = uniform(generator);
      inputs.state[parameter.getSymName().str()] = tensor;
    }
    inputs.arguments.resize(1);
    for (const char *name : {"tokens", "targets"}) {
      DenseTensor tensor = DenseTensor::full({kBatch, kSequence});
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

  /// Products are sharded along their outputs, and those after them along their
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
// their gradient on every rank if the sequence is sharded.
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

bool twiceTheSum(Operation *op) {
  if (!isa<dist::ReduceScatterOp, dist::AllReduceOp>(op) ||
      !isa<FloatType>(getElementTypeOrSelf(op->getOperand(0))))
    return false;
  Value sum = op->getResult(0);
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  auto twice = nn::AddOp::create(builder, op->getLoc(), sum, sum);
  sum.replaceAllUsesExcept(twice.getResult(), twice);
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
    {"twice the sum", twiceTheSum},
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
