//===- Address.h - What a plan calls an op ----------------------*- C++ -*-===//
//
// An address is a phase of the program, the path of a module or parameter, and
// a role: "fwd layers.3.attention.wq linear", "bwd layers.3.attention.wq dw",
// "fwd layers.3.attention.wq all_gather". A role is the mnemonic of the op, but
// "dx" and "dw" for what reverse rules make of an input and a weight; the
// second op of a name is "rotary#2". What is computed a second time has the
// phase "again" instead of "fwd", and a bucket the path that its plan calls it.
//
// Ops that a plan can name have one: collectives, and ops that compute. Moves
// of elements, casts and constants have none. fsdp-address writes them down,
// because later passes change the order that numbers ops of one name.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_ADDRESS_H
#define FSDP_SCHEDULE_ADDRESS_H

#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace fsdp::schedule {

/// "fwd layers.3.attention.wq linear".
std::string makeAddress(nn::Phase phase, llvm::StringRef path,
                        llvm::StringRef role);

/// The same thing computed again in the backward pass.
std::string addressAgain(llvm::StringRef address);

/// The path in an address; empty for the root.
llvm::StringRef pathOf(llvm::StringRef address);
llvm::StringRef roleOf(llvm::StringRef address);

/// Whether a plan can name ops like this one.
bool hasAddress(mlir::Operation *op);

/// The addresses of a program's ops, also of those inside fsdp.async and
/// nn.fusion: as written on them, else made here. No two are equal.
class Addresses {
public:
  explicit Addresses(mlir::Block &program);

  /// Empty if `op` has none.
  llvm::StringRef of(mlir::Operation *op) const { return names.lookup(op); }
  /// Null if no op of the program has it.
  mlir::Operation *find(llvm::StringRef address) const {
    return ops.lookup(address);
  }
  /// In program order.
  llvm::ArrayRef<mlir::Operation *> all() const { return order; }

  /// An op on which the address of another one is written; null if there is
  /// none.
  mlir::Operation *duplicate() const { return twice; }

  /// An op that has come to be, or has another address now.
  void set(mlir::Operation *op, llvm::StringRef address);
  void erase(mlir::Operation *op);

private:
  std::string derive(mlir::Operation *op, bool behindSeed);

  llvm::StringMap<mlir::Operation *> ops;
  llvm::StringMap<unsigned> numbers; // the next one to try, of derived names
  llvm::DenseMap<mlir::Operation *, llvm::StringRef> names; // keys of `ops`
  llvm::SmallVector<mlir::Operation *> order;
  mlir::Operation *twice = nullptr;
};

} // namespace fsdp::schedule

#endif // FSDP_SCHEDULE_ADDRESS_H
