//===- NNBase.td - Types and op base classes of the nn dialect -*- tablegen -*-===//
#ifndef FSDP_NN_BASE
#define FSDP_NN_BASE

include "dialects/NN/NNDialect.td"
include "dialects/NN/NNAttrs.td"
include "dialects/NN/NNFacts.td"
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

defvar NN_Cost = DeclareOpInterfaceMethods<NN_CostOpInterface>;
/// Bytes that differ from operands and results: the op's own getBytes.
defvar NN_OwnBytes = DeclareOpInterfaceMethods<NN_CostOpInterface, ["getBytes"]>;
/// It masks scores: the op's own getVisibleFlops.
defvar NN_OwnVisibleFlops = DeclareOpInterfaceMethods<NN_CostOpInterface, ["getVisibleFlops"]>;
/// It also repeats some operations: the op's own getModelFlops.
defvar NN_OwnModelAndVisibleFlops =
    DeclareOpInterfaceMethods<NN_CostOpInterface, ["getModelFlops", "getVisibleFlops"]>;
defvar NN_Differentiable =
    DeclareOpInterfaceMethods<NN_DifferentiableOpInterface>;
defvar NN_Kernel = DeclareOpInterfaceMethods<NN_KernelOpInterface>;

/// A method of an interface whose body is a fact's.
class NN_FactMethod<string signature, NN_Fact fact> {
  string text = !if(!eq(fact.body, ""), "", signature # " {\n  " # fact.body # "\n}\n");
}

/// A pure op; passes know only these facts of it (NNFacts.td). The op or its
/// class must state each of them, and ops of NN_Kernel also `space`.
class NN_PureOp<string mnemonic, list<Trait> traits = [], Trait cost = NN_Cost>
    : NN_Op<mnemonic, !listconcat(traits, [Pure, cost,
        DeclareOpInterfaceMethods<NN_ShardingOpInterface>,
        DeclareOpInterfaceMethods<NN_PrecisionOpInterface>])> {
  NN_ShardingFact sharding = ?;
  NN_LinearityFact linear = ?;
  NN_FlopsFact flops = ?;
  NN_SpaceFact space = NN_NoKernel;
  NN_PrecisionFact precision = ?;
  /// The operand that nn-precision casts to f32 whatever the rule says of others.
  string wideOperand = "";
  /// The description for people, before the facts.
  string prose = ?;

  // The text is indented as prose of several lines is, which ends in one.
  defvar isIndented = !eq(!substr(prose, 0, 1), "\n");
  defvar indent = !if(isIndented, "    ", "");
  defvar rows = !foreach(row, [
      "| fact | |", "|---|---|",
      "| split over ranks | " # sharding.text # " |",
      "| linear | " # linear.text # " |",
      "| floating point operations | " # flops.text # " |",
      "| kernel | " # space.text # " |",
      "| precision | " # precision.text # !if(!eq(wideOperand, ""), "",
          "; `" # wideOperand # "` f32") # " |"], indent # row);
  let description = prose # !if(isIndented, "\n", "\n\n") # !interleave(rows, "\n") # "\n";
  let extraClassDefinition =
      NN_FactMethod<"::fsdp::nn::ShardingRule $cppClass::getShardingRule()", sharding>.text #
      NN_FactMethod<"bool $cppClass::isLinearIn(::mlir::OpOperand &operand)", linear>.text #
      NN_FactMethod<"int64_t $cppClass::getFlops()", flops>.text #
      NN_FactMethod<"::fsdp::nn::KernelSpace $cppClass::getKernelSpace()", space>.text #
      NN_FactMethod<"::fsdp::nn::PrecisionRule $cppClass::getPrecisionRule()", precision>.text #
      "::mlir::OpOperand *$cppClass::getWideOperand() {\n  return " #
      !if(!eq(wideOperand, ""), "nullptr", "&" # NN_Get<wideOperand, "Mutable">.call) # ";\n}\n";
}

/// An op that reads or writes tensors of the model. exec-lower reads `state` and
/// states it for exec-verify; everybody else reads the memory effects. These are
/// two statements, so that proofs that rely on them share no mistake.
class NN_StateOp<string mnemonic, list<Trait> traits> : NN_Op<mnemonic, !listconcat(traits,
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>,
     DeclareOpInterfaceMethods<NN_StateOpInterface>])> {
  NN_StateFact state = ?;
  string prose = ?;
  let description = prose # "\n    | fact | |\n    |---|---|\n    | state | " # state.text # " |\n";
  let extraClassDefinition = NN_FactMethod<"void $cppClass::forEachStateEffect("
      "::llvm::function_ref<void(::llvm::StringRef, ::fsdp::nn::StateEffect)> visit)", state>.text;
}

#endif // FSDP_NN_BASE
