//===- Summary.cpp - What a traced model consists of ----------------------===//
#include "fsdp/Trace/Summary.h"
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NN.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace fsdp {

/// The uses of a parameter's value, seen through casts.
static void collectUses(Value value, SmallVectorImpl<OpOperand *> &uses) {
  for (OpOperand &use : value.getUses()) {
    if (auto cast = dyn_cast<nn::CastOp>(use.getOwner()))
      collectUses(cast.getResult(), uses);
    else
      uses.push_back(&use);
  }
}

/// Names of parameters that some op multiplies, rather than takes rows of.
static llvm::StringSet<> collectMultiplied(ModuleOp module) {
  llvm::StringSet<> names;
  module.walk([&](nn::ReadOp read) {
    SmallVector<OpOperand *> uses;
    collectUses(read.getValue(), uses);
    if (llvm::any_of(uses, [](OpOperand *use) {
          return !isa<nn::EmbeddingOp, nn::SliceOp>(use->getOwner());
        }))
      names.insert(read.getName());
  });
  return names;
}

ModelSummary summarize(ModuleOp module) {
  ModelSummary summary;
  llvm::StringSet<> multiplied = collectMultiplied(module);
  for (auto parameter : module.getOps<nn::ParameterOp>()) {
    int64_t elements = parameter.getTensorType().getNumElements();
    summary.parameters += elements;
    summary.tensors += 1;
    if (!multiplied.contains(parameter.getSymName()))
      summary.lookedUp += elements;
  }
  CheckedSize attentionFlops = 0;
  module.walk([&](nn::AttentionOp attention) {
    auto query = cast<RankedTensorType>(attention.getQuery().getType());
    auto key = cast<RankedTensorType>(attention.getKey().getType());
    int64_t heads = query.getDimSize(2), headDim = query.getDimSize(3);
    // A query and a value head, 2 flops each, forward once, backward twice.
    attentionFlops +=
        CheckedSize(6 * heads * (headDim + headDim)) * key.getDimSize(1);
  });
  summary.attentionFlops = attentionFlops.saturated();
  return summary;
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

/// 8030261248 -> "8,030,261,248".
static std::string grouped(int64_t number) {
  std::string digits = std::to_string(number);
  for (int64_t at = digits.size() - 3; at > 0; at -= 3)
    digits.insert(at, ",");
  return digits;
}

namespace {
struct Row {
  std::string name, shape;
  int64_t tensors = 0, parameters = 0;
};
} // namespace

/// One row per name and shape, in the order of registration.
static std::vector<Row> collectRows(ModuleOp module) {
  std::vector<Row> rows;
  llvm::StringMap<size_t> rowOf;
  for (auto parameter : module.getOps<nn::ParameterOp>()) {
    RankedTensorType type = parameter.getTensorType();
    std::string name = nn::withoutNumbers(parameter.getSymName());
    std::string shape =
        llvm::formatv("[{0:$[, ]}]", llvm::make_range(type.getShape().begin(),
                                                      type.getShape().end()));
    auto [at, isNew] = rowOf.try_emplace(name + shape, rows.size());
    if (isNew)
      rows.push_back({name, shape});
    Row &row = rows[at->second];
    row.tensors += 1;
    row.parameters += type.getNumElements();
  }
  return rows;
}

void printSummary(ModuleOp module, llvm::raw_ostream &os) {
  std::vector<Row> rows = collectRows(module);
  size_t nameWidth = 5, shapeWidth = 5;
  for (const Row &row : rows) {
    nameWidth = std::max(nameWidth, row.name.size());
    shapeWidth = std::max(shapeWidth, row.shape.size());
  }
  auto printRow = [&](StringRef name, StringRef shape, StringRef tensors,
                      StringRef parameters) {
    os << llvm::left_justify(name, nameWidth) << "  "
       << llvm::left_justify(shape, shapeWidth) << "  "
       << llvm::right_justify(tensors, 7) << "  "
       << llvm::right_justify(parameters, 15) << "\n";
  };
  printRow("name", "shape", "tensors", "parameters");
  for (const Row &row : rows)
    printRow(row.name, row.shape, grouped(row.tensors),
             grouped(row.parameters));

  ModelSummary summary = summarize(module);
  printRow("total", "", grouped(summary.tensors), grouped(summary.parameters));
  os << "\nparameters: " << summary.parameters
     << "\ntensors: " << summary.tensors
     << "\nflops per token: " << summary.flopsPerToken() << "\n";
}

} // namespace fsdp
