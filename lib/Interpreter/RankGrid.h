//===- RankGrid.h - Ranks, groups and what moves between them ---*- C++ -*-===//
//
// Private to the interpreter. Written from the text of the fsdp dialect and not
// from the runtime, so that either can be wrong alone.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_LIB_INTERPRETER_RANKGRID_H
#define FSDP_LIB_INTERPRETER_RANKGRID_H

#include "Formulas.h"
#include "dialects/Fsdp/Placement.h"

namespace fsdp::interpret {

using Axes = llvm::ArrayRef<dist::AxisRefAttr>;

/// How a reduction combines and rounds.
struct Reduction {
  dist::CollectiveReduce kind;
  /// The type of sums and result; null to keep doubles.
  mlir::Type rounded;
};

/// The ranks of a mesh, row-major.
class RankGrid {
public:
  /// `mesh` may be null: one rank.
  explicit RankGrid(dist::MeshOp mesh);

  int64_t ranks() const { return world; }

  /// Ranks that share a tensor over `axes`.
  int64_t parts(Axes axes) const;
  /// The place of `rank` among those, first axis slowest.
  int64_t position(int64_t rank, Axes axes) const;
  /// The ranks that differ from `rank` along `axes` alone, by position.
  std::vector<int64_t> group(int64_t rank, Axes axes) const;

  /// `local` of every rank of each group joined along `dim`, its first `size`
  /// elements.
  Tensors gather(const Tensors &local, Axes axes, int64_t dim,
                 int64_t size) const;
  /// `local` combined over each group.
  Tensors reduce(const Tensors &local, Axes axes,
                 const Reduction &reduction) const;
  /// Each rank's part of its tensor along `dim`, padded with zeros.
  Tensors scatter(const Tensors &full, Axes axes, int64_t dim) const;

  /// Each rank's part of its whole tensor; of a partial one the first rank
  /// has it all.
  Tensors parts(Tensors whole, const dist::Placement &placement) const;
  /// The reverse, for tensors of `shape`, on every rank. Fails if replicas
  /// differ or padding is not zero; `name` is what messages call the tensor.
  DenseTensor joined(llvm::StringRef name, const Tensors &local,
                     const dist::Placement &placement,
                     llvm::ArrayRef<int64_t> shape) const;

private:
  /// One axis or sub-axis: the digit (rank / stride) mod size.
  struct Digit {
    int64_t stride, size;
  };
  std::vector<Digit> digits(Axes axes) const;

  /// Name and size of each axis.
  std::vector<std::pair<std::string, int64_t>> axes;
  int64_t world = 1;
};

/// Part `position` of `parts` of `full` along `dim`: ceil(size / parts)
/// elements, zeros where it ends before.
DenseTensor shardAlong(const DenseTensor &full, int64_t dim, int64_t parts,
                       int64_t position);

/// The pieces one after another along `dim`.
DenseTensor join(llvm::ArrayRef<const DenseTensor *> pieces, int64_t dim);

/// The first `size` elements along `dim`.
DenseTensor prefix(const DenseTensor &tensor, int64_t dim, int64_t size);

} // namespace fsdp::interpret

#endif // FSDP_LIB_INTERPRETER_RANKGRID_H
