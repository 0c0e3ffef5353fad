//===- ExecLayerOps.td - Matrix products, attention, heads --*- tablegen -*-===//
//
// Records of operations of the runtime, as in ExecRuntimeOps.td.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_EXEC_LAYER_OPS
#define FSDP_EXEC_LAYER_OPS

include "dialects/Exec/ExecRuntimeBase.td"
include "dialects/NN/NNAttrs.td"

//===----------------------------------------------------------------------===//
// Matrix products
//===----------------------------------------------------------------------===//

def Exec_GemmOp : Exec_RuntimeOp<"gemm", "gemm",
    [Buf<"lhs", "T", "*">, Buf<"rhs", "T", "*">, OptionalBuf<"bias", "T", "*">],
    [Buf<"out", "float", "*">]> {
  let summary = "Matrix product by the library";
  let prose = [{
    `out = op(lhs) op(rhs) (+ bias)`, where op transposes the last two dimensions if `transpose_lhs` /
    `transpose_rhs` is set. Leading dimensions are batches. Accumulated in f32, rounded once. The workspace is
    scratch for the library; the compiler sizes it for the target.

    Example:
    ```mlir
    exec.gemm on compute (%x, %w : memref<8x4xf32>, memref<16x4xf32>) outs(%y : memref<8x16xf32>)
        workspace(%s : memref<640xi8>) {transpose_rhs}
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. shapes agree
    as for nn.matmul; 7. a bias has shape [columns].
  }];
  let params = (ins UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let callArguments = [Exec_Index<"getDescriptor()">];
  let workspaceBytes = "sizes.gemmWorkspaceBytes(getDescriptor())";
  let hasVerifier = 1;
  let declarations = [{
    /// `workspace` is what the op has.
    ::fsdp::rt::GemmDesc getDescriptor();
  }];
}

defvar gemmSum = Buf<"sum", "f32", "*">;

def Exec_GemmAddOp : Exec_RuntimeOp<"gemm_add", "gemmAdd",
    [Buf<"lhs", "T", "*">, Buf<"rhs", "T", "*">, gemmSum], [Updated<gemmSum>]> {
  let summary = "Adds a matrix product to a sum in f32, in place";
  let prose = [{
    `sum += op(lhs) op(rhs)`, otherwise as exec.gemm. The sum is both an input and the output.

    Example:
    ```mlir
    exec.gemm_add on compute (%d, %x, %s : memref<4x16xbf16>, memref<4x8xbf16>, memref<16x8xf32>)
        outs(%s : memref<16x8xf32>) {transpose_lhs}
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. shapes agree
    as for nn.matmul.
  }];
  let params = (ins UnitAttr:$transpose_lhs, UnitAttr:$transpose_rhs);
  let callArguments = [Exec_Index<"getDescriptor()">];
  let workspaceBytes = "sizes.gemmWorkspaceBytes(getDescriptor())";
  let hasVerifier = 1;
  let declarations = [{
    /// `workspace` is what the op has.
    ::fsdp::rt::GemmDesc getDescriptor();
  }];
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

defvar attentionQuery = "batch qLen heads headDim";
defvar attentionKey = "batch kvLen kvHeads headDim";
defvar attentionLse = "batch heads qLen";
defvar attentionStarts = "batch qLen";
defvar attentionParams = (ins F64Attr:$scale, UnitAttr:$causal, OptionalAttr<I64Attr>:$window,
    OptionalAttr<F64Attr>:$cap, UnitAttr:$plain);
defvar attentionDescriptor = [{
    /// Without a window that hides nothing.
    ::fsdp::rt::AttentionDesc getDescriptor();
}];

def Exec_AttentionOp : Exec_RuntimeOp<"attention", "attention",
    [Buf<"q", "T", attentionQuery>, Buf<"k", "T", attentionKey>, Buf<"v", "T", attentionKey>,
     OptionalBuf<"starts", "i32", attentionStarts>],
    [Buf<"out", "T", attentionQuery>, Buf<"lse", "f32", attentionLse>]> {
  let summary = "Attention with the logarithm of every row's sum of exponentials";
  let prose = [{
    See nn.attention, also for `starts`, `causal`, `window` and `cap`. With `plain` it is the reference attention of the
    runtime, which produces the same bits on every target, instead of the library's attention.

    Example:
    ```mlir
    exec.attention on compute
        (%q, %k, %v : memref<2x256x16x64xf32>, memref<2x256x8x64xf32>, memref<2x256x8x64xf32>)
        outs(%o, %lse : memref<2x256x16x64xf32>, memref<2x16x256xf32>) workspace(%s : memref<65536xi8>)
        {causal, scale = 1.25e-01 : f64}
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. `heads` is a
    multiple of `kvHeads`; 7. `window` needs `causal` and equal lengths, and is at least 1; 8. `cap` is
    positive and finite; 9. `starts` needs `causal`.
  }];
  let lowersFrom = "nn.attention";
  let params = attentionParams;
  let callArguments = [Exec_Index<"getDescriptor()">];
  let workspaceBytes = "sizes.attentionWorkspaceBytes(getDescriptor())";
  let hasVerifier = 1;
  let declarations = attentionDescriptor;
}

def Exec_AttentionGradOp : Exec_RuntimeOp<"attention_grad", "attentionGrad",
    [Buf<"q", "T", attentionQuery>, Buf<"k", "T", attentionKey>, Buf<"v", "T", attentionKey>,
     Buf<"out", "T", attentionQuery>, Buf<"lse", "f32", attentionLse>, Buf<"dout", "T", attentionQuery>,
     OptionalBuf<"starts", "i32", attentionStarts>],
    [Buf<"dq", "T", attentionQuery>, Buf<"dk", "T", attentionKey>, Buf<"dv", "T", attentionKey>]> {
  let summary = "Gradients of attention";
  let prose = [{
    See nn.attention_grad. With `fast` the library adds in no fixed order: in less workspace, and runs do not repeat
    to the bit.

    Example:
    ```mlir
    exec.attention_grad on compute
        (%q, %k, %v, %o, %lse, %do : memref<1x8x4x16xf32>, memref<1x8x2x16xf32>, memref<1x8x2x16xf32>, memref<1x8x4x16xf32>, memref<1x4x8xf32>, memref<1x8x4x16xf32>)
        outs(%dq, %dk, %dv : memref<1x8x4x16xf32>, memref<1x8x2x16xf32>, memref<1x8x2x16xf32>)
        workspace(%s : memref<8192xi8>) {causal, scale = 2.5e-01 : f64}
    ```

    Constraints: 1. – 9. as of exec.attention; 10. `fast` and `plain` exclude each other.
  }];
  let lowersFrom = "nn.attention_grad";
  let params = !con(attentionParams, (ins UnitAttr:$fast));
  let callArguments = [Exec_Index<"getDescriptor()">];
  let workspaceBytes = "sizes.attentionGradWorkspaceBytes(getDescriptor())";
  let hasVerifier = 1;
  let declarations = attentionDescriptor;
}

def Exec_RotaryOp : Exec_RuntimeOp<"rotary", "rotary",
    [Buf<"x", "T", "batch sequence heads headDim">, Buf<"table", "f32", ">=sequence headDim/2 2">],
    [Buf<"y", "T", "batch sequence heads headDim">]> {
  let summary = "Rotates pairs of every head by its position";
  let prose = [{
    See nn.rotary.

    Example:
    ```mlir
    exec.rotary on compute (%x, %t : memref<1x8x4x16xf32>, memref<32x8x2xf32>) outs(%y : memref<1x8x4x16xf32>)
        pairs halves {inverse}
    ```

    Constraints: 1. – 5. as of every operation of the runtime.
  }];
  let lowersFrom = "nn.rotary";
  let params = (ins NN_RotaryPairsAttr:$pairs, UnitAttr:$inverse);
  let formatOfParams = "`pairs` `` $pairs";
  let callArguments = [Exec_ElementOf<"x">, Exec_Size<"batch">, Exec_Size<"sequence">,
      Exec_Size<"heads">, Exec_Size<"headDim">,
      Exec_Bool<"halves", "getPairs() == ::fsdp::nn::RotaryPairs::Halves">,
      Exec_Bool<"inverse", "getInverse()">];
}

defvar allHeads = "batch sequence allHeads headDim";
defvar queryHeads = "batch sequence heads headDim";
defvar keyHeads = "batch sequence kvHeads headDim";
defvar rotaryTable = Buf<"table", "f32", ">=sequence headDim/2 2">;

class Exec_HeadsOp<string mnemonic, string function, list<Exec_BufferSpec> inputs, list<Exec_BufferSpec> outputs>
    : Exec_RuntimeOp<mnemonic, function, inputs, outputs> {
  let lowersFrom = "nn." # mnemonic;
  let params = (ins NN_RotaryPairsAttr:$pairs);
  let formatOfParams = "`pairs` `` $pairs";
  let callArguments = [Exec_ElementOf<"x">, Exec_Size<"batch">, Exec_Size<"sequence">,
      Exec_Size<"heads">, Exec_Size<"kvHeads">, Exec_Size<"headDim">,
      Exec_Bool<"halves", "getPairs() == ::fsdp::nn::RotaryPairs::Halves">];
  let hasVerifier = 1;
}

def Exec_SplitHeadsOp : Exec_HeadsOp<"split_heads", "splitHeads",
    [Buf<"x", "T", allHeads>, rotaryTable],
    [Buf<"q", "T", queryHeads>, Buf<"k", "T", keyHeads>, Buf<"v", "T", keyHeads>]> {
  let summary = "Takes query, key and value heads apart and rotates the first two";
  let prose = [{
    See nn.split_heads.

    Example:
    ```mlir
    exec.split_heads on compute (%x, %t : memref<1x8x8x16xf32>, memref<32x8x2xf32>)
        outs(%q, %k, %v : memref<1x8x4x16xf32>, memref<1x8x2x16xf32>, memref<1x8x2x16xf32>) pairs adjacent
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. the heads of the parts add up.
  }];
}

def Exec_JoinHeadsOp : Exec_HeadsOp<"join_heads", "joinHeads",
    [Buf<"q", "T", queryHeads>, Buf<"k", "T", keyHeads>, Buf<"v", "T", keyHeads>, rotaryTable],
    [Buf<"x", "T", allHeads>]> {
  let summary = "Rotates query and key heads back and puts all heads side by side";
  let prose = [{
    See nn.join_heads.

    Example:
    ```mlir
    exec.join_heads on compute
        (%q, %k, %v, %t : memref<1x8x4x16xf32>, memref<1x8x2x16xf32>, memref<1x8x2x16xf32>, memref<32x8x2xf32>)
        outs(%x : memref<1x8x8x16xf32>) pairs adjacent
    ```

    Constraints: 1. – 5. as of every operation of the runtime; 6. the heads of the parts add up.
  }];
}

#endif // FSDP_EXEC_LAYER_OPS
