//===- RepeatSections.h - Where a repeated block is split -------*- C++ -*-===//
#ifndef FSDP_PASSES_EXEC_REPEATSECTIONS_H
#define FSDP_PASSES_EXEC_REPEATSECTIONS_H

#include "mlir/IR/Operation.h"
#include "passes/Exec/Repeats.h"

namespace fsdp {

/// Work with the events around it.
struct RepeatedWork {
  mlir::Operation *op;
  uint32_t shape;
  /// Waits, and records of streams whose work is further back.
  llvm::SmallVector<mlir::Operation *, 2> before;
  /// Records directly after.
  llvm::SmallVector<mlir::Operation *, 2> after;
};

/// A part of the block of a repeat, items [begin, end), and the copies of the
/// block in which the events inside it agree.
struct RepeatSection {
  size_t begin;
  size_t end;
  llvm::SmallVector<size_t> copies;
};

/// Events need not repeat as regularly as work: which wait is needed depends
/// on where the memory plan put a buffer. A gap between two items whose events
/// differ between copies can be left in the program, between two calls; or the
/// copies that differ can be left out of a function. The cheaper is chosen.
class RepeatSections {
public:
  RepeatSections(const std::vector<RepeatedWork> &items, const Repeat &repeat,
                 int64_t minSaved);

  /// The sections worth a function, in the cheapest split.
  std::vector<RepeatSection> best() const { return sectionsOf(cuts).first; }
  /// The operations of one copy of a section, events included.
  llvm::SmallVector<mlir::Operation *> operations(const RepeatSection &section,
                                                  size_t copy) const;

private:
  using Gap = std::pair<llvm::ArrayRef<mlir::Operation *>,
                        llvm::ArrayRef<mlir::Operation *>>;
  Gap gap(size_t index, size_t copy) const;
  const RepeatedWork &item(size_t index, size_t copy) const {
    return items[repeat.begin + copy * repeat.period + index];
  }
  /// Where less than this share of the copies agrees.
  std::vector<bool> cutsBelow(double agreement) const;
  /// The sections between the splits, and the statements of the program then.
  std::pair<std::vector<RepeatSection>, size_t>
  sectionsOf(const std::vector<bool> &cuts) const;

  const std::vector<RepeatedWork> &items;
  Repeat repeat;
  int64_t minSaved;
  /// Per gap (before item 0, between items, after the last) and copy: a
  /// number for the kinds and streams of its events.
  std::vector<std::vector<uint32_t>> events;
  std::vector<bool> cuts;
};

} // namespace fsdp

#endif // FSDP_PASSES_EXEC_REPEATSECTIONS_H
