//===- Address.h - What a plan calls an op ----------------------*- C++ -*-===//
//
// An address is the words of an op's origin (dialects/Fsdp/Origin.h):
// "fwd layers.3.attention.wq linear", "bwd layers.3.attention.wq dw",
// "fwd layers.3.attention.wq all_gather". What is computed a second time has
// the phase "again" instead of "fwd", and a bucket the path that its plan calls
// it.
//
// Ops that a plan can name have one: collectives, and ops that compute. Moves
// of elements, casts and constants have none. fsdp-address writes them down,
// because later passes change the order that numbers ops of one name.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_ADDRESS_H
#define FSDP_SCHEDULE_ADDRESS_H

#include "dialects/Fsdp/Fsdp.h"
#include "llvm/ADT/DenseMap.h"

namespace fsdp::schedule {

/// Whether a plan can name ops like this one.
bool hasAddress(mlir::Operation *op);

/// The origin that an address is the words of; null if it is none.
dist::OriginAttr parseAddress(mlir::MLIRContext *context,
                              llvm::StringRef address);

/// The origins of a program's ops, also of those inside fsdp.async and
/// nn.fusion: as written on them, else made here. No two are equal.
class Addresses {
public:
  explicit Addresses(mlir::Block &program);

  /// Null if `op` has none.
  dist::OriginAttr of(mlir::Operation *op) const { return origins.lookup(op); }
  /// Null if no op of the program has it.
  mlir::Operation *find(dist::OriginAttr origin) const {
    return ops.lookup(origin);
  }
  /// In program order.
  llvm::ArrayRef<mlir::Operation *> all() const { return order; }

  /// An op on which the origin of another one is written; null if there is
  /// none.
  mlir::Operation *duplicate() const { return twice; }

  /// An op that has come to be, or has another origin now.
  void set(mlir::Operation *op, dist::OriginAttr origin);
  void erase(mlir::Operation *op);

private:
  dist::OriginAttr derive(mlir::Operation *op, bool afterSeed);

  llvm::DenseMap<dist::OriginAttr, mlir::Operation *> ops;
  /// The next number to try, of derived origins.
  llvm::DenseMap<dist::OriginAttr, unsigned> numbers;
  llvm::DenseMap<mlir::Operation *, dist::OriginAttr> origins;
  llvm::SmallVector<mlir::Operation *> order;
  mlir::Operation *twice = nullptr;
};

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_ADDRESS_H
