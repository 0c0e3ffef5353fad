//===- RecomputedValues.cpp - What a policy computes again ----------------===//
#include "fsdp/Schedule/RecomputedValues.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

using Kind = RecomputePolicy::Kind;

namespace {

/// An entry of a list: "linear", "rotary#2", "layers.*.ffn_norm::rms_norm".
class Selector {
public:
  explicit Selector(const std::string &text) {
    StringRef module, op = text;
    if (size_t at = op.rfind("::"); at != StringRef::npos) {
      module = op.take_front(at);
      op = op.drop_front(at + 2);
    }
    this->op = opOfTorchName(op.str());
    if (module.empty())
      return;
    llvm::Expected<llvm::GlobPattern> glob =
        llvm::GlobPattern::create(module, /*MaxSubPatterns=*/1024);
    if (!glob)
      throw Error("compile.recompute: '" + text + "': '" + module.str() +
                  "' is not a glob: " + llvm::toString(glob.takeError()));
    modules = std::move(*glob);
  }

  bool matches(dist::OriginAttr origin) const {
    std::string numbered =
        (origin.getOp() + "#" + Twine(origin.getIndex())).str();
    return (op == origin.getOp() || op == numbered) &&
           (!modules || modules->match(origin.getPath()));
  }

private:
  std::string op;
  std::optional<llvm::GlobPattern> modules;
};

} // namespace

/// "layers.*.attention.wq::linear, …", each once.
static std::string selectable(ArrayRef<dist::OriginAttr> origins) {
  std::vector<std::string> names;
  for (dist::OriginAttr origin : origins)
    if (std::string name =
            nn::withoutNumbers(origin.getPath()) + "::" + origin.getOp().str();
        !llvm::is_contained(names, name))
      names.push_back(std::move(name));
  return names.empty() ? "nothing" : llvm::join(names, ", ");
}

static llvm::DenseSet<dist::OriginAttr>
selected(ArrayRef<dist::OriginAttr> origins, ArrayRef<std::string> ops) {
  llvm::DenseSet<dist::OriginAttr> found;
  for (const std::string &text : ops) {
    Selector selector(text);
    size_t matches = 0;
    for (dist::OriginAttr origin : origins)
      if (selector.matches(origin)) {
        found.insert(origin);
        ++matches;
      }
    if (matches == 0)
      throw Error("compile.recompute: '" + text +
                  "' matches no value of a block; what can be matched: " +
                  selectable(origins));
  }
  return found;
}

static bool isMatmul(dist::OriginAttr origin) {
  return origin.getOp() == "linear" || origin.getOp() == "matmul";
}

/// What PyTorch's lists of ops to save have, of those that blocks have here.
static bool isExpensive(dist::OriginAttr origin, const DecisionPoint &point) {
  return isMatmul(origin) || origin.getOp() == "attention" ||
         point.isReduction();
}

/// Whether the block of `origin` is an N-th one, as torchtitan counts: from 1.
static bool isNth(dist::OriginAttr origin, int64_t every) {
  int64_t number = 0;
  // What is no number that fits is in no list of that many blocks.
  return !nn::blockNumberOf(origin.getPath()).getAsInteger(10, number) &&
         number % every == every - 1;
}

llvm::DenseSet<dist::OriginAttr>
fsdp::schedule::recomputedValues(const DecisionPoints &points,
                                 const RecomputePolicy &policy) {
  // What is free need not be in a block.
  std::vector<dist::OriginAttr> inBlocks;
  for (const auto &[origin, point] : points.all())
    if ((point.staysInBlock || (point.isFree && policy.kind == Kind::Free)) &&
        (!point.kind || point.parameter.empty()))
      inBlocks.push_back(origin);
  llvm::DenseSet<dist::OriginAttr> listed = selected(inBlocks, policy.ops);
  llvm::StringMap<int64_t> matmuls; // of each block, so far
  auto isRecomputed = [&](dist::OriginAttr origin, const DecisionPoint &point) {
    switch (policy.kind) {
    case Kind::None:
      return false;
    case Kind::Free:
      return point.isFree;
    case Kind::Full:
      return true;
    case Kind::Every:
      return isNth(origin, policy.every);
    case Kind::Alternating:
      if (isMatmul(origin))
        return matmuls[nn::blockOf(origin.getPath())]++ % 2 == 1;
      [[fallthrough]];
    case Kind::Expensive:
      return !isExpensive(origin, point);
    case Kind::Save:
      return !listed.contains(origin);
    case Kind::Again:
      return listed.contains(origin);
    }
    llvm_unreachable("a kind of policy");
  };
  llvm::DenseSet<dist::OriginAttr> found;
  for (dist::OriginAttr origin : inBlocks)
    if (isRecomputed(origin, points.all().find(origin)->second))
      found.insert(origin);
  if (policy.kind == Kind::Every && found.empty() && !inBlocks.empty())
    throw Error("compile.recompute: 'every-" + std::to_string(policy.every) +
                "' names no block: the model has fewer");
  return found;
}
