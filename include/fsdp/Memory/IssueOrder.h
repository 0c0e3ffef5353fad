//===- IssueOrder.h - Bytes and order of a planned program ------*- C++ -*-===//
//
// After exec-plan-memory every buffer is a span of bytes of the arena. A
// program that exec-outline has folded is read here as what it does: the ops
// in order of issue, calls followed, each with its spans and event.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MEMORY_ISSUEORDER_H
#define FSDP_MEMORY_ISSUEORDER_H

#include "dialects/Exec/Exec.h"

namespace fsdp {

/// Bytes [begin, end) of the arena.
struct ByteSpan {
  int64_t begin = 0;
  int64_t end = 0;
  bool operator==(const ByteSpan &other) const {
    return begin == other.begin && end == other.end;
  }
  bool overlaps(const ByteSpan &other) const {
    return begin < other.end && other.begin < end;
  }
};

/// The offsets of a module's ranges and buffers.
class ArenaOffsets {
public:
  explicit ArenaOffsets(mlir::ModuleOp module);

  /// The bytes of an exec.get or exec.alloc, or of views of it; none if it has
  /// no offset yet.
  std::optional<ByteSpan> spanOf(mlir::Value buffer) const;

  /// The first range that an exec.get names.
  exec::RangeOp rangeOf(exec::GetOp get) const {
    return rangeOf(get.getRangeAttr().getAttr());
  }
  /// The ranges that have bytes [`bytes.begin`, `bytes.end`) of an exec.get, in
  /// order, with these bytes of each from its start. At least one.
  llvm::SmallVector<std::pair<exec::RangeOp, ByteSpan>, 1>
  partsOf(exec::GetOp get, ByteSpan bytes) const;
  /// The range of this name, or null.
  exec::RangeOp rangeOf(mlir::StringAttr name) const {
    return ranges.lookup(name);
  }

private:
  llvm::DenseMap<mlir::Attribute, exec::RangeOp> ranges;
};

/// One operand of work.
struct IssuedAccess {
  ByteSpan bytes;
  /// Tells the buffers of a program apart, whatever bytes they have: equal for
  /// all views of one range or buffer.
  int64_t buffer = 0;
  /// The persistent range; null for a buffer.
  exec::RangeOp range;
  /// Its operand's number among the inputs, or among outputs and workspaces.
  unsigned operand = 0;
  /// Written, but with nothing that may be read afterwards.
  bool isWorkspace = false;
};

/// Work, a record or a wait, at its place in the order of issue.
struct IssuedOp {
  mlir::Operation *op = nullptr;
  /// The call that it belongs to, if any.
  exec::CallOp call;
  /// One of each operand, in order. What reads several ranges as one has here
  /// the first, and the others after all.
  llvm::SmallVector<IssuedAccess, 4> reads;
  llvm::SmallVector<IssuedAccess, 2> writes;
  /// Of a record or wait: the number in the program.
  int64_t event = -1;
};

/// The order of issue of a program without tokens. Emits an error and fails if
/// a buffer has no offset, an event does not exist or a token is left.
///
/// Calls are followed: an argument is the buffer that the call gives, a
/// buffer of a function is another buffer in every call, and a range is the
/// same one wherever it is named.
mlir::FailureOr<std::vector<IssuedOp>> issueOrder(exec::ProgramOp program,
                                                  const ArenaOffsets &offsets);

} // namespace fsdp

#endif // FSDP_MEMORY_ISSUEORDER_H
