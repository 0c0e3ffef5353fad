//===- State.cpp - Parameters, buffers and gradients of ranks -------------===//
#include "State.h"
#include "mlir/IR/SymbolTable.h"
#include <cmath>

using namespace mlir;

namespace fsdp::interpret {

State::Declaration State::declarationOf(StringRef name) const {
  Operation *op = module ? SymbolTable::lookupSymbolIn(module, name) : nullptr;
  Declaration declaration;
  if (auto parameter = dyn_cast_or_null<nn::ParameterOp>(op))
    declaration = {parameter.getTensorType(), parameter.getInit(), {}};
  else if (auto buffer = dyn_cast_or_null<nn::BufferOp>(op))
    declaration = {buffer.getTensorType(), buffer.getInit(), {}};
  else
    fail("the module declares no parameter or buffer '" + name.str() + "'");

  Attribute placement = op->getAttr(dist::kPlacementAttr);
  declaration.shard = dyn_cast_or_null<dist::ShardAttr>(placement);
  if (placement && !isa<dist::ShardAttr, dist::ReplicatedAttr>(placement))
    fail("'" + name.str() +
         "' has a placement that the interpreter does not know");
  if (declaration.shard &&
      declaration.shard.getDim() >= declaration.type.getRank())
    fail("'" + name.str() + "' is sharded along a dimension it has not");
  return declaration;
}

Tensor State::initial(StringRef name, const Declaration &declaration) const {
  auto given = whole.find(name.str());
  if (given == whole.end()) {
    if (isa<nn::NormalAttr, nn::UniformAttr>(declaration.init))
      fail("'" + name.str() +
           "' starts with random values; it must be among the inputs");
    return initialValue(declaration.type, declaration.init);
  }
  Tensor tensor = given->second;
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
  dist::ShardAttr shard = entry.declaration.shard;
  entry.local =
      shard ? grid.scatter(full, shard.getAxes(), shard.getDim()) : full;
  return entry.local;
}

void State::write(StringRef name, StringRef placedAs, Tensors local) {
  entries[name.str()] = {declarationOf(placedAs), std::move(local),
                         /*written=*/true};
}

//===----------------------------------------------------------------------===//
// Joining
//===----------------------------------------------------------------------===//

/// Equal, or both NaN.
static bool isSame(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

static void checkReplica(StringRef name, const Tensors &local, int64_t first,
                         int64_t rank) {
  const Tensor &a = local[first], &b = local[rank];
  for (int64_t i = 0; i < a.size(); ++i)
    if (!isSame(a.values[i], b.values[i]))
      fail("'" + name.str() + "' differs between rank " +
           std::to_string(first) + " (" + std::to_string(a.values[i]) +
           ") and rank " + std::to_string(rank) + " (" +
           std::to_string(b.values[i]) + "), element " + std::to_string(i) +
           " of what both hold");
}

Tensor State::joined(StringRef name, const Entry &entry) const {
  dist::ShardAttr shard = entry.declaration.shard;
  Axes axes = shard ? Axes(shard.getAxes()) : Axes();
  std::vector<const Tensor *> pieces;
  std::vector<int64_t> owners = grid.group(0, axes);
  for (int64_t rank = 0; rank < grid.ranks(); ++rank)
    checkReplica(name, entry.local, owners[grid.position(rank, axes)], rank);
  for (int64_t owner : owners)
    pieces.push_back(&entry.local[owner]);
  if (!shard)
    return *pieces[0];
  int64_t dim = shard.getDim();
  int64_t parts = owners.size();
  Tensor whole =
      prefix(join(pieces, dim), dim, entry.declaration.type.getDimSize(dim));
  for (auto [position, piece] : llvm::enumerate(pieces)) {
    Tensor expected = cut(whole, dim, parts, position);
    for (int64_t i = 0; i < expected.size(); ++i)
      if (!isSame(piece->values[i], expected.values[i]))
        fail("'" + name.str() + "' has padding that is not zero on rank " +
             std::to_string(owners[position]));
  }
  return whole;
}

TensorMap State::written() const {
  TensorMap tensors;
  for (const auto &[name, entry] : entries)
    if (entry.written)
      tensors[name] = joined(name, entry);
  return tensors;
}

} // namespace fsdp::interpret
