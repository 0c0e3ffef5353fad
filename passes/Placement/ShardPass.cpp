//===- ShardPass.cpp - Lays parameters and batches out over a mesh --------===//
//
// Every parameter gets its placement; its reads in a program become one read
// and one redistribute. See PlacementPasses.td.
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/Placement.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/Error.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Verifier.h"
#include "passes/Passes.h"
#include "passes/Placement/ShardedLayers.h"
#include "llvm/ADT/MapVector.h"

namespace fsdp {
#define GEN_PASS_DEF_SHARD
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

/// The reads of one parameter in one program.
using ReadsByParameter =
    llvm::MapVector<StringAttr, SmallVector<nn::ReadOp, 1>>;

/// The axes that an option says, "dp_shard=4:data,tp=2:tensor".
FailureOr<SmallVector<Attribute>> readMesh(ModuleOp module,
                                           const std::string &text) {
  std::vector<MeshAxisOption> mesh;
  try {
    mesh = parseMesh(text);
  } catch (const Error &error) {
    return module.emitError(error.what());
  }
  SmallVector<Attribute> axes;
  for (const MeshAxisOption &option : mesh) {
    auto axis = dist::MeshAxisAttr::getChecked(
        [&] { return module.emitError("mesh \"") << text << "\": "; },
        module.getContext(), StringRef(option.name), option.size, option.kind);
    if (!axis)
      return failure();
    axes.push_back(axis);
  }
  return axes;
}

/// The type that every use of `reads` casts to, if all are casts to one type.
Type commonCastType(ArrayRef<nn::ReadOp> reads) {
  Type common;
  for (nn::ReadOp read : reads)
    for (Operation *user : read->getUsers()) {
      auto cast = dyn_cast<nn::CastOp>(user);
      if (!cast || (common && cast.getType() != common))
        return {};
      common = cast.getType();
    }
  return common;
}

/// The values that computation sees: the reads, or the casts they fold into.
SmallVector<Value> valuesToReplace(ArrayRef<nn::ReadOp> reads, bool casts) {
  SmallVector<Value> values;
  for (nn::ReadOp read : reads) {
    if (!casts) {
      values.push_back(read.getValue());
      continue;
    }
    for (Operation *user : read->getUsers())
      values.push_back(user->getResult(0));
  }
  return values;
}

/// The first op of `block` that uses one of `values`, itself or in a region;
/// null if nothing does.
Operation *firstUserIn(Block &block, ArrayRef<Value> values) {
  Operation *first = nullptr;
  for (Value value : values)
    for (Operation *user : value.getUsers()) {
      Operation *ancestor = block.findAncestorOpInBlock(*user);
      if (!first || ancestor->isBeforeInBlock(first))
        first = ancestor;
    }
  return first;
}

/// What one parameter's redistribute will be; found before anything changes,
/// because the order of ops in a block is costly to ask for while editing.
struct Rewrite {
  nn::ParameterOp parameter;
  SmallVector<nn::ReadOp, 1> reads;
  SmallVector<Value> values;
  RankedTensorType type;
  bool foldsCasts;
  Operation *before;
};

struct ShardPass : fsdp::impl::ShardBase<ShardPass> {
  using Base::Base;

  void runOnOperation() override {
    streamAxes.clear();
    parameters.clear();
    FailureOr<PlacementPolicy> stated = readPolicy();
    if (failed(stated) || failed(createMesh()))
      return signalPassFailure();
    dataAxes = meshOp.axesOf(AxisKind::Data);
    if (policyFile.empty())
      warnOfIdleAxes();
    FailureOr<PlacementPolicy> policy = policyOfMesh(*stated);
    if (failed(policy))
      return signalPassFailure();
    PolicyApplier applier(*policy, getOperation(), meshOp, dataAxes);
    FailureOr<ParameterPlaces> places = applier.parameters();
    FailureOr<dist::AxisList> stream = applier.streamAxes();
    if (failed(places) || failed(stream))
      return signalPassFailure();
    streamAxes = *stream;
    placeFollowers(getOperation(), *places);
    for (auto parameter : getOperation().getOps<nn::ParameterOp>())
      place(parameter, places->lookup(parameter.getSymNameAttr()));
    for (auto program : getOperation().getOps<func::FuncOp>()) {
      rewriteShardedLayers(program, *places);
      if (!program.isExternal() &&
          (failed(placeArguments(program)) || failed(shard(program)) ||
           failed(applier.pinStream(program))))
        return signalPassFailure();
      // Redistributes say from here on where the stream lies.
      program.walk([](nn::AddOp add) { add->removeAttr(nn::kResidualAttr); });
    }
  }

