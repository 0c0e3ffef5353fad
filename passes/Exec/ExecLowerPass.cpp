//===- ExecLowerPass.cpp - nn and fsdp to exec ----------------------------===//
#include "dialects/Fsdp/Placement.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/RangeNames.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "passes/Exec/ExecLower.h"
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

ModuleState::ModuleState(ModuleOp module, const TargetInfo &target,
                         const exec::AttentionOptions &attention,
                         bool fastReductions)
    : target(target), attention(attention), fastReductions(fastReductions),
      kernels(module), recorded(module.getContext()), module(module),
      adjacent(module, target.facts.alignment), builder(module.getContext()) {
  // Before all, where a look-up meets it first: a deep model has as many
  // ranges as collectives.
  SmallVector<dist::MeshOp> meshes(module.getOps<dist::MeshOp>());
  for (dist::MeshOp found : llvm::reverse(meshes)) {
    found->moveBefore(module.getBody(), module.getBody()->begin());
    mesh = found;
    last = last ? last : found.getOperation();
  }
  findCleared();
}

void ModuleState::findCleared() {
  for (const auto &[step, actions] : exec::stepsOf(module)) {
    llvm::StringSet<> names;
    for (const exec::StepAction &action : actions)
      if (auto program = module.lookupSymbol(action.program.getAttr()))
        program->walk([&](nn::ClearOp op) {
          for (auto name : op.getNames().getAsRange<FlatSymbolRefAttr>())
            names.insert(name.getValue());
        });
    for (const exec::StepAction &action : actions)
      for (StringRef name : names.keys())
        cleared[action.program.getValue()].insert(name);
  }
}

void ModuleState::notePlainAttention(Operation *attention, StringRef why) {
  if (!plainAttention) {
    plainAttention = attention->getLoc();
    whyPlain = why;
  }
  if (StringAttr name = nn::moduleOf(attention))
    plainModules.insert(name);
}

void ModuleState::warnOfPlainAttention() const {
  if (!plainAttention)
    return;
  InFlightDiagnostic warning = mlir::emitWarning(*plainAttention);
  warning << whyPlain << "; the runtime's reference attention, which is slow, "
          << "computes it";
  if (plainModules.empty())
    return;
  warning << " in " << plainModules.front().getValue();
  if (size_t others = plainModules.size() - 1)
    warning << " and " << others << (others == 1 ? " other" : " others");
}

exec::RangeOp ModuleState::create(Location loc, StringRef name, MemRefType type,
                                  exec::Role role) {
  // Ranges follow the mesh, in the order in which they are declared.
  if (last)
    builder.setInsertionPointAfter(last);
  else
    builder.setInsertionPointToStart(module.getBody());
  auto range = exec::RangeOp::create(
      builder, loc, builder.getStringAttr(name), TypeAttr::get(type),
      exec::RoleAttr::get(builder.getContext(), role), /*offset=*/IntegerAttr(),
      /*full=*/TypeAttr(), /*init=*/Attribute(),
      /*placement=*/dist::PlacementAttr());
  ranges[name] = range;
  last = range;
  return range;
}

template <typename OpT> void ModuleState::declare(OpT op, exec::Role role) {
  auto placement =
      op->template getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
  RankedTensorType full = op.getTensorType();
  RankedTensorType local =
      placement ? dist::localType(full, dist::Placement(placement), mesh)
                : full;
  // Parts of a sum are each rank's own.
  if (placement && !placement.getPartial().empty()) {
    placement = {};
    full = local;
  }
  exec::RangeOp range =
      create(op.getLoc(), op.getSymName(), memRefOf(local), role);
  range.setFullAttr(TypeAttr::get(full));
  range.setInitAttr(op.getInitAttr());
  if (placement)
    range.setPlacementAttr(placement);
}

static exec::Role roleOfBuffer(Operation *buffer) {
  if (buffer->hasAttr(nn::kStateOfAttr))
    return exec::Role::State;
  return buffer->hasAttr(nn::kComputeCopyOfAttr) ? exec::Role::ComputeCopy
                                                 : exec::Role::Buffer;
}

void ModuleState::declarePersistent() {
  SmallVector<Operation *> declarations;
  for (Operation &op : *module.getBody())
    if (isa<nn::ParameterOp, nn::BufferOp>(op))
      declarations.push_back(&op);
  for (Operation *op : declarations) {
    if (auto parameter = dyn_cast<nn::ParameterOp>(op)) {
      declare(parameter, exec::Role::Parameter);
    } else {
      declare(cast<nn::BufferOp>(op), roleOfBuffer(op));
    }
    op->erase();
  }
}

