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
      Builds the reverse rule at `builder`'s insertion point. `cotangents` has one entry per result; null means
      that no gradient reaches that result, and at least one is not null. The rule sets `operandCotangents[i]`
      for each operand that a gradient reaches and leaves the others null. If it leaves all null, it has emitted
      an error. A cotangent has the type of its value. Statistics kept for the backward pass (`rstd`, `mean`,
      `lse`) are not differentiable: for a cotangent of one of them a rule emits an error and leaves every
      entry null.
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
      Floating point operations; a multiply-add counts as two. INT64_MAX if there are more.
    }],
      "int64_t", "getFlops", (ins)>,
    InterfaceMethod<[{
      Operations that no earlier op of the model has done: a reverse rule may compute again what the forward
      pass did not keep.
    }], "int64_t", "getModelFlops", (ins), [{}], [{ return $_op.getFlops(); }]>,
    InterfaceMethod<[{
      Operations that take time: getFlops without those on scores that are hidden. Attention alone has such.
    }], "int64_t", "getVisibleFlops", (ins), [{}], [{ return $_op.getFlops(); }]>,
    InterfaceMethod<[{
      Bytes read and written, each operand and result once. INT64_MAX if there are more.
    }],
      "int64_t", "getBytes", (ins), [{}],
      [{ return ::fsdp::nn::bytesOfOperandsAndResults($_op); }]>
  ];
}

def NN_KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = [{
    How an op lowers to a fused kernel. A kernel iterates over a space of rows x columns. The columns are the
    last dimension of a tensor, the rows the product of the others. Ops with the same space can be fused.
  }];
  let methods = [
    InterfaceMethod<[{
      The iteration space (rows, columns). `rows == 0` means that the op with these shapes cannot be lowered to
      a kernel: a broadcast or a reduction whose dimensions are neither leading nor trailing.
    }],
      "::fsdp::nn::KernelSpace", "getKernelSpace", (ins)>,
    InterfaceMethod<[{
      Describes every result of the op to `kernel`: element functions, row scalars or column reductions, in f32,
      over the operands of the kernel. May be called only if the space is expressible. f64 tensors have no
      kernels.
    }], "void", "lowerToKernel", (ins "::fsdp::nn::KernelBuilder &":$kernel)>
  ];
}

def NN_ShardingOpInterface : OpInterface<"ShardingOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = [{
    Which loops of an op may be split over the ranks of a mesh, and whether its results are then shards or
    partials (see ShardingRule.h).
  }];
  let methods = [
    InterfaceMethod<"The factors of every dimension, for these shapes.",
      "::fsdp::nn::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
      Whether the op is linear in this operand while the others are constant. (For an op that adds or joins,
      passesPartial of its rule says that partial operands produce a partial.)
    }], "bool", "isLinearIn", (ins "::mlir::OpOperand &":$operand)>
  ];
}

def NN_PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = "How `nn-precision` changes the types of an op.";
  let methods = [
    InterfaceMethod<"Which types operands and results get.",
      "::fsdp::nn::PrecisionRule", "getPrecisionRule", (ins)>,
    InterfaceMethod<[{
      The operand that is cast to f32 whatever the rule says of the others; null if there is none.
    }], "::mlir::OpOperand *", "getWideOperand", (ins)>
  ];
}

def NN_StateOpInterface : OpInterface<"StateOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = "What an op does to tensors of the model: parameters, buffers, gradients.";
  let methods = [
    InterfaceMethod<"Calls `visit` with the name of every tensor that it reads or writes.",
      "void", "forEachStateEffect",
      (ins "::llvm::function_ref<void(::llvm::StringRef, ::fsdp::nn::StateEffect)>":$visit)>
  ];
}

#endif // FSDP_NN_INTERFACES
