//===- ShardingRule.cpp - The notation of sharding rules ------------------===//
#include "dialects/NN/ShardingRule.h"
#include "dialects/NN/NNSupport.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::nn;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static std::string tensorText(const ShardingRule &rule,
                              const ShardingRule::Dims &dims) {
  auto factorText = [&](unsigned factor) {
    return rule.factors[factor].name +
           (rule.factors[factor].needsReplication ? "!" : "");
  };
  SmallVector<std::string> words;
  for (const auto &dim : dims) {
    std::string word = llvm::join(llvm::map_range(dim, factorText), " ");
    words.push_back(dim.size() == 1 ? word : "(" + word + ")");
  }
  return llvm::join(words, " ");
}

std::string ShardingRule::str() const {
  auto text = [&](const Dims &dims) { return tensorText(*this, dims); };
  return llvm::join(llvm::map_range(operands, text), ", ") + " -> " +
         llvm::join(llvm::map_range(results, text), ", ");
}

//===----------------------------------------------------------------------===//
// Notation
//===----------------------------------------------------------------------===//

namespace {

/// Reads the notation of one op, tensor by tensor.
class RuleReader {
public:
  ShardingRule read(Operation *op, StringRef notation) {
    auto [operands, results] = notation.split("->");
    readSide(operands, op->getOperands(), rule.operands);
    readSide(results, op->getResults(), rule.results);
    // A product takes its unknown factor from what its others leave.
    for (auto [dim, size] : products)
      solve(*dim, size);
    return std::move(rule);
  }

private:
  void readSide(StringRef side, ValueRange values,
                SmallVectorImpl<ShardingRule::Dims> &tensors) {
    SmallVector<StringRef> texts;
    side.split(texts, ',');
    if (values.empty())
      return;
    assert(texts.size() == values.size() && "one word list per tensor");
    tensors.resize(values.size());
    for (auto [text, value, dims] : llvm::zip_equal(texts, values, tensors))
      readTensor(text, shapeOf(value), dims);
  }

  void readTensor(StringRef text, ArrayRef<int64_t> shape,
                  ShardingRule::Dims &dims) {
    dims.resize(shape.size());
    size_t dim = 0;
    text = text.trim();
    while (!text.empty()) {
      if (text.consume_front("...")) {
        bool needsReplication = text.consume_front("!");
        readLeading(shape, wordsIn(text), needsReplication, dims);
        dim = shape.size() - wordsIn(text);
      } else if (text.consume_front("(")) {
        auto [product, rest] = text.split(')');
        readProduct(product, shape[dim], dims[dim]);
        text = rest;
        ++dim;
      } else {
        dims[dim].push_back(readFactor(text, shape[dim]));
        ++dim;
      }
      text = text.ltrim();
    }
    assert(dim == shape.size() && "a word for every dimension");
  }

  /// Dimensions that `text` names.
  static size_t wordsIn(StringRef text) {
    size_t words = 0;
    bool inProduct = false;
    for (char c : text) {
      if (c == '(')
        ++words;
      inProduct = c == '(' || (inProduct && c != ')');
      words += !inProduct && llvm::isAlpha(c);
    }
    return words;
  }

  void readLeading(ArrayRef<int64_t> shape, size_t after, bool needsReplication,
                   ShardingRule::Dims &dims) {
    for (size_t i = 0; i + after < shape.size(); ++i)
      dims[i].push_back(factor(std::to_string(i), shape[i], needsReplication));
  }

  void readProduct(StringRef text, int64_t size,
                   SmallVector<unsigned, 1> &dim) {
    text = text.trim();
    while (!text.empty()) {
      dim.push_back(readFactor(text, /*size=*/0));
      text = text.ltrim();
    }
    products.push_back({&dim, size});
  }

  /// Takes one letter, and '!', from the front of `text`.
  unsigned readFactor(StringRef &text, int64_t size) {
    StringRef name = text.take_front();
    text = text.drop_front();
    bool needsReplication = text.consume_front("!");
    return factor(name, size, needsReplication);
  }

  unsigned factor(StringRef name, int64_t size, bool needsReplication) {
    auto [it, inserted] = index.try_emplace(name, rule.factors.size());
    if (inserted)
      rule.factors.push_back({name.str(), size, needsReplication});
    ShardingFactor &factor = rule.factors[it->second];
    factor.size = std::max(factor.size, size);
    assert((size == 0 || size == factor.size) && "a factor has one size");
    return it->second;
  }

  void solve(ArrayRef<unsigned> dim, int64_t size) {
    ShardingFactor *unknown = nullptr;
    for (unsigned i : dim) {
      if (rule.factors[i].size == 0)
        unknown = &rule.factors[i];
      else
        size /= rule.factors[i].size;
    }
    if (unknown)
      unknown->size = size;
  }

  ShardingRule rule;
  llvm::StringMap<unsigned> index;
  SmallVector<std::pair<SmallVector<unsigned, 1> *, int64_t>> products;
};

} // namespace

ShardingRule nn::shardingRule(Operation *op, StringRef notation) {
  return RuleReader().read(op, notation);
}

ShardingRule nn::elementwiseRule(Operation *op) {
  std::string operands = "...";
  for (unsigned i = 1; i < op->getNumOperands(); ++i)
    operands += ", ...";
  return shardingRule(op, operands + " -> ...");
}