  /// Only a policy can use an axis without a kind.
  void warnOfIdleAxes() {
    for (auto axis : meshOp.getAxes().getAsRange<dist::MeshAxisAttr>())
      if (!axis.getKind() && axis.getSize() > 1)
        meshOp.emitWarning("the ")
            << axis.getSize() << " ranks of the axis \"" << axis.getName()
            << "\" compute the same: it has no kind, and no placement policy "
               "names it; write "
            << axis.getName() << "=" << axis.getSize() << ":data to split "
            << "batches and parameters over it";
  }

  /// Without a file, the built-in plan for the axis that layers are sharded
  /// over.
  FailureOr<PlacementPolicy> policyOfMesh(const PlacementPolicy &stated) {
    dist::AxisList tensorAxes = meshOp.axesOf(AxisKind::Tensor);
    if (!policyFile.empty() || tensorAxes.empty())
      return stated;
    if (tensorAxes.size() > 1)
      return meshOp.emitOpError("has ")
             << tensorAxes.size() << " tensor axes, \""
             << tensorAxes[0].getName() << "\" and \""
             << tensorAxes[1].getName()
             << "\" among them, and the tensor-parallel plan is for "
                "one; name a placement policy";
    return tensorParallelPlan(tensorAxes.front().getName().str(), sequence,
                              loss);
  }

  FailureOr<PlacementPolicy> readPolicy() {
    if (policyFile.empty())
      return PlacementPolicy();
    try {
      return loadPolicy(policyFile);
    } catch (const Error &error) {
      return getOperation().emitError(error.what());
    }
  }

  LogicalResult createMesh() {
    ModuleOp module = getOperation();
    if (!module.getOps<dist::MeshOp>().empty())
      return module.emitError(
          "the module is sharded already: it has an fsdp.mesh");
    if (reduceDtype != "f32" && reduceDtype != "bf16")
      return module.emitError("reduce_dtype must be f32 or bf16, got \"")
             << reduceDtype << "\"";
    FailureOr<SmallVector<Attribute>> parsed = readMesh(module, mesh);
    if (failed(parsed))
      return failure();
    auto builder = OpBuilder::atBlockBegin(module.getBody());
    meshOp = dist::MeshOp::create(builder, module.getLoc(), "mesh",
                                  builder.getArrayAttr(*parsed), nodeSize);
    // The verifier knows what a mesh may be; ask it before building on it.
    return mlir::verify(meshOp);
  }

  /// The axes over which a parameter is stored sharded; none to replicate.
  /// Where all ranks of an axis that shards the stream compute with the same,
  /// they share it too: its gradient, which is partial over them, is
  /// scattered once.
  dist::AxisList storageAxes(const dist::Placement &compute) {
    if (mode == ShardMode::Replicate)
      return {};
    ArrayRef<dist::AxisRefAttr> data(dataAxes);
    if (mode == ShardMode::HybridShard || mode == ShardMode::Auto)
      data = data.take_back(1);
    dist::AxisList axes(data);
    llvm::copy_if(streamAxes, std::back_inserter(axes),
                  [&](auto axis) { return compute.dimOf(axis) < 0; });
    return axes;
  }

  void place(nn::ParameterOp parameter, const ParameterPlace &place) {
    dist::Placement placement = place.compute;
    if (!placement.dims.empty() && !place.replicate)
      placement.dims[0].storage = storageAxes(place.compute);
    if (place.frozen)
      parameter->setAttr(nn::kFrozenAttr, UnitAttr::get(&getContext()));
    parameter->setAttr(dist::kPlacementAttr,
                       placement.attribute(&getContext()));
    parameters[parameter.getSymNameAttr()] = parameter;
  }

