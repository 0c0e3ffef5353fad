//===- Lifetimes.h - When the buffers of a program live ---------*- C++ -*-===//
//
// Positions count the work and the awaits of an exec.program in order of
// issue. A buffer lives from its first to its last use, through views; an
// operation in flight holds its buffers until its token is awaited, or that of
// a later operation of its stream where nobody awaits its own.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MEMORY_LIFETIMES_H
#define FSDP_MEMORY_LIFETIMES_H

#include "dialects/Exec/Exec.h"
#include "fsdp/Memory/Packing.h"

namespace fsdp {

/// What a buffer is for, as far as its uses tell.
enum class BufferKind { Activation, Gathered, Gradient, Workspace };
llvm::StringRef stringifyBufferKind(BufferKind kind);

struct BufferLifetime {
  exec::AllocOp alloc;
  /// [begin, end) in positions; bytes of the alloc.
  LiveRange live;
  BufferKind kind = BufferKind::Activation;
};

struct Lifetimes {
  /// Every exec.alloc that some work uses, in order of first use.
  std::vector<BufferLifetime> buffers;
  /// The operation at each position.
  std::vector<mlir::Operation *> positions;
  /// That of the program's module.
  int64_t alignment = exec::kAlignment;

  PackingProblem problem() const;
};

/// Ranges and buffers begin at multiples of so many bytes: what the target
/// wants for which the module was lowered, or exec::kAlignment if it says none.
int64_t alignmentOf(mlir::ModuleOp module);

Lifetimes computeLifetimes(exec::ProgramOp program);

/// What a person calls an operation: its label, else the module of the model
/// that it belongs to and what it does, else its mnemonic.
std::string labelOf(mlir::Operation *op);

} // namespace fsdp

#endif // FSDP_MEMORY_LIFETIMES_H
