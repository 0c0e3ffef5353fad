// RUN: fsdp-opt %s --canonicalize --cse --canonicalize | FileCheck %s

fsdp.mesh @mesh ["dp_shard" = 4]

// Two gathers of one shard survive CSE: the second is the gather of the
// backward pass, and merging them would keep the parameter in memory between.
// CHECK-LABEL: func.func @equal_gathers_stay_two
// CHECK: %[[A:.*]] = fsdp.all_gather
// CHECK: %[[B:.*]] = fsdp.all_gather
// CHECK: return %[[A]], %[[B]]
func.func @equal_gathers_stay_two(%s: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %a = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<8xf32>
  %b = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// Collectives and futures that nobody uses are erased.
// CHECK-LABEL: func.func @dead_ops_go
// CHECK-NEXT: return
func.func @dead_ops_go(%s: tensor<2xf32>) {
  %a = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<8xf32>
  %b = fsdp.reduce_scatter sum %a on @mesh["dp_shard"] dim 0 : tensor<8xf32> -> tensor<2xf32>
  %c = fsdp.all_reduce sum %b on @mesh["dp_shard"] : tensor<2xf32> -> tensor<2xf32>
  %d = fsdp.redistribute %s on @mesh to <[{}]> : tensor<2xf32> -> tensor<2xf32>
  %f = fsdp.async : !fsdp.future<tensor<8xf32>> {
    %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<8xf32>
    fsdp.yield %g : tensor<8xf32>
  }
  return
}

// The body of a future that is awaited stays whole, and two equal ones stay two.
// CHECK-LABEL: func.func @awaited_futures_stay
// CHECK-COUNT-2: fsdp.all_gather
func.func @awaited_futures_stay(%s: tensor<2xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %f = fsdp.async : !fsdp.future<tensor<8xf32>> {
    %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<8xf32>
    fsdp.yield %g : tensor<8xf32>
  }
  %h = fsdp.async : !fsdp.future<tensor<8xf32>> {
    %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<2xf32> -> tensor<8xf32>
    fsdp.yield %g : tensor<8xf32>
  }
  %a = fsdp.await %f : !fsdp.future<tensor<8xf32>> -> tensor<8xf32>
  %b = fsdp.await %h : !fsdp.future<tensor<8xf32>> -> tensor<8xf32>
  return %a, %b : tensor<8xf32>, tensor<8xf32>
}

// A redistribute to where a tensor lies is no identity: its reverse rule sums
// over the ranks, so it does not fold.
// CHECK-LABEL: func.func @replicated_redistribute_stays
// CHECK: fsdp.redistribute
func.func @replicated_redistribute_stays(%s: tensor<8xf32>) -> tensor<8xf32> {
  %w = fsdp.redistribute %s on @mesh to <[{}]> : tensor<8xf32> -> tensor<8xf32>
  return %w : tensor<8xf32>
}
