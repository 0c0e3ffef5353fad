//===- State.cpp - Parameters, buffers and gradients of ranks -------------===//
#include "State.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace fsdp::interpret {

State::Declaration State::declarationOf(StringRef name) const {
  Operation *op = module ? SymbolTable::lookupSymbolIn(module, name) : nullptr;
  Declaration declaration;
  if (auto parameter = dyn_cast_or_null<nn::ParameterOp>(op))
    declaration = {parameter.getTensorType(), parameter.getInit(), {}, {}};
  else if (auto buffer = dyn_cast_or_null<nn::BufferOp>(op))
    declaration = {buffer.getTensorType(), buffer.getInit(), {}, {}};
  else
    fail("the module declares no parameter or buffer '" + name.str() + "'");

  if (auto original =
          op->getAttrOfType<FlatSymbolRefAttr>(nn::kComputeCopyOfAttr))
    declaration.copyOf = original.getValue();
  declaration.placement = dist::Placement(declaration.type.getRank());
  auto placement = op->getAttrOfType<dist::PlacementAttr>(dist::kPlacementAttr);
  if (placement && isLocal)
    declaration.placement = dist::Placement(placement);
  return declaration;
}

DenseTensor State::initial(StringRef name,
                           const Declaration &declaration) const {
  auto given = whole.find(name.str());
  // What the runtime copies before the first program.
  if (given == whole.end() && !declaration.copyOf.empty()) {
    DenseTensor copy =
        initial(declaration.copyOf, declarationOf(declaration.copyOf));
    if (rounding == Rounding::Declared)
      roundTo(declaration.type.getElementType(), copy);
    return copy;
  }
  if (given == whole.end()) {
    if (isa<nn::NormalAttr, nn::UniformAttr>(declaration.init))
      fail("'" + name.str() +
           "' starts with random values; it must be among the inputs");
    return initialValue(declaration.type, declaration.init);
  }
  DenseTensor tensor = given->second;
  if (ArrayRef<int64_t>(tensor.shape) != declaration.type.getShape())
    fail("input '" + name.str() + "' is " + textOf(tensor.shape) +
         ", but its declaration is " + textOf(declaration.type.getShape()));
  if (rounding == Rounding::Declared)
    roundTo(declaration.type.getElementType(), tensor);
  return tensor;
}

const Tensors &State::read(StringRef name) {
  Entry &entry = entries[name.str()];
  if (!entry.local.empty())
    return entry.local;
  entry.declaration = declarationOf(name);
  Tensors full(grid.ranks(), initial(name, entry.declaration));
  entry.local = grid.parts(std::move(full), entry.declaration.placement);
  return entry.local;
}

void State::write(StringRef name, StringRef placedAs, Tensors local) {
  entries[name.str()] = {declarationOf(placedAs), std::move(local),
                         /*written=*/true};
}

TensorMap State::written() const {
  TensorMap tensors;
  for (const auto &[name, entry] : entries)
    if (entry.written)
      tensors[name] =
          grid.joined(name, entry.local, entry.declaration.placement,
                      entry.declaration.type.getShape());
  return tensors;
}

} // namespace fsdp::interpret
