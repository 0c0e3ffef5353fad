//===- RandomInputs.cpp - What a program reads, made up -------------------===//
#include "RandomInputs.h"
#include "llvm/Support/xxhash.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace fsdp;
using interpret::DenseTensor;

static std::mt19937_64 generatorOf(uint64_t seed, StringRef name) {
  return std::mt19937_64(seed ^ llvm::xxh3_64bits(name));
}

static DenseTensor uniform(RankedTensorType type, double low, double high,
                           std::mt19937_64 generator) {
  std::uniform_real_distribution<double> distribution(low, high);
  DenseTensor tensor = DenseTensor::full(type.getShape().vec());
  for (double &value : tensor.values)
    value = distribution(generator);
  return tensor;
}

static DenseTensor normal(RankedTensorType type, nn::NormalAttr init,
                          std::mt19937_64 generator) {
  std::normal_distribution<double> distribution;
  double cut = init.getCut();
  DenseTensor tensor = DenseTensor::full(type.getShape().vec());
  for (double &value : tensor.values) {
    do
      value = distribution(generator);
    while (cut > 0 && std::fabs(value) > cut);
    value *= init.getStd();
  }
  return tensor;
}

/// The parameters that start with random values; others know their own.
static void addParameters(ModuleOp module, uint64_t seed,
                          interpret::TensorMap &state) {
  for (auto parameter : module.getOps<nn::ParameterOp>()) {
    StringRef name = parameter.getSymName();
    RankedTensorType type = parameter.getTensorType();
    if (state.count(name.str()))
      continue;
    if (auto init = dyn_cast<nn::NormalAttr>(parameter.getInit()))
      state[name.str()] = normal(type, init, generatorOf(seed, name));
    else if (auto init = dyn_cast<nn::UniformAttr>(parameter.getInit()))
      state[name.str()] = uniform(type, -init.getBound(), init.getBound(),
                                  generatorOf(seed, name));
  }
}

/// The integers that an argument may hold: [0, limit).
static int64_t limitOf(Value argument) {
  int64_t limit = 0;
  auto narrow = [&](Value table, unsigned dim) {
    int64_t size = cast<RankedTensorType>(table.getType()).getDimSize(dim);
    limit = limit == 0 ? size : std::min(limit, size);
  };
  for (Operation *user : argument.getUsers()) {
    if (auto embedding = dyn_cast<nn::EmbeddingOp>(user))
      narrow(embedding.getTable(), 0);
    else if (auto loss = dyn_cast<nn::CrossEntropyOp>(user))
      narrow(loss.getLogits(),
             cast<RankedTensorType>(loss.getLogits().getType()).getRank() - 1);
  }
  return limit == 0 ? 2 : limit;
}

/// `type` is that of what is given.
static DenseTensor argumentValue(Value argument, RankedTensorType type,
                                 std::mt19937_64 generator) {
  bool isInteger = isa<IntegerType>(type.getElementType());
  if (type.getRank() == 0)
    return DenseTensor::scalar(isInteger ? 1 : 0.01);
  if (!isInteger)
    return uniform(type, -1, 1, generator);
  DenseTensor tensor = uniform(type, 0, limitOf(argument), generator);
  for (double &value : tensor.values)
    value = std::floor(value);
  return tensor;
}

void fsdp::addRandomInputs(func::FuncOp program, uint64_t seed,
                           bool sameOnAllRanks, interpret::GridInputs &inputs) {
  addParameters(program->getParentOfType<ModuleOp>(), seed, inputs.state);
  for (auto [rank, arguments] : llvm::enumerate(inputs.arguments))
    for (BlockArgument argument : program.getArguments()) {
      unsigned number = argument.getArgNumber();
      std::string name = interpret::argumentName(program, number);
      interpret::GivenArgument given =
          interpret::givenArgument(program, number);
      uint64_t own = seed + (sameOnAllRanks || given.isShared ? 0 : rank);
      if (!arguments.count(name))
        arguments[name] =
            argumentValue(argument, given.type, generatorOf(own, name));
    }
}
