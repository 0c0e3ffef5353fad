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
      a gradient reaches; an entry left null has none. A cotangent has the
      type of the value it belongs to.
    }], "void", "buildVjp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$cotangents,
           "::llvm::MutableArrayRef<::mlir::Value>":$operandCotangents)>
  ];
}

def NN_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::fsdp::nn";
  let description = "What one execution of the op costs on an ideal machine.";
  let methods = [
    InterfaceMethod<"Floating point operations; a multiply-add counts two.",
      "int64_t", "getFlops", (ins)>,
    InterfaceMethod<"Bytes read and written, each operand and result once.",
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
    InterfaceMethod<"The iteration space (rows, columns).",
      "::fsdp::nn::KernelSpace", "getKernelSpace", (ins)>,
    InterfaceMethod<[{
      Describes every result of the op to `kernel`: element functions, row
      scalars or column reductions, in f32, over the kernel's operands.
    }], "void", "lowerToKernel", (ins "::fsdp::nn::KernelBuilder &":$kernel)>
  ];
}

#endif // FSDP_NN_INTERFACES
