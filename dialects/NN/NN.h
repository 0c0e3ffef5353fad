//===- NN.h - The nn dialect ------------------------------------*- C++ -*-===//
//
// What is computed: logical tensors, about seventy named ops, parameters as
// symbols. See NNDialect.td for the model that it follows.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DIALECTS_NN_NN_H
#define FSDP_DIALECTS_NN_NN_H

#include "dialects/NN/AttentionView.h"
#include "dialects/NN/KernelBuilder.h"
#include "dialects/NN/ShardingRule.h"
#include "fsdp/Support/CheckedSize.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/bit.h"

namespace fsdp::nn {

/// A double as a parameter of an attribute: equal and hashed by its bits.
struct Real {
  double value = 0;
  Real(double value = 0) : value(value) {}
  operator double() const { return value; }
  uint64_t bits() const { return llvm::bit_cast<uint64_t>(value); }
  bool operator==(const Real &other) const { return bits() == other.bits(); }
};
inline llvm::hash_code hash_value(const Real &real) {
  return llvm::hash_value(real.bits());
}

/// Parameters, buffers and optimizer state: read by nn.read, written by
/// nn.adamw, nn.accumulate, nn.write and nn.clear. Ordering effects on it keeps
/// reads before the update.
struct PersistentResource
    : mlir::SideEffects::Resource::Base<PersistentResource> {
  llvm::StringRef getName() final { return "nn.persistent"; }
};

/// True for a tensor or memref of static shape whose dimensions are at least 1
/// and whose bytes are at most kMaxTensorBytes: after this check the products
/// of its sizes are safe. `mayBeEmpty` also takes dimensions of 0. Every op's
/// operands and results are checked for it; so is every type in an attribute.
bool hasCheckedSize(mlir::Type type, bool mayBeEmpty = false);

/// Sum of the sizes in bytes of all tensor operands and results of `op`;
/// INT64_MAX if it is larger.
int64_t bytesOfOperandsAndResults(mlir::Operation *op);

/// Size of a tensor in bytes.
int64_t bytesOf(mlir::Type tensorType);

/// What an op does to a tensor of the model. Of Gradient the name is that of
/// the parameter, and the gradient is written.
enum class StateEffect { Read, Write, Update, Add, Clear, Gradient };

/// Which types nn-precision gives the operands of floating point and the result
/// of an op (NNFacts.td).
enum class PrecisionRule {
  Matrix,   ///< the narrowest of the operands', f32 with a wide parameter
  Wide,     ///< f32
  Operands, ///< the widest of the operands'
  Input,    ///< the result that of operand 0; all others get one type
  Constant, ///< none of its own
  Declared, ///< those that are written
  Later,    ///< the op is created after nn-precision
};

/// What NNFacts.td says of these.
#define FSDP_NN_TRAIT(NAME)                                                    \
  template <typename OpT>                                                      \
  class NAME : public mlir::OpTrait::TraitBase<OpT, NAME> {};
FSDP_NN_TRAIT(MovesElements)
FSDP_NN_TRAIT(AliasesOperands)
FSDP_NN_TRAIT(MatrixProduct)
FSDP_NN_TRAIT(ReadByLibrary)
FSDP_NN_TRAIT(DividesByCount)
#undef FSDP_NN_TRAIT

inline bool movesElements(mlir::Operation *op) {
  return op->hasTrait<MovesElements>();
}

/// Whether the results of `op` are its operands, or boxes of them.
inline bool aliasesOperands(mlir::Operation *op) {
  return op->hasTrait<AliasesOperands>();
}

/// f64 for f64 tensors, else f32: what statistics and losses are kept in.
mlir::Type accumulationType(mlir::Type elementType);

/// Name of the argument and result attribute that names arena ranges.
inline constexpr llvm::StringLiteral kNameAttr = "nn.name";
/// Unit attribute of a parameter that is not trained.
inline constexpr llvm::StringLiteral kFrozenAttr = "nn.frozen";
/// Unit attribute of an nn.add that puts a block's result into the residual
/// stream: lhs is the stream before it, the result the stream after it.
inline constexpr llvm::StringLiteral kResidualAttr = "nn.residual";
/// Names the parameter that a buffer (optimizer state) belongs to.
inline constexpr llvm::StringLiteral kStateOfAttr = "nn.state_of";
/// Names the parameter whose value a buffer has in the type of compute.
inline constexpr llvm::StringLiteral kComputeCopyOfAttr = "nn.compute_copy_of";
/// Attribute of the module: the steps that are lists of actions, by name.
inline constexpr llvm::StringLiteral kStepsAttr = "nn.steps";
/// Attribute of the module: which model it is, a family and its fields.
inline constexpr llvm::StringLiteral kModelAttr = "nn.model";
/// The key of nn.model that names the family.
inline constexpr llvm::StringLiteral kFamilyKey = "family";

} // namespace fsdp::nn

namespace mlir {
/// Parses a floating point literal, an integer literal included.
template <> struct FieldParser<fsdp::nn::Real> {
  static FailureOr<fsdp::nn::Real> parse(AsmParser &parser) {
    double value = 0;
    if (parser.parseFloat(value))
      return failure();
    return fsdp::nn::Real(value);
  }
};
} // namespace mlir

#include "dialects/NN/NNDialect.h.inc"
#include "dialects/NN/NNEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.h.inc"
#include "dialects/NN/NNInterfaces.h.inc"
#define GET_OP_CLASSES
#include "dialects/NN/NNOps.h.inc"

#endif // FSDP_DIALECTS_NN_NN_H
