//===- ExecLower.cpp - nn and fsdp to exec --------------------------------===//
#include "passes/Exec/ExecLower.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Passes.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

namespace fsdp {
#define GEN_PASS_DEF_EXECLOWER
#include "passes/Passes.h.inc"
} // namespace fsdp

//===----------------------------------------------------------------------===//
// ModuleState
//===----------------------------------------------------------------------===//

ModuleState::ModuleState(ModuleOp module, const TargetInfo &target)
    : target(target), kernels(module), module(module),
      builder(module.getContext()) {
  auto meshes = module.getOps<dist::MeshOp>();
  if (!meshes.empty())
    mesh = *meshes.begin();
}

exec::RangeOp ModuleState::create(Location loc, StringRef name, MemRefType type,
                                  exec::Role role) {
  // Ranges stand in front, in the order in which they are declared.
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(module.getBody());
  auto range = exec::RangeOp::create(
      builder, loc, builder.getStringAttr(name), TypeAttr::get(type),
      exec::RoleAttr::get(builder.getContext(), role), /*offset=*/IntegerAttr(),
      /*full=*/TypeAttr(), /*init=*/Attribute(), /*placement=*/Attribute());
  ranges[name] = range;
  last = range;
  return range;
}

template <typename OpT>
LogicalResult ModuleState::declare(OpT op, exec::Role role) {
  Attribute placement = op->getAttr(dist::kPlacementAttr);
  if (placement && !isa<dist::ReplicatedAttr>(placement) && !mesh)
    return op.emitError("@")
           << op.getSymName() << " is sharded, but the module has no fsdp.mesh";
  RankedTensorType full = op.getTensorType();
  RankedTensorType local =
      placement && mesh ? dist::localType(full, placement, mesh) : full;
  if (!local)
    return op.emitError("@")
           << op.getSymName() << " cannot be laid out as " << placement;
  exec::RangeOp range =
      create(op.getLoc(), op.getSymName(), memRefOf(local), role);
  range.setFullAttr(TypeAttr::get(full));
  range.setInitAttr(op.getInitAttr());
  if (placement)
    range.setPlacementAttr(placement);
  return success();
}

LogicalResult ModuleState::declarePersistent() {
  SmallVector<Operation *> declarations;
  for (Operation &op : *module.getBody())
    if (isa<nn::ParameterOp, nn::BufferOp>(op))
      declarations.push_back(&op);
  for (Operation *op : declarations) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      if (failed(declare(parameter, exec::Role::Parameter)))
        return failure();
    } else {
      exec::Role role = op->hasAttr(nn::kStateOfAttr) ? exec::Role::State
                                                      : exec::Role::Buffer;
      if (failed(declare(cast<nn::BufferOp>(op), role)))
        return failure();
    }
    op->erase();
  }
  return success();
}

FailureOr<exec::RangeOp> ModuleState::declareShared(Location loc,
                                                    StringRef name,
                                                    MemRefType type,
                                                    exec::Role role) {
  exec::RangeOp range = lookup(name);
  if (!range)
    return create(loc, name, type, role);
  if (range.getType() != type || range.getRole() != role) {
    auto diagnostic = emitError(loc)
                      << "range '" << name << "' is " << stringifyRole(role)
                      << " of type " << type << " here";
    diagnostic.attachNote(range.getLoc())
        << "and " << stringifyRole(range.getRole()) << " of type "
        << range.getType() << " there";
    return diagnostic;
  }
  return range;
}

exec::RangeOp ModuleState::gradientOf(StringRef parameter) {
  std::string name = (parameter + ".grad").str();
  if (exec::RangeOp known = lookup(name))
    return known;
  exec::RangeOp range = lookup(parameter);
  if (!range)
    return nullptr;
  exec::RangeOp gradient =
      create(range.getLoc(), name, range.getMemRefType(), exec::Role::Gradient);
  gradient.setFullAttr(range.getFullAttr());
  if (Attribute placement = range.getPlacementAttr())
    gradient.setPlacementAttr(placement);
  return gradient;
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Nothing of the levels above may be left: no tensor, no op of nn, func or
/// fsdp but the mesh.
static LogicalResult verifyLowered(ModuleOp module) {
  WalkResult result = module.walk([&](Operation *op) {
    bool hasTensor =
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<TensorType>);
    bool isBelow =
        isa<ModuleOp, dist::MeshOp>(op) ||
        isa<exec::ExecDialect, arith::ArithDialect, math::MathDialect>(
            op->getDialect());
    if (isBelow && !hasTensor)
      return WalkResult::advance();
    op->emitOpError("is left above exec");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// Kernels get their names after the ranges of arguments and results.
static void reserveNames(func::FuncOp function, KernelCache &kernels) {
  auto reserve = [&](ArrayAttr attributes) {
    if (!attributes)
      return;
    for (auto entry : attributes.getAsRange<DictionaryAttr>())
      if (auto name = entry.getAs<StringAttr>(nn::kNameAttr))
        kernels.reserve(name);
  };
  reserve(function.getArgAttrsAttr());
  reserve(function.getResAttrsAttr());
}

namespace {

struct ExecLower : fsdp::impl::ExecLowerBase<ExecLower> {
  using Base::Base;

  void runOnOperation() override {
    std::unique_ptr<TargetInfo> info = makeTarget(target, threads);
    if (!info) {
      getOperation().emitError("exec-lower knows no target '") << target << "'";
      return signalPassFailure();
    }
    if (failed(lowerModule(*info)) || failed(verifyLowered(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult lowerModule(const TargetInfo &info) {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    ModuleState state(module, info);
    if (failed(state.declarePersistent()))
      return failure();
    for (func::FuncOp function : functions)
      reserveNames(function, state.kernels);
    // Owned until they are in the module: a later function may fail.
    SmallVector<OwningOpRef<exec::ProgramOp>> programs;
    for (func::FuncOp function : functions) {
      if (!function.isPublic())
        return function.emitError("@")
               << function.getSymName()
               << " is not public: exec-lower takes programs, inline other "
                  "functions first";
      FailureOr<exec::ProgramOp> program =
          ProgramLowering(state, function).run();
      if (failed(program))
        return failure();
      programs.emplace_back(*program);
      function.erase();
    }
    for (OwningOpRef<exec::ProgramOp> &owner : programs) {
      exec::ProgramOp program = owner.release();
      module.getBody()->push_back(program);
      if (exec::RangeOp range = state.lookup(program.getSymName()))
        return range.emitError("range @")
               << range.getSymName() << " has the name of a program";
    }
    return success();
  }
};

} // namespace
