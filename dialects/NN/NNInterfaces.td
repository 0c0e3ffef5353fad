//===- NNInterfaces.td - One interface per concern ------------*- tablegen -*-===//
#ifndef FSDP_NN_INTERFACES
#define FSDP_NN_INTERFACES

include "mlir/IR/OpBase.td"

def NN_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = [{
    The reverse rule (vector-Jacobian product) of an op. `nn-differentiate`
    calls it once per op in reverse program order.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the reverse rule at `builder`'s insertion point. `cotangents` has
      one entry per result (null: no gradient reaches that result; at least
      one is set). The rule sets `operandCotangents[i]` for each operand that
      a gradient reaches; an entry left null has none; all null means that
      the rule has emitted an error. A cotangent has the
      type of the value it belongs to. Statistics kept for the backward pass
      (`rstd`, `mean`, `lse`) are not differentiable: a rule that is given a
      cotangent of one emits an error and leaves every entry null.
    }], "void", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandCotangents)>
  ];
}

def NN_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = "What one execution of the op costs on an ideal machine.";
  let methods = [
    InterfaceMethod<[{
      Floating point operations; a multiply-add counts two. INT64_MAX if there
      are more.
    }],
      "int64_t", "getFlops", (ins)>,
    InterfaceMethod<[{
      Those that no other op of the model has made before: a reverse rule may
      compute again what the forward pass did not keep.
    }], "int64_t", "getModelFlops", (ins), [{}], [{ return $_op.getFlops(); }]>,
    InterfaceMethod<[{
      Bytes read and written, each operand and result once. INT64_MAX if there
      are more.
    }],
      "int64_t", "getBytes", (ins), [{}],
      [{ return ::fsdp::nn::bytesOfOperandsAndResults($_op); }]>
  ];
}

def NN_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = [{
    How an op lowers to a fused kernel. A kernel iterates over a space of
    rows x columns; the last dimension of a tensor is the columns, the product
    of the others the rows. Ops that agree on the space can be fused.
  }];
  let methods = [
    InterfaceMethod<[{
      The iteration space (rows, columns). `rows == 0` says that the op, with
      these shapes, cannot be lowered to a kernel: a broadcast or a reduction
      whose dimensions are neither leading nor trailing.
    }],
      "::fsdp::nn::KernelSpace", "getKernelSpace", (ins)>,
    InterfaceMethod<[{
      Describes every result of the op to `kernel`: element functions, row
      scalars or column reductions, in f32, over the kernel's operands. May be
      called only when the space is expressible. f64 tensors have no kernels.
    }], "void", "lowerToKernel", (ins "::fsdp::nn::KernelBuilder &":$kernel)>
  ];
}

def NN_ShardingOpInterface : OpInterface<"ShardingOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = [{
    Which loops of an op may be cut over the ranks of a mesh, and what its
    results are then: shards, or parts of a sum (see ShardingRule.h).
  }];
  let methods = [
    InterfaceMethod<"The factors of every dimension, for these shapes.",
      "::fsdp::nn::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
      Whether the op is linear in this operand while the others stay as they
      are. (Of an op that adds or joins, passesPartial of its rule says that
      parts of all its operands give a part.)
    }], "bool", "isLinearIn", (ins "::mlir::OpOperand &":$operand)>
  ];
}

def NN_PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = "What `nn-precision` makes of the types of an op.";
  let methods = [
    InterfaceMethod<"Which types operands and results get.",
      "::fsdp::nn::PrecisionRule", "getPrecisionRule", (ins)>,
    InterfaceMethod<[{
      The operand that gets f32 whatever the rule says of the others; null if
      there is none.
    }], "::mlir::OpOperand *", "getWideOperand", (ins)>
  ];
}

def NN_StateOpInterface : OpInterface<"StateOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = "What an op does to tensors of the model: parameters, buffers, gradients.";
  let methods = [
    InterfaceMethod<"Calls `visit` with the name of every one that it reads or writes.",
      "void", "forEachStateEffect",
      (ins "::llvm::function_ref<void(::llvm::StringRef, ::fsdp::nn::StateEffect)>":$visit)>
  ];
}

#endif // FSDP_NN_INTERFACES
