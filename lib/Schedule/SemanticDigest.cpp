//===- SemanticDigest.cpp - What a program computes, as digests -----------===//
#include "fsdp/Schedule/SemanticDigest.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

namespace {

using Digest = uint64_t;

/// Mixes numbers and texts in order. Not llvm::hash_value: that differs from
/// run to run.
class Mixer {
public:
  Mixer &add(Digest digest) {
    bytes.append(reinterpret_cast<const char *>(&digest), sizeof(digest));
    return *this;
  }
  Mixer &add(StringRef text) { return add(llvm::xxh3_64bits(text)); }
  Digest get() const { return llvm::xxh3_64bits(StringRef(bytes)); }

private:
  std::string bytes;
};

/// Attributes and types are unique, so each is printed once.
class Digests {
public:
  template <typename T> Digest of(T what) {
    auto [it, isNew] = digests.try_emplace(what.getAsOpaquePointer(), 0);
    if (isNew) {
      std::string text;
      llvm::raw_string_ostream(text) << what;
      it->second = llvm::xxh3_64bits(text);
    }
    return it->second;
  }

private:
  DenseMap<const void *, Digest> digests;
};

/// Follows a program op by op.
class Follower {
public:
  std::vector<SemanticDigest> run(func::FuncOp program) {
    addInterface(program);
    Block &body = program.getBody().front();
    for (auto [i, argument] : llvm::enumerate(body.getArguments()))
      terms[argument] = Mixer().add("argument").add(i).get();
    for (Operation &op : body)
      follow(op);
    llvm::stable_sort(effects,
                      [](const SemanticDigest &a, const SemanticDigest &b) {
                        return a.what < b.what;
                      });
    return std::move(effects);
  }

private:
  /// What others know the program's arguments and results by.
  void addInterface(func::FuncOp program) {
    auto add = [&](const Twine &what, Type type, DictionaryAttr attributes) {
      addEffect("the name, type or placement of " + what.str(),
                Mixer()
                    .add(digests.of(type))
                    .add(attributes ? digests.of(attributes) : 0)
                    .get());
    };
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
      add("argument " + Twine(i), type, program.getArgAttrDict(i));
    for (auto [i, type] : llvm::enumerate(program.getResultTypes()))
      add("result " + Twine(i), type, program.getResultAttrDict(i));
    addEffect("whether it is a rank's own program",
              program->hasAttr(dist::kLocalAttr));
  }

  void follow(Operation &op) {
    if (auto async = dyn_cast<dist::AsyncOp>(op))
      return follow(async);
    if (auto await = dyn_cast<dist::AwaitOp>(op))
      return pass(await.getFuture().getDefiningOp(), await);
    if (auto again = dyn_cast<nn::RecomputeFromOp>(op))
      return same(again->getOperands(), again->getResults());
    if (auto fusion = dyn_cast<nn::FusionOp>(op))
      return follow(fusion);
    if (isa<dist::CollectiveOpInterface>(op))
      return followEach(op);
    if (op.hasTrait<OpTrait::IsTerminator>())
      return followReturn(op);
    Digest term = termOf(op, op.getOperands());
    for (auto [i, result] : llvm::enumerate(op.getResults()))
      terms[result] = Mixer().add(term).add(i).get();
    if (auto shard = dyn_cast<dist::ShardOfOp>(op))
      shards[terms[shard.getResult()]] = shard;
    if (writes(op))
      addWrite(op, term);
  }

  void same(ValueRange from, ValueRange to) {
    for (auto [value, other] : llvm::zip_equal(from, to))
      terms[other] = terms.lookup(value);
  }

  void follow(dist::AsyncOp async) {
    for (Operation &op : async.getBody().front())
      if (auto yield = dyn_cast<dist::YieldOp>(op)) {
        SmallVector<Digest> &values = futures[async];
        for (Value value : yield.getValues())
          values.push_back(terms.lookup(value));
      } else {
        follow(op);
      }
  }

  void pass(Operation *async, dist::AwaitOp await) {
    SmallVector<Digest> values = futures.lookup(async);
    values.resize(await.getNumResults()); // another pass refuses what is short
    for (auto [value, result] : llvm::zip_equal(values, await.getResults()))
      terms[result] = value;
  }

  void follow(nn::FusionOp fusion) {
    Block &body = fusion.getBody().front();
    same(fusion->getOperands(), body.getArguments());
    for (Operation &op : body.without_terminator())
      follow(op);
    same(body.getTerminator()->getOperands(), fusion->getResults());
  }

  /// A bucket does with each of its operands what a collective of one does.
  void followEach(Operation &op) {
    auto gather = dyn_cast<dist::AllGatherOp>(op);
    for (auto [operand, result] :
         llvm::zip_equal(op.getOperands(), op.getResults())) {
      if (std::optional<Digest> whole = wholeOf(gather, operand, result)) {
        terms[result] = *whole;
        continue;
      }
      terms[result] = Mixer()
                          .add(termOf(op, operand))
                          .add(digests.of(result.getType()))
                          .get();
      if (gather)
        gathers[terms[result]] = gather;
    }
  }

