//===- NNPointwiseOps.td - One element in, one element out ----*- tablegen -*-===//
#ifndef FSDP_NN_POINTWISE_OPS
#define FSDP_NN_POINTWISE_OPS

include "dialects/NN/NNBase.td"

//===----------------------------------------------------------------------===//
// Constants and casts
//===----------------------------------------------------------------------===//

// Any shard of a splat is a splat too.
def NN_ConstantOp : NN_PureOp<"constant", [ConstantLike, NN_Kernel,
    AllTypesMatch<["value", "result"]>]> {
  let summary = "A tensor whose elements are all one value";
  let prose = [{
    Example: `%c = nn.constant dense<0.5> : tensor<4x8xf32>`

    Constraints: 1. the value is a splat of the result's type.
  }];
  let sharding = NN_Rule<" -> ...">;
  let linear = NN_NotLinear;
  let flops = NN_NoFlops;
  let space = NN_RowsOf<"result">;
  let precision = NN_ConstantPrecision;
  let arguments = (ins TypedAttrInterface:$value);
  let results = (outs NN_AnyTensor:$result);
  let assemblyFormat = "$value attr-dict";
  let hasFolder = 1;
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::RankedTensorType":$type, "double":$value)>];
  let extraClassDeclaration = [{
    /// The splat value as a double.
    double getSplat();
  }];
}

// A cast does not pass partials on: it would round each summand.
def NN_CastOp : NN_PureOp<"cast", [SameOperandsAndResultShape, NN_Kernel,
                                   NN_Differentiable, NN_MovesElements]> {
  let summary = "Converts the element type, rounding to nearest even";
  let prose = [{
    The reverse rule casts the cotangent back.

    Example: `%b = nn.cast %a : tensor<4xf32> to tensor<4xbf16>`

    Constraints: 1. equal shapes.
  }];
  let sharding = NN_Elementwise;
  let linear = NN_LinearInEach;
  let flops = NN_NoFlops;
  let space = NN_RowsOf<"result">;
  let precision = NN_DeclaredPrecision;
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($input) `to` type($result)";
  let hasFolder = 1;
}

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

class NN_BinaryOp<string mnemonic, string formula, NN_ShardingFact theSharding,
                  NN_LinearityFact theLinearity, list<Trait> traits = []>
    : NN_PureOp<mnemonic, !listconcat(traits, [
        SameOperandsAndResultType, NN_Kernel, NN_Differentiable])> {
  let summary = formula;
  let prose = "Works element by element. Broadcasting is explicit (nn.broadcast)."
    "\n\nExample: `%y = nn." # mnemonic # " %a, %b : tensor<4x8xf32>`"
    "\n\nConstraints: 1. all types are equal.";
  let sharding = theSharding;
  let linear = theLinearity;
  let flops = NN_Flops<1, "result">;
  let space = NN_RowsOf<"result">;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_FloatTensor:$lhs, NN_FloatTensor:$rhs);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($result)";
}

def NN_AddOp : NN_BinaryOp<"add", "lhs + rhs", NN_ElementwiseOfParts, NN_LinearTogether, [Commutative]>;
def NN_SubOp : NN_BinaryOp<"sub", "lhs - rhs", NN_ElementwiseOfParts, NN_LinearTogether>;
def NN_MulOp : NN_BinaryOp<"mul", "lhs * rhs", NN_Elementwise, NN_LinearInEach, [Commutative]>;
def NN_DivOp : NN_BinaryOp<"div", "lhs / rhs", NN_Elementwise, NN_LinearIn<"lhs">>;

class NN_UnaryOp<string mnemonic, string formula, int theFlops, NN_PrecisionFact thePrecision>
    : NN_PureOp<mnemonic, [SameOperandsAndResultType, NN_Kernel,
                           NN_Differentiable]> {
  let summary = formula;
  let prose = "Works element by element: computes in f32 and rounds once."
    "\n\nExample: `%y = nn." # mnemonic # " %x : tensor<4x8xf32>`"
    "\n\nConstraints: 1. operand and result types are equal.";
  let sharding = NN_Elementwise;
  let linear = NN_NotLinear;
  let flops = NN_Flops<theFlops, "result">;
  let space = NN_RowsOf<"result">;
  let precision = thePrecision;
  let arguments = (ins NN_FloatTensor:$input);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input attr-dict `:` type($result)";
}

