//===- Report.h - What the arena holds at its peak --------------*- C++ -*-===//
//
// exec-plan-memory leaves what it found on each program as the attribute
// `exec.memory`, so that the report can be printed at any later stage, also
// after the program has been outlined.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MEMORY_REPORT_H
#define FSDP_MEMORY_REPORT_H

#include "fsdp/Memory/Lifetimes.h"
#include "llvm/Support/Error.h"

namespace fsdp {

/// A buffer that lives at the peak, or those of one size and kind that
/// differ in the number of their block alone.
struct LiveBuffer {
  /// "layers.3.attention: attention"; of several "layers.*.feed_forward: silu".
  std::string label;
  std::string kind;
  /// Of all together.
  int64_t bytes = 0;
  int64_t count = 1;

  /// The label, of several with their count and the size of each: "layers.*:
  /// silu, 32 × 224.0 MiB".
  std::string text() const;
};

struct ProgramMemory {
  std::string name;
  /// Bytes of the arena, persistent ranges included.
  int64_t peak = 0;
  /// What no plan can beat: persistent bytes + most bytes alive at once.
  int64_t lowerBound = 0;
  /// The operation at which most bytes live.
  std::string at;
  /// Bytes alive there, by kind of buffer.
  std::vector<std::pair<std::string, int64_t>> kinds;
  /// At most sixteen, largest first.
  std::vector<LiveBuffer> liveBuffers;
};

struct MemoryReport {
  int64_t arenaBytes = 0;
  int64_t persistentBytes = 0;
  /// By role: parameter, state, compute_copy, gradient, buffer, input, output.
  std::vector<std::pair<std::string, int64_t>> persistent;
  std::vector<ProgramMemory> programs;
  /// Of NCCL, which have memory beside the arena: one for each stream and group
  /// of ranks with a collective. Unset but in modules planned for GPUs.
  std::optional<int64_t> communicators;
};

/// The roles of persistent ranges in the order in which the arena holds them.
llvm::ArrayRef<exec::Role> arenaOrder();

/// What lives at the position where most bytes of `lifetimes` live, and the
/// `outputs` that the program alone gives. The buffers take `peak` bytes
/// from byte `top` on, below which lie the outputs of `others` too: those of
/// programs that were planned before, which keep their bytes.
ProgramMemory measureProgram(exec::ProgramOp program,
                             const Lifetimes &lifetimes,
                             llvm::ArrayRef<exec::RangeOp> outputs,
                             llvm::ArrayRef<exec::RangeOp> others, int64_t top,
                             int64_t peak);

/// `memory` as the attribute `exec.memory`.
mlir::DictionaryAttr memoryAttr(mlir::MLIRContext *context,
                                const ProgramMemory &memory);

/// Reads the plan of a module, at any stage after exec-plan-memory.
MemoryReport memoryReport(mlir::ModuleOp module);

/// "1.5 MiB".
std::string formatBytes(int64_t bytes);

/// Reads a size as people write it: "1000000", "60GiB", "1.5 TiB", "500MB".
/// Units of 1024 end in iB, units of 1000 in B.
llvm::Expected<int64_t> parseBytes(llvm::StringRef text);

/// Prints tables for people.
void printMemoryReport(const MemoryReport &report, llvm::raw_ostream &os);

} // namespace fsdp

#endif // FSDP_MEMORY_REPORT_H
