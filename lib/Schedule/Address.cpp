//===- Address.cpp - What a plan calls an op ------------------------------===//
#include "fsdp/Schedule/Address.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string fsdp::schedule::makeAddress(nn::Phase phase, StringRef path,
                                        StringRef role) {
  std::string address = nn::inPhase(phase, path);
  if (!path.empty())
    address += ' ';
  return address + role.str();
}

std::string fsdp::schedule::addressAgain(StringRef address) {
  return nn::inPhase(nn::Phase::Again, nn::withoutPhase(address));
}

StringRef fsdp::schedule::pathOf(StringRef address) {
  StringRef name = nn::withoutPhase(address);
  size_t space = name.rfind(' ');
  return space == StringRef::npos ? StringRef() : name.take_front(space);
}

StringRef fsdp::schedule::roleOf(StringRef address) {
  return address.drop_front(address.rfind(' ') + 1);
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

bool fsdp::schedule::hasAddress(Operation *op) {
  if (isa<dist::CollectiveOpInterface>(op))
    return true;
  return isa<nn::CostOpInterface>(op) && !nn::movesElements(op) &&
         !op->hasTrait<OpTrait::ConstantLike>() && !isa<nn::SeedOp>(op);
}

/// What a collective moves: its first parameter, or a value of its module.
static StringRef placeOf(Operation *op) {
  auto parameters = op->getAttrOfType<ArrayAttr>(dist::kParametersAttr);
  if (!parameters || parameters.empty())
    return nn::modulePathOf(op);
  return nn::shortParameterName(cast<StringAttr>(parameters[0]).getValue());
}

static StringRef roleOf(Operation *op) {
  StringRef mnemonic = op->getName().stripDialect();
  if (mnemonic.ends_with("_input_grad"))
    return "dx";
  return mnemonic.ends_with("_weight_grad") ? "dw" : mnemonic;
}

std::string Addresses::derive(Operation *op, bool behindSeed) {
  StringRef path = placeOf(op);
  std::string first =
      makeAddress(nn::phaseOf(path, behindSeed), path, ::roleOf(op));
  std::string address = first;
  // What has been taken once stays taken.
  for (unsigned &number = numbers[first]; ops.contains(address); ++number) {
    number = std::max(number, 2u);
    address = nn::callPath(first, number);
  }
  return address;
}

/// Calls `visit` with the ops of a program and of the regions in it, and
/// whether they stand behind nn.seed.
static void forEachOp(Block &program,
                      llvm::function_ref<void(Operation *, bool)> visit) {
  bool behindSeed = false;
  for (Operation &op : program) {
    behindSeed |= isa<nn::SeedOp>(op);
    visit(&op, behindSeed);
    for (Region &region : op.getRegions())
      for (Operation &inner : region.getOps())
        visit(&inner, behindSeed);
  }
}

Addresses::Addresses(Block &program) {
  auto written = [](Operation *op) {
    return op->getAttrOfType<StringAttr>(dist::kAddressAttr);
  };
  // What is written counts, wherever it stands: others are derived around it.
  forEachOp(program, [&](Operation *op, bool) {
    if (StringAttr address = written(op)) {
      if (!twice && ops.contains(address))
        twice = op;
      set(op, address);
    }
  });
  forEachOp(program, [&](Operation *op, bool behindSeed) {
    if (!written(op) && hasAddress(op))
      set(op, derive(op, behindSeed));
    if (names.contains(op))
      order.push_back(op);
  });
}

void Addresses::set(Operation *op, StringRef address) {
  auto entry = ops.try_emplace(address, op).first;
  names[op] = entry->first();
}

void Addresses::erase(Operation *op) {
  StringRef address = names.lookup(op);
  names.erase(op);
  if (ops.lookup(address) == op)
    ops.erase(address);
}
