//===- ExecLowerNames.cpp - What people call a buffer and what it holds ---===//
//
// A buffer is called after the module that fills it and the op that does:
// "layers.1.feed_forward.w2: linear". One that holds a parameter or a gradient
// is called after the parameter: "layers.1.feed_forward.w2.weight: all_gather".
//
//===----------------------------------------------------------------------===//
#include "dialects/Fsdp/PlacementRules.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Support/RangeNames.h"
#include "passes/Exec/ExecLower.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::lower;

/// Notes what a collective reads and gives: by an attribute, it says which
/// parameters it moves.
void ProgramLowering::nameMoved(Operation *collective, ValueRange results) {
  auto names = collective->getAttrOfType<ArrayAttr>(dist::kParametersAttr);
  if (!names)
    return;
  for (auto [name, input, result] :
       llvm::zip(names, collective->getOperands(), results)) {
    StringRef parameter = cast<FlatSymbolRefAttr>(name).getValue();
    parameters.try_emplace(input, parameter);
    parameters.try_emplace(result, parameter);
  }
}

void ProgramLowering::findParameters() {
  SymbolTableCollection symbols;
  for (Operation &op : func.front()) {
    if (auto read = dyn_cast<nn::ReadOp>(op)) {
      exec::RangeOp range = state.lookup(read.getName());
      if (!range)
        continue;
      StringRef name = read.getName();
      if (range.getRole() == exec::Role::ComputeCopy)
        name.consume_back(range_name::kComputeCopySuffix);
      else if (range.getRole() != exec::Role::Parameter)
        continue;
      parameters.try_emplace(read.getValue(), name);
    } else if (auto gradient = dyn_cast<nn::GradientOp>(op)) {
      parameters.try_emplace(gradient.getValue(), gradient.getName());
    } else if (auto sum = dyn_cast<nn::AccumulateOp>(op)) {
      for (const dist::GradientUse &use : dist::gradientsOf(sum, symbols))
        if (use.parameter)
          parameters.try_emplace(sum.getValue(), use.parameter.getValue());
    } else if (auto update = dyn_cast<nn::AdamWOp>(op)) {
      for (auto [name, gradient] :
           llvm::zip(update.getParameters(), update.getGradients()))
        parameters.try_emplace(gradient,
                               cast<FlatSymbolRefAttr>(name).getValue());
    } else if (isa<dist::CollectiveOpInterface>(op)) {
      nameMoved(&op, op.getResults());
    } else if (auto async = dyn_cast<dist::AsyncOp>(op)) {
      for (Operation *user : async.getFuture().getUsers())
        if (auto await = dyn_cast<dist::AwaitOp>(user))
          nameMoved(async.getInnerOp(), await.getResults());
    }
  }
  // A cast holds the same in another type: of a value after it, of a gradient
  // before it.
  for (auto cast : func.getOps<nn::CastOp>())
    if (StringRef name = parameters.lookup(cast.getInput()); !name.empty())
      parameters.try_emplace(cast.getResult(), name);
  for (Operation &op : llvm::reverse(func.front()))
    if (auto cast = dyn_cast<nn::CastOp>(op))
      if (StringRef name = parameters.lookup(cast.getResult()); !name.empty())
        parameters.try_emplace(cast.getInput(), name);
}

std::string ProgramLowering::labelOf(Value tensor, Operation *op) {
  std::string kind = op->getName().stripDialect().str();
  StringRef name = parameters.lookup(tensor);
  // A collective of no parameter is called after what it serves.
  auto collective = dyn_cast<dist::CollectiveOpInterface>(op);
  if (collective && collective.getServesAttr() && name.empty())
    name = collective.getServesAttr().getText();
  if (name.empty())
    name = nn::modulePathOf(op);
  // Text may say nothing of modules; the one weight that an op reads does.
  SmallVector<StringRef> weights;
  for (Value operand : op->getOperands())
    if (StringRef weight = parameters.lookup(operand); !weight.empty())
      weights.push_back(weight);
  if (name.empty() && weights.size() == 1) {
    name = nn::moduleOfParameter(weights.front());
    // One of the root is called by its own name.
    name = name.empty() ? weights.front() : name;
  }
  return name.empty() ? kind : nn::labelOf(name, kind);
}

/// The origin of what is computed in a kernel: of a cast, of what it casts.
static dist::OriginAttr originInKernel(Operation *definer) {
  for (; definer; definer = definer->getOperand(0).getDefiningOp()) {
    dist::OriginAttr origin = dist::originOf(definer);
    if (origin || !isa<nn::CastOp>(definer))
      return origin;
  }
  return {};
}

void ProgramLowering::setProduced(Operation *work, ValueRange tensors,
                                  ArrayRef<Operation *> definers,
                                  ArrayRef<exec::KernelOp> ofBlocks) {
  SmallVector<StringAttr> names;
  for (auto [tensor, definer] : llvm::zip_equal(tensors, definers)) {
    dist::OriginAttr origin = originInKernel(definer);
    StringRef parameter = parameters.lookup(tensor);
    StringAttr name = origin ? b.getStringAttr(origin.getText()) : StringAttr();
    // One of several tensors is told by its parameter, and so is a cast alone.
    bool isCast = !origin && isa_and_nonnull<nn::CastOp>(definer);
    if (!parameter.empty() && (isCast || (origin && tensors.size() > 1)))
      name = b.getStringAttr((isCast ? "cast" : origin.getText()) + " of " +
                             parameter);
    names.push_back(name);
  }
  for (auto [name, kernel] : llvm::zip(names, ofBlocks))
    if (name && kernel)
      name = b.getStringAttr(name.getValue() + " by blocks");
  exec::setProduced(work, names);
}
