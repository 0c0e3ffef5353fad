//===- NNFusionOps.td - Chains that become one kernel ---------*- tablegen -*-===//
#ifndef FSDP_NN_FUSION_OPS
#define FSDP_NN_FUSION_OPS

include "dialects/NN/NNBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

def NN_FusionOp : NN_Op<"fusion", [IsolatedFromAbove, Pure, SingleBlock,
    SingleBlockImplicitTerminator<"YieldOp">]> {
  let summary = "Several nn ops that become one kernel";
  let description = [{
    `nn-fuse` creates it. The body holds ops of KernelOpInterface that share one iteration space. Block
    arguments stand for the operands, and nn.yield names the results. Every op still rounds to its declared
    type.

    Sums over the rows of the space may be among them. The kernel then gives one sum for each block of 32 rows,
    and a second one adds these, in the order of a sum that has a kernel of its own.

    Example:
    ```mlir
    %h, %y = nn.fusion (%x, %r) : (tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    ^bb0(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>):
      %s = nn.add %a, %b : tensor<4x8xf32>
      %t = nn.silu %s : tensor<4x8xf32>
      nn.yield %s, %t : tensor<4x8xf32>, tensor<4x8xf32>
    }
    ```

    Constraints: 1. block arguments match the operands, nn.yield the results; 2. every op in the body implements
    KernelOpInterface; 3. all ops have one iteration space; 4. sums over its rows are of whole blocks of 32, and
    no op of the fusion reads them; 5. there is an op.
  }];
  let arguments = (ins Variadic<NN_AnyTensor>:$inputs);
  let results = (outs Variadic<NN_AnyTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $results) $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Of its ops; not a reduction over rows where one of them is none.
    KernelSpace getKernelSpace();
  }];
}

def NN_YieldOp : NN_Op<"yield", [Pure, Terminator, ReturnLike, HasParent<"FusionOp">]> {
  let summary = "The results of an nn.fusion";
  let description = [{
    Example:
    ```mlir
    %y = nn.fusion (%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
    ^bb0(%a: tensor<4x8xf32>):
      %b = nn.exp %a : tensor<4x8xf32>
      nn.yield %b : tensor<4x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<NN_AnyTensor>:$values);
  let assemblyFormat = "attr-dict ($values^ `:` type($values))?";
  let builders = [OpBuilder<(ins), "">];
}

#endif // FSDP_NN_FUSION_OPS