  /// What a gather has made equal on the ranks of its axes, sharded and
  /// gathered over some of these ranks along one dimension, is what it was.
  std::optional<Digest> wholeOf(dist::AllGatherOp gather, Value operand,
                                Value result) {
    dist::ShardOfOp shard = shards.lookup(terms.lookup(operand));
    if (!gather || !shard || gather.getMeshAttr() != shard.getMeshAttr() ||
        gather.getAxesAttr() != shard.getAxesAttr() ||
        gather.getDim() != shard.getDim() ||
        result.getType() != shard.getInput().getType())
      return std::nullopt;
    Digest whole = terms.lookup(shard.getInput());
    dist::AllGatherOp equal = gathers.lookup(whole);
    if (!equal || equal.getMeshAttr() != shard.getMeshAttr() ||
        !dist::areWithin(shard.getAxes(), equal.getAxes()))
      return std::nullopt;
    return whole;
  }

  void followReturn(Operation &op) {
    for (auto [i, operand] : llvm::enumerate(op.getOperands()))
      addEffect("result " + std::to_string(i), terms.lookup(operand));
  }

  //===--- Terms ----------------------------------------------------------===//

  /// The op without what only names it, what it is applied to, and what it
  /// reads of the state of the model.
  Digest termOf(Operation &op, ValueRange operands) {
    Mixer mixer;
    mixer.add(op.getName().getStringRef());
    for (NamedAttribute attribute : op.getAttrs())
      if (!isLabel(attribute.getName().getValue()))
        mixer.add(attribute.getName().getValue())
            .add(digests.of(attribute.getValue()));
    for (Value operand : operands)
      mixer.add(terms.lookup(operand));
    if (!isa<dist::CollectiveOpInterface>(op))
      for (Type type : op.getResultTypes())
        mixer.add(digests.of(type));
    forEachTensor(op, [&](StringRef name) { mixer.add(version[name]); });
    return mixer.get();
  }

  static bool isLabel(StringRef attribute) {
    return attribute == nn::kModuleAttr || attribute == dist::kOriginAttr ||
           attribute == dist::kMembersAttr ||
           attribute == dist::kDecisionAttr ||
           attribute == dist::kParametersAttr || attribute == "serves" ||
           attribute == "regathered";
  }

  //===--- State ----------------------------------------------------------===//

  static bool writes(Operation &op) {
    auto effects = dyn_cast<MemoryEffectOpInterface>(op);
    return effects && effects.hasEffect<MemoryEffects::Write>();
  }

  /// Calls `visit` with the tensors of the model that an op reads or writes;
  /// the name of a mesh is none, and stays what it is. It goes by the effects
  /// and symbols of any op, not by a list of ops as exec-lower's statement does
  /// (ExecLowerEffects.cpp), with which it is to share no mistake.
  static void forEachTensor(Operation &op,
                            llvm::function_ref<void(StringRef)> visit) {
    if (!isa<MemoryEffectOpInterface>(op))
      return;
    for (NamedAttribute attribute : op.getAttrs())
      if (!isLabel(attribute.getName().getValue()))
        attribute.getValue().walk(
            [&](FlatSymbolRefAttr symbol) { visit(symbol.getValue()); });
  }

  void addWrite(Operation &op, Digest term) {
    std::string what = op.getName().getStringRef().str();
    bool first = true;
    forEachTensor(op, [&](StringRef name) {
      ++version[name];
      if (std::exchange(first, false))
        what += " of '" + name.str() + "'";
    });
    addEffect(what, term);
  }

  void addEffect(const std::string &what, Digest term) {
    effects.push_back({what, static_cast<int64_t>(term)});
  }

  DenseMap<Value, Digest> terms;
  DenseMap<Operation *, SmallVector<Digest>> futures;
  /// By the terms of their results.
  DenseMap<Digest, dist::ShardOfOp> shards;
  DenseMap<Digest, dist::AllGatherOp> gathers;
  Digests digests;
  /// How often a tensor of the model has been written.
  llvm::StringMap<uint64_t> version;
  std::vector<SemanticDigest> effects;
};

} // namespace

std::vector<SemanticDigest>
fsdp::schedule::semanticDigestsOf(func::FuncOp program) {
  return Follower().run(program);
}

std::vector<SemanticDigest>
fsdp::schedule::declarationDigestsOf(ModuleOp module) {
  Digests digests;
  Mixer programs, state, meshes;
  for (Operation &op : *module.getBody()) {
    if (auto program = dyn_cast<func::FuncOp>(op))
      programs.add(program.getName());
    else
      (isa<dist::MeshOp>(op) ? meshes : state)
          .add(op.getName().getStringRef())
          .add(digests.of(op.getAttrDictionary()));
  }
  auto attribute = [&](StringRef name) {
    Attribute value = module->getAttr(name);
    return static_cast<int64_t>(value ? digests.of(value) : 0);
  };
  auto digest = [](const Mixer &mixer) {
    return static_cast<int64_t>(mixer.get());
  };
  return {{"the set of programs", digest(programs)},
          {"the declaration of parameters and buffers", digest(state)},
          {"the mesh", digest(meshes)},
          {("the list of programs of a step, '" + nn::kStepsAttr + "',").str(),
           attribute(nn::kStepsAttr)},
          {("the model, '" + nn::kModelAttr + "',").str(),
           attribute(nn::kModelAttr)}};
}
