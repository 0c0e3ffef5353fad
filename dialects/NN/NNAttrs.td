//===- NNAttrs.td - Enums and initialisers of the nn dialect -*- tablegen -*-===//
#ifndef FSDP_NN_ATTRS
#define FSDP_NN_ATTRS

include "dialects/NN/NNDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

//===----------------------------------------------------------------------===//
// Enums
//===----------------------------------------------------------------------===//

def NN_GeluForm : I32EnumAttr<"GeluForm", "which formula gelu uses", [
    I32EnumAttrCase<"Exact", 0, "exact">,
    I32EnumAttrCase<"Tanh", 1, "tanh">]> {
  let cppNamespace = "::fsdp::nn";
  let genSpecializedAttr = 0;
}
def NN_GeluFormAttr : EnumAttr<NN_Dialect, NN_GeluForm, "gelu_form">;

def NN_RotaryPairs : I32EnumAttr<"RotaryPairs",
    "which elements of a head are rotated together", [
    I32EnumAttrCase<"Adjacent", 0, "adjacent">,
    I32EnumAttrCase<"Halves", 1, "halves">]> {
  let cppNamespace = "::fsdp::nn";
  let genSpecializedAttr = 0;
}
def NN_RotaryPairsAttr : EnumAttr<NN_Dialect, NN_RotaryPairs, "rotary_pairs">;

def NN_ReduceKind : I32EnumAttr<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">]> {
  let cppNamespace = "::fsdp::nn";
  let genSpecializedAttr = 0;
}

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

/// A double. MLIR neither hashes nor parses one, so it is stored as
/// fsdp::nn::Real (NN.h).
class NN_RealBase : AttrOrTypeParameter<"::fsdp::nn::Real", "", "double">;
def NN_Real : NN_RealBase;
class NN_DefaultReal<string value> : NN_RealBase {
  let defaultValue = value;
}

class NN_Init<string name, string mnem, string sum> : AttrDef<NN_Dialect, name> {
  let mnemonic = mnem;
  let summary = sum;
}

def NN_ZerosAttr : NN_Init<"Zeros", "zeros", "every element is 0">;
def NN_OnesAttr : NN_Init<"Ones", "ones", "every element is 1">;

def NN_NormalAttr : NN_Init<"Normal", "normal",
    "normal distribution around 0, optionally truncated"> {
  let description = [{
    `std` is the standard deviation. `cut`, if not zero, is the largest absolute value in units of `std`;
    larger values are drawn again. A value depends only on the seed, the name of the parameter and the index
    of the element in the full tensor (Philox4x32-10 counter, Box-Muller), never on the mesh.

    Example: `#nn.normal<std = 2.000000e-02, cut = 3.000000e+00>`
  }];
  let parameters = (ins NN_Real:$std, NN_DefaultReal<"0.0">:$cut);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_UniformAttr : NN_Init<"Uniform", "uniform",
    "uniform distribution on [-bound, bound)"> {
  let parameters = (ins NN_Real:$bound);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def NN_RotaryTableAttr : NN_Init<"RotaryTable", "rotary_table",
    "cosines and sines of rotary positions"> {
  let description = [{
    Fills an f32 buffer of shape [positions, pairs, 2] with `scale` times (cos, sin) of `position * f_i`, where
    f_i is the i-th of `pairs` frequencies in radians per position, and the first row has the position `start`.
    How frequencies follow from a base and a stretch of the context is known to the model library alone.

    Example: `#nn.rotary_table<[1.0, 1.0e-02] scale 1.5 start 8>`
  }];
  let parameters = (ins ArrayRefParameter<"::fsdp::nn::Real">:$frequencies,
      NN_DefaultReal<"1.0">:$scale,
      DefaultValuedParameter<"int64_t", "0">:$start);
  let assemblyFormat = [{
    `<` custom<Reals>($frequencies) (`scale` $scale^)? (`start` $start^)? `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

def NN_ActionAttr : AttrDef<NN_Dialect, "Action"> {
  let mnemonic = "action";
  let summary = "Runs of a program as part of a step";
  let description = [{
    The program runs `times` times, from 1 to 2^20. Each entry of the module's `nn.steps` is a step: a list of
    actions.

    Example: `#nn.action<@accumulate times 4>`
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$program, "int64_t":$times);
  let assemblyFormat = "`<` $program `times` $times `>`";
  let genVerifyDecl = 1;
}

#endif // FSDP_NN_ATTRS
