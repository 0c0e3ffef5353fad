// RUN: fsdp-opt %s --split-input-file --fsdp-expand | FileCheck %s

// Three ranks, bf16: the shard of ceil(8 / 3) = 3 rows is cast, then gathered;
// the bf16 gradient travels as it is and 1/3 is the scale of the reduction.
// CHECK-LABEL: func.func @uneven_shards
// CHECK: %[[S:.*]] = nn.read @layers.0.wq.weight : tensor<3x8xf32>
// CHECK-NEXT: %[[C:.*]] = nn.cast %[[S]] : tensor<3x8xf32> to tensor<3x8xbf16>
// CHECK-NEXT: %[[W:.*]] = fsdp.all_gather %[[C]] on @mesh["dp_shard"] dim 0 {fsdp.parameters = ["layers.0.wq.weight"], serves = "fwd layers.0.wq"} : tensor<3x8xbf16> -> tensor<8x8xbf16>
// CHECK: nn.seed
// CHECK-NEXT: %[[D:.*]] = nn.neg %[[W]]
// CHECK-NEXT: %[[G:.*]] = fsdp.reduce_scatter sum %[[D]] on @mesh["dp_shard"] dim 0 scale 0.33333333333333331 {fsdp.parameters = ["layers.0.wq.weight"], serves = "bwd layers.0.wq"} : tensor<8x8xbf16> -> tensor<3x8xf32>
// CHECK-NEXT: nn.gradient @layers.0.wq.weight, %[[G]]
fsdp.mesh @mesh ["dp_shard" = 3]
nn.parameter @layers.0.wq.weight : tensor<8x8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @uneven_shards(%loss: tensor<f32>) -> tensor<f32> {
  %s = nn.read @layers.0.wq.weight : tensor<3x8xf32>
  %w = fsdp.redistribute %s on @mesh["dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<3x8xf32> -> tensor<8x8xbf16>
  %one = nn.seed %loss : tensor<f32>
  %d = nn.neg %w : tensor<8x8xbf16>
  %g = fsdp.redistribute %d on @mesh["dp_shard"] from #fsdp.replicated to #fsdp.shard<0, ["dp_shard"]> grad average f32 reduced : tensor<8x8xbf16> -> tensor<3x8xf32>
  nn.gradient @layers.0.wq.weight, %g : tensor<3x8xf32>
  return %one : tensor<f32>
}

// -----

// One rank: casts remain, collectives do not; in f32 nothing remains.
// CHECK-LABEL: func.func @one_rank
// CHECK: %[[S:.*]] = nn.read @w
// CHECK-NEXT: %[[W:.*]] = nn.cast %[[S]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: %[[D:.*]] = nn.neg %[[W]]
// CHECK-NEXT: %[[G:.*]] = nn.cast %[[D]] : tensor<8xbf16> to tensor<8xf32>
// CHECK-NEXT: nn.gradient @w, %[[G]]
// CHECK-NEXT: %[[T:.*]] = nn.read @w
// CHECK-NEXT: nn.gradient @w, %[[T]]
// CHECK-NEXT: return
fsdp.mesh @mesh ["dp_replicate" = 1, "dp_shard" = 1]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @one_rank() {
  %s = nn.read @w : tensor<8xf32>
  %w = fsdp.redistribute %s on @mesh["dp_replicate", "dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<8xf32> -> tensor<8xbf16>
  %d = nn.neg %w : tensor<8xbf16>
  %g = fsdp.redistribute %d on @mesh["dp_replicate", "dp_shard"] from #fsdp.replicated to #fsdp.shard<0, ["dp_shard"]> grad average f32 reduced : tensor<8xbf16> -> tensor<8xf32>
  nn.gradient @w, %g : tensor<8xf32>
  %t = nn.read @w : tensor<8xf32>
  %v = fsdp.redistribute %t on @mesh["dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<8xf32> -> tensor<8xf32>
  %h = fsdp.redistribute %v on @mesh["dp_shard"] from #fsdp.replicated to #fsdp.shard<0, ["dp_shard"]> grad average f32 reduced : tensor<8xf32> -> tensor<8xf32>
  nn.gradient @w, %h : tensor<8xf32>
  return
}

// -----

// Hybrid: gathered over the inner axis alone; the gradient is summed over it
// (scale 1), then over the outer one with the whole scale 1/8. The sum of a
// sum-reduced gradient has no scale at all.
// CHECK-LABEL: func.func @hybrid
// CHECK: %[[W:.*]] = fsdp.all_gather %{{.*}} on @mesh["dp_shard"] dim 0 {{.*}} : tensor<2xf32> -> tensor<8xf32>
// CHECK-NEXT: %[[P:.*]] = fsdp.reduce_scatter sum %[[W]] on @mesh["dp_shard"] dim 0 scale 1.000000e+00 {{.*}} : tensor<8xf32> -> tensor<2xf32>
// CHECK-NEXT: %[[G:.*]] = fsdp.all_reduce sum %[[P]] on @mesh["dp_replicate"] scale 1.250000e-01 {{.*}} : tensor<2xf32> -> tensor<2xf32>
// CHECK-NEXT: nn.gradient @w, %[[G]]
// CHECK: fsdp.all_reduce sum %{{.*}} on @mesh["dp_replicate"] scale 1.000000e+00
fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
func.func @hybrid() {
  %s = nn.read @w : tensor<2xf32>
  %w = fsdp.redistribute %s on @mesh["dp_replicate", "dp_shard"] from #fsdp.shard<0, ["dp_shard"]> to #fsdp.replicated grad average f32 : tensor<2xf32> -> tensor<8xf32>
  %g = fsdp.redistribute %w on @mesh["dp_replicate", "dp_shard"] from #fsdp.replicated to #fsdp.shard<0, ["dp_shard"]> grad average f32 reduced : tensor<8xf32> -> tensor<2xf32>
  nn.gradient @w, %g : tensor<2xf32>
  %h = fsdp.redistribute %w on @mesh["dp_replicate", "dp_shard"] from #fsdp.replicated to #fsdp.shard<0, ["dp_shard"]> grad sum f32 reduced : tensor<8xf32> -> tensor<2xf32>
  nn.gradient @w, %h : tensor<2xf32>
  return
}

// -----

// Replicated: a cast forward, an all-reduce over all axes back. With grad_dtype
// bf16 an f32 gradient is rounded before it travels.
// CHECK-LABEL: func.func @replicated
// CHECK: %[[S:.*]] = nn.read @w
// CHECK-NEXT: %[[W:.*]] = nn.cast %[[S]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: %[[G:.*]] = fsdp.all_reduce sum %[[W]] on @mesh["dp_replicate", "dp_shard"] scale 1.250000e-01 {{.*}} : tensor<8xbf16> -> tensor<8xf32>
// CHECK: %[[N:.*]] = nn.cast %[[S]] : tensor<8xf32> to tensor<8xbf16>
// CHECK-NEXT: fsdp.all_reduce sum %[[N]]
fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 4]
nn.parameter @w : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.replicated}
func.func @replicated() {
  %s = nn.read @w : tensor<8xf32>
  %w = fsdp.redistribute %s on @mesh["dp_replicate", "dp_shard"] from #fsdp.replicated to #fsdp.replicated grad average f32 : tensor<8xf32> -> tensor<8xbf16>
  %g = fsdp.redistribute %w on @mesh["dp_replicate", "dp_shard"] from #fsdp.replicated to #fsdp.replicated grad average f32 reduced : tensor<8xbf16> -> tensor<8xf32>
  nn.gradient @w, %g : tensor<8xf32>
  %h = fsdp.redistribute %s on @mesh["dp_replicate", "dp_shard"] from #fsdp.replicated to #fsdp.replicated grad average bf16 reduced : tensor<8xf32> -> tensor<8xf32>
  nn.gradient @w, %h : tensor<8xf32>
  return
}
