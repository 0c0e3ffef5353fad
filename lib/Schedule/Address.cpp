//===- Address.cpp - What a plan calls an op ------------------------------===//
#include "fsdp/Schedule/Address.h"
#include "dialects/NN/ModulePath.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

dist::OriginAttr fsdp::schedule::parseAddress(MLIRContext *context,
                                              StringRef address) {
  llvm::Expected<dist::Origin> origin = dist::parseOrigin(address);
  if (origin)
    return dist::OriginAttr::get(context, *origin);
  llvm::consumeError(origin.takeError());
  return {};
}

bool fsdp::schedule::hasAddress(Operation *op) {
  if (isa<dist::CollectiveOpInterface>(op))
    return true;
  return isa<nn::CostOpInterface>(op) && !nn::movesElements(op) &&
         !op->hasTrait<OpTrait::ConstantLike>() && !isa<nn::SeedOp>(op);
}

/// What a collective moves: its first parameter, or a value of its module.
static StringRef placeOf(Operation *op) {
  StringRef parameter = dist::firstParameterOf(op);
  return parameter.empty() ? nn::modulePathOf(op)
                           : nn::shortParameterName(parameter);
}

/// What the op is called in its origin.
static StringRef nameOf(Operation *op) {
  StringRef mnemonic = op->getName().stripDialect();
  if (mnemonic.ends_with("_input_grad"))
    return "dx";
  return mnemonic.ends_with("_weight_grad") ? "dw" : mnemonic;
}

dist::OriginAttr Addresses::derive(Operation *op, bool afterSeed) {
  StringRef path = placeOf(op);
  dist::Origin origin{dist::phaseOf(path, afterSeed), path, nameOf(op)};
  auto first = dist::OriginAttr::get(op->getContext(), origin), found = first;
  // What has been taken once stays taken.
  for (unsigned &number = numbers[first]; ops.contains(found); ++number) {
    number = std::max(number, 2u);
    origin.index = number;
    found = dist::OriginAttr::get(op->getContext(), origin);
  }
  return found;
}

/// Calls `visit` with the ops of a program and of the regions in it, and
/// whether they follow nn.seed.
static void forEachOp(Block &program,
                      llvm::function_ref<void(Operation *, bool)> visit) {
  bool afterSeed = false;
  for (Operation &op : program) {
    afterSeed |= isa<nn::SeedOp>(op);
    visit(&op, afterSeed);
    for (Region &region : op.getRegions())
      for (Operation &inner : region.getOps())
        visit(&inner, afterSeed);
  }
}

Addresses::Addresses(Block &program) {
  // What is written counts, wherever it stands: others are derived around it.
  forEachOp(program, [&](Operation *op, bool) {
    if (dist::OriginAttr origin = dist::originOf(op)) {
      if (!twice && ops.contains(origin))
        twice = op;
      set(op, origin);
    }
  });
  forEachOp(program, [&](Operation *op, bool afterSeed) {
    if (!origins.contains(op) && hasAddress(op))
      set(op, derive(op, afterSeed));
    if (origins.contains(op))
      order.push_back(op);
  });
}

void Addresses::set(Operation *op, dist::OriginAttr origin) {
  ops.try_emplace(origin, op);
  origins[op] = origin;
}

void Addresses::erase(Operation *op) {
  dist::OriginAttr origin = origins.lookup(op);
  origins.erase(op);
  if (ops.lookup(origin) == op)
    ops.erase(origin);
}