def NN_NegOp : NN_UnaryOp<"neg", "-x", 1, NN_OperandsPrecision> {
  let sharding = NN_ElementwiseOfParts;
  let linear = NN_LinearInEach;
}
def NN_ExpOp : NN_UnaryOp<"exp", "e^x", 1, NN_WidePrecision>;
def NN_LogOp : NN_UnaryOp<"log", "natural logarithm of x", 1, NN_WidePrecision>;
def NN_SqrtOp : NN_UnaryOp<"sqrt", "square root of x", 1, NN_WidePrecision>;
def NN_RsqrtOp : NN_UnaryOp<"rsqrt", "1 / sqrt(x)", 2, NN_WidePrecision>;
def NN_TanhOp : NN_UnaryOp<"tanh", "hyperbolic tangent of x", 1, NN_OperandsPrecision>;
def NN_SigmoidOp : NN_UnaryOp<"sigmoid", "1 / (1 + e^-x)", 3, NN_OperandsPrecision>;
def NN_ReluOp : NN_UnaryOp<"relu", "max(x, 0)", 1, NN_OperandsPrecision>;
def NN_SiluOp : NN_UnaryOp<"silu", "x * sigmoid(x) (Elfwing et al., 2017)", 4, NN_OperandsPrecision>;

def NN_GeluOp : NN_PureOp<"gelu", [SameOperandsAndResultType, NN_Kernel,
                                   NN_Differentiable]> {
  let summary = "x * Phi(x), exact or by tanh (Hendrycks and Gimpel, 2016)";
  let prose = [{
    `exact`: `x/2 (1 + erf(x / sqrt 2))`;
    `tanh`: `x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))`.

    Example: `%y = nn.gelu tanh %x : tensor<4x8xf32>`
  }];
  let sharding = NN_Elementwise;
  let linear = NN_NotLinear;
  let flops = NN_Flops<6, "result">;
  let space = NN_RowsOf<"result">;
  let precision = NN_OperandsPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_GeluFormAttr:$form);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$form $input attr-dict `:` type($result)";
}

//===----------------------------------------------------------------------===//
// Gradients of activations: one rounding, as the forward op
//===----------------------------------------------------------------------===//

class NN_UnaryGradOp<string mnemonic, string formula, int theFlops>
    : NN_PureOp<mnemonic, [SameOperandsAndResultType, NN_Kernel]> {
  let summary = formula;
  let prose = "Reverse rule of the activation. It takes the activation's operand "
    "and the cotangent of its result.\n\nExample: `%dx = nn." # mnemonic #
    " %x, %dy : tensor<4x8xf32>`\n\nConstraints: 1. all types are equal.";
  let sharding = NN_Elementwise;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<theFlops, "result">;
  let space = NN_RowsOf<"result">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$cotangent);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$input `,` $cotangent attr-dict `:` type($result)";
}

def NN_ReluGradOp : NN_UnaryGradOp<"relu_grad", "x > 0 ? dy : 0", 1>;
def NN_SiluGradOp : NN_UnaryGradOp<"silu_grad", "dy s (1 + x (1 - s)), s = sigmoid(x)", 8>;

def NN_GeluGradOp : NN_PureOp<"gelu_grad", [SameOperandsAndResultType, NN_Kernel]> {
  let summary = "Reverse rule of nn.gelu";
  let prose = [{
    Example: `%dx = nn.gelu_grad exact %x, %dy : tensor<4x8xf32>`
  }];
  let sharding = NN_Elementwise;
  let linear = NN_LinearIn<"cotangent">;
  let flops = NN_Flops<12, "result">;
  let space = NN_RowsOf<"result">;
  let precision = NN_LaterPrecision;
  let arguments = (ins NN_FloatTensor:$input, NN_FloatTensor:$cotangent,
                       NN_GeluFormAttr:$form);
  let results = (outs NN_FloatTensor:$result);
  let assemblyFormat = "$form $input `,` $cotangent attr-dict `:` type($result)";
}

#endif // FSDP_NN_POINTWISE_OPS
