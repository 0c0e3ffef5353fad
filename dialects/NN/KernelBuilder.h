//===- KernelBuilder.h - How an nn op describes its scalar code -*- C++ -*-===//
//
// The seam between the nn ops and the kernels of the exec dialect. An op's
// `lowerToKernel` speaks only to this class; exec-lower implements it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_KERNELBUILDER_H
#define FSDP_DIALECTS_NN_KERNELBUILDER_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include <functional>

namespace fsdp::nn {

enum class ReduceKind : uint32_t;

/// How a tensor is addressed at (row, column). Sizes alone do not tell: in a
/// space of 256 x 256 a tensor of 256 elements may be a row's or a column's.
enum class KernelAccess {
  Element, ///< rows * cols elements, index row * cols + column
  Row,     ///< one element per row
  Column,  ///< one element per column
  Scalar,  ///< one element in all
};

/// Sums over rows take so many rows at a time (kRowBlock of
/// fsdp/Runtime/KernelMath.h).
inline constexpr int64_t kRowBlock = 32;
/// A thread of a GPU keeps one number of a sum over rows for each 512 columns:
/// registers for so many columns of all sums of a kernel.
inline constexpr int64_t kMostSumColumns = 16384;
/// Columns that such a thread reads at a time.
inline constexpr int64_t kSumVector = 8;

/// The iteration space of a kernel: `rows` x `cols` elements.
/// `columnReduction` marks kernels that sum over the rows (weight gradients of
/// norms, bias gradients): they give one element per column.
///
/// `rows == 0` says that the op has no kernel of this form: a broadcast or a
/// reduction whose dimensions are neither leading nor trailing. Such an op
/// must be rewritten (transpose first) before it can be lowered, and is never
/// fused.
struct KernelSpace {
  int64_t rows = 1;
  int64_t cols = 1;
  bool columnReduction = false;
  static KernelSpace notExpressible() { return {0, 0, false}; }
  bool isExpressible() const { return rows != 0; }
  bool operator==(const KernelSpace &o) const {
    return rows == o.rows && cols == o.cols &&
           columnReduction == o.columnReduction;
  }
  /// Whether sums over these rows can be part of a kernel of rows, block by
  /// block.
  bool hasBlocks() const { return isExpressible() && rows % kRowBlock == 0; }
  /// Elements of such sums.
  int64_t blockElements() const { return rows / kRowBlock * cols; }
};

/// Receives the scalar description of one or several fused nn ops.
///
/// All scalars are f32 (those of integer tensors have the tensor's type). Every
/// read says how the tensor is addressed; every definition says it by its name:
/// `define` gives one value per element, `defineRow` one per row,
/// `defineColumns` one per column. One op addresses one tensor in one way only.
/// The element functions given to `define` run once per stage that needs the
/// value, so they must be pure and cheap.
class KernelBuilder {
public:
  using Scalar = std::function<mlir::Value()>;
  virtual ~KernelBuilder() = default;

  /// Builder placed where scalar ops belong at the time of the call.
  virtual mlir::OpBuilder &builder() = 0;
  virtual mlir::Location loc() = 0;

  /// The scalar of `tensor` at the current position, floats as f32. Inside an
  /// element function every access is allowed; outside (row scalars) only
  /// `Row` and `Scalar`.
  virtual mlir::Value read(mlir::Value tensor, KernelAccess access) = 0;

  /// The scalar of `tensor` (rows*cols elements) at the current row and the
  /// column `col` (i32).
  virtual mlir::Value readAt(mlir::Value tensor, mlir::Value col) = 0;

  /// The current column as i32; only inside an element function.
  virtual mlir::Value column() = 0;

  /// Combines `element` over the columns of the current row, in the fixed
  /// order of the contract (16 lanes, then a tree). Gives one f32 per row.
  virtual mlir::Value reduceColumns(ReduceKind kind, Scalar element) = 0;

  /// Defines an element-wise result. The builder rounds to its declared type.
  virtual void define(mlir::Value result, Scalar element) = 0;

  /// Defines a result with one element per row.
  virtual void defineRow(mlir::Value result, mlir::Value scalar) = 0;

  /// Defines a result with one element per column: `element` combined over
  /// the rows. In a space without `columnReduction`, which has whole blocks of
  /// rows then, the kernel gives what each block combines to.
  virtual void defineColumns(mlir::Value result, ReduceKind kind,
                             Scalar element) = 0;

  /// An f32 constant.
  virtual mlir::Value constant(double value) = 0;
};

} // namespace fsdp::nn

#endif // FSDP_DIALECTS_NN_KERNELBUILDER_H
