// RUN: fsdp-opt %s | fsdp-opt | FileCheck %s
// RUN: fsdp-opt %s --mlir-print-op-generic | fsdp-opt | FileCheck %s
fsdp.mesh @mesh ["dp_shard" = 4]
nn.parameter @a : tensor<16x8xf32> init #nn.zeros

// Decisions: what is as it is by itself is not written; names may be strings.
// CHECK-LABEL: func.func @decisions
// CHECK: fsdp.all_gather {{.*}}{fsdp.decision = #fsdp.decision<bucket = "layers.\22*\22", merge = false, prefetch = 2, start_after = "fwd silu", recompute = true, again = <prefetch = 1>>, fsdp.parameters = [@a]}
// CHECK: fsdp.all_reduce {{.*}}{fsdp.decision = #fsdp.decision<overlap = true, defer = 9223372036854775807, await_before = "bwd sum">}
// CHECK: nn.silu {{.*}}{fsdp.decision = #fsdp.decision<>}
// CHECK: nn.silu {{.*}}{fsdp.decision = #fsdp.decision<recompute = true>}
func.func @decisions(%x: tensor<4x8xf32>) {
  %0 = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@a], fsdp.decision = #fsdp.decision<again = <"prefetch" = 1>, recompute = true, start_after = "fwd silu", overlap = false, merge = false, prefetch = 2, bucket = "layers.\22*\22">} : tensor<4x8xf32> -> tensor<16x8xf32>
  %1 = fsdp.all_reduce sum %x on @mesh["dp_shard"] {fsdp.decision = #fsdp.decision<overlap = true, defer = 9223372036854775807, await_before = "bwd sum">} : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = nn.silu %x {fsdp.decision = #fsdp.decision<merge = true>} : tensor<4x8xf32>
  %3 = nn.silu %2 {fsdp.decision = #fsdp.decision<recompute = true>} : tensor<4x8xf32>
  return
}
