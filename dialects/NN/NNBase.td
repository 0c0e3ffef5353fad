//===- NNBase.td - Types and op base classes of the nn dialect -*- tablegen -*-===//
#ifndef FSDP_NN_BASE
#define FSDP_NN_BASE

include "dialects/NN/NNDialect.td"
include "dialects/NN/NNAttrs.td"
include "dialects/NN/NNInterfaces.td"
include "dialects/NN/NNTypes.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// The element types the kernels know.
def NN_FloatTensor : NN_TensorOf<[F32, BF16, F64]>;
def NN_IntTensor : NN_TensorOf<[I32]>;
def NN_AnyTensor : NN_TensorOf<[F32, BF16, F64, I32, I64]>;
def NN_ScalarTensor : NN_TensorOf<[F32, F64]>;

/// The one type of a run-time scalar; ops that take it need not print it.
class NN_RuntimeScalar<string text, string element> : Type<
    CPred<"$_self == ::mlir::RankedTensorType::get({}, ::mlir::Builder($_self.getContext())." # element # "())">,
    text, "::mlir::RankedTensorType">, BuildableType<
    "::mlir::RankedTensorType::get({}, $_builder." # element # "())">;
def NN_F32Scalar : NN_RuntimeScalar<"tensor<f32>", "getF32Type">;
def NN_I32Scalar : NN_RuntimeScalar<"tensor<i32>", "getI32Type">;
def NN_I64Scalar : NN_RuntimeScalar<"tensor<i64>", "getI64Type">;

/// What persists between steps: parameters, buffers, optimizer state.
def NN_PersistentResource : Resource<"::fsdp::nn::PersistentResource">;

class NN_Op<string mnemonic, list<Trait> traits = []>
    : Op<NN_Dialect, mnemonic, traits>;

defvar NN_Sharding = DeclareOpInterfaceMethods<NN_ShardingOpInterface>;

/// A pure op with a sharding rule and a cost.
class NN_PureOp<string mnemonic, list<Trait> traits = []>
    : NN_Op<mnemonic, !listconcat(traits, [Pure, NN_Sharding,
        DeclareOpInterfaceMethods<NN_CostOpInterface>])>;

defvar NN_Differentiable =
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>;
defvar NN_Kernel = DeclareOpInterfaceMethods<NN_KernelOpInterface>;

#endif // FSDP_NN_BASE