FailureOr<exec::RangeOp>
ModuleState::declareShared(Location loc, StringRef name, MemRefType type,
                           exec::Role role, TypeAttr full,
                           dist::PlacementAttr placement) {
  exec::RangeOp range = lookup(name);
  if (!range) {
    range = create(loc, name, type, role);
    if (placement) {
      range.setFullAttr(full);
      range.setPlacementAttr(placement);
    }
    return range;
  }
  auto describe = [](Diagnostic &diagnostic, exec::Role role, Type type,
                     dist::PlacementAttr placement) {
    diagnostic << stringifyRole(role) << " of type " << type;
    if (placement)
      diagnostic << " at " << placement;
  };
  // What one program gives and another takes is filled before it is read, as
  // an input is.
  bool isHandedOn =
      (role == exec::Role::Input && range.getRole() == exec::Role::Output) ||
      (role == exec::Role::Output && range.getRole() == exec::Role::Input);
  if (isHandedOn && range.getType() == type &&
      range.getPlacementAttr() == placement) {
    range.setRole(exec::Role::Input);
    return range;
  }
  if (range.getType() != type || range.getRole() != role ||
      range.getPlacementAttr() != placement) {
    auto diagnostic = emitError(loc) << "range '" << name << "' is ";
    describe(*diagnostic.getUnderlyingDiagnostic(), role, type, placement);
    diagnostic << " here";
    Diagnostic &note = diagnostic.attachNote(range.getLoc()) << "and ";
    describe(note, range.getRole(), range.getType(), range.getPlacementAttr());
    note << " there";
    return diagnostic;
  }
  return range;
}

exec::RangeOp ModuleState::gradientOf(StringRef parameter) {
  std::string name = (parameter + range_name::kGradientSuffix).str();
  if (exec::RangeOp known = lookup(name))
    return known;
  exec::RangeOp range = lookup(parameter);
  if (!range)
    return nullptr;
  exec::RangeOp gradient =
      create(range.getLoc(), name, range.getMemRefType(), exec::Role::Gradient);
  gradient.setFullAttr(range.getFullAttr());
  if (dist::PlacementAttr placement = range.getPlacementAttr())
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
        op == module || isa<dist::MeshOp>(op) ||
        isa<exec::ExecDialect, arith::ArithDialect, math::MathDialect>(
            op->getDialect());
    if (isBelow && !hasTensor)
      return WalkResult::advance();
    op->emitOpError("is left above exec");
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

/// States how often each step runs each program.
static void stateSteps(ModuleOp module) {
  Builder builder(module.getContext());
  NamedAttrList steps;
  for (const auto &[name, actions] : exec::stepsOf(module)) {
    llvm::MapVector<StringAttr, int64_t> runs;
    for (const exec::StepAction &action : actions)
      runs[action.program.getAttr()] += action.times;
    NamedAttrList programs;
    for (auto [program, times] : runs)
      programs.set(program, builder.getI64IntegerAttr(times));
    steps.set(name, programs.getDictionary(module.getContext()));
  }
  if (!steps.empty() || module->hasAttr(nn::kStepsAttr))
    module->setAttr(exec::kStepsAttr, steps.getDictionary(module.getContext()));
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

struct ExecLowerPass : fsdp::impl::ExecLowerBase<ExecLowerPass> {
  using Base::Base;

  void runOnOperation() override {
    if (threads < 1 || threads > exec::kMaxThreads) {
      getOperation().emitError("exec-lower takes 1 to ")
          << exec::kMaxThreads << " threads, not " << threads.getValue();
      return signalPassFailure();
    }
    std::string problem;
    std::unique_ptr<TargetInfo> info = makeTarget(target, threads, problem);
    if (!problem.empty()) {
      getOperation().emitError(problem);
      return signalPassFailure();
    }
    if (!info) {
      getOperation().emitError("exec-lower knows no target '")
          << target << "'; there are " << rt::targetNames();
      return signalPassFailure();
    }
    if (failed(lowerModule(*info)) || failed(verifyLowered(getOperation())))
      signalPassFailure();
  }

private:
  LogicalResult lowerModule(const TargetInfo &info) {
    ModuleOp module = getOperation();
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    ModuleState state(module, info, {referenceAttention, fastAttention},
                      fastReductions);
    state.declarePersistent();
    Builder builder(module.getContext());
    module->setAttr(exec::kTargetAttr,
                    builder.getStringAttr(target.getValue()));
    module->setAttr(exec::kThreadsAttr, builder.getI64IntegerAttr(threads));
    // Digests of programs that are no more.
    module->removeAttr(dist::kSemanticDigestAttr);
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
    stateSteps(module);
    state.warnOfPlainAttention();
    return success();
  }
};

} // namespace