  /// A program's arguments are batches, sharded along their first dimension.
  LogicalResult placeArguments(func::FuncOp program) {
    int64_t parts = meshOp.sizeOf(dataAxes);
    for (auto [i, type] : llvm::enumerate(program.getArgumentTypes())) {
      auto tensor = dyn_cast<RankedTensorType>(type);
      if (!tensor || tensor.getRank() == 0)
        continue;
      if (tensor.getDimSize(0) % parts != 0)
        return program.emitError("argument ")
               << i << " of @" << program.getSymName() << " is a batch of "
               << tensor.getDimSize(0) << ", which " << parts
               << " data-parallel ranks do not divide";
      dist::Placement placement(tensor.getRank());
      llvm::append_range(placement.dims[0].compute, dataAxes);
      program.setArgAttr(i, dist::kPlacementAttr,
                         placement.attribute(&getContext()));
    }
    return success();
  }

  LogicalResult shard(func::FuncOp program) {
    if (!program.getBody().hasOneBlock())
      return program.emitError("a program is one block without branches");
    SmallVector<Rewrite> rewrites;
    for (auto &[name, reads] : collectReads(program))
      rewrites.push_back(plan(program, name, reads));
    for (Rewrite &rewrite : rewrites)
      apply(rewrite);
    return success();
  }

  /// The reads of parameters (not of buffers), in program order.
  ReadsByParameter collectReads(func::FuncOp program) {
    ReadsByParameter reads;
    program.walk([&](nn::ReadOp read) {
      if (parameters.contains(read.getNameAttr().getAttr()))
        reads[read.getNameAttr().getAttr()].push_back(read);
    });
    return reads;
  }

  Rewrite plan(func::FuncOp program, StringAttr name,
               ArrayRef<nn::ReadOp> reads) {
    Rewrite rewrite;
    rewrite.parameter = parameters.lookup(name);
    rewrite.reads.assign(reads.begin(), reads.end());
    Type castType = commonCastType(reads);
    rewrite.foldsCasts = castType != nullptr;
    rewrite.type = rewrite.foldsCasts ? cast<RankedTensorType>(castType)
                                      : rewrite.parameter.getTensorType();
    rewrite.values = valuesToReplace(reads, rewrite.foldsCasts);
    rewrite.before = firstUserIn(program.getBody().front(), rewrite.values);
    return rewrite;
  }

  void apply(const Rewrite &rewrite) {
    if (rewrite.before) {
      Value full = redistribute(rewrite);
      for (Value value : rewrite.values)
        value.replaceAllUsesWith(full);
    }
    if (rewrite.foldsCasts)
      for (Value value : rewrite.values)
        value.getDefiningOp()->erase();
    for (nn::ReadOp read : rewrite.reads)
      read.erase();
  }

  /// The one read and the redistribute, right before the first use.
  Value redistribute(const Rewrite &rewrite) {
    OpBuilder builder(rewrite.before);
    nn::ParameterOp parameter = rewrite.parameter;
    nn::ReadOp first = rewrite.reads.front();
    nn::ModuleScope scope(builder, nn::moduleOf(first));
    auto read =
        nn::ReadOp::create(builder, first.getLoc(), parameter.getTensorType(),
                           first.getNameAttr());
    auto placement =
        parameter->getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
    return dist::RedistributeOp::create(
        builder, first.getLoc(), rewrite.type, read.getValue(),
        FlatSymbolRefAttr::get(meshOp.getSymNameAttr()), placement.getCompute(),
        TypeAttr::get(gradType(parameter)));
  }

  /// f64 models (numerical tests) reduce in f64 whatever is asked.
  Type gradType(nn::ParameterOp parameter) {
    Type element = parameter.getTensorType().getElementType();
    if (element.isF64())
      return element;
    Builder builder(&getContext());
    return reduceDtype == "bf16" ? Type(builder.getBF16Type())
                                 : Type(builder.getF32Type());
  }

  dist::MeshOp meshOp;
  dist::AxisList dataAxes;
  /// They shard the residual stream and what follows it up to the loss.
  dist::AxisList streamAxes;
  DenseMap<StringAttr, nn::ParameterOp> parameters;
};

} // namespace
