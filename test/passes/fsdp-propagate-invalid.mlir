// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-propagate

// An op without a sharding rule.
fsdp.mesh @mesh ["a" = 2]
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'nn.recompute_from' op has no sharding rule}}
  %y = nn.recompute_from %x : tensor<4xf32> -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// Parameters over data-parallel axes only belong to fsdp-shard.
fsdp.mesh @mesh ["a" = 2]
nn.parameter @w : tensor<4xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["a"]>}
func.func @f() -> tensor<2xf32> {
  // expected-error @+1 {{reads what lies at #fsdp.shard<0, ["a"]>, not at a #fsdp.placement}}
  %w = nn.read @w : tensor<2xf32>
  return %w : tensor<2xf32>
}

// -----

// One axis, whole and in parts.
fsdp.mesh @mesh ["a" = 4]
// expected-error @+1 {{places values over mesh axis "a" and over another part of it}}
func.func @f(%x: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a"}]>},
             %y: tensor<4xf32> {fsdp.placement = #fsdp.placement<[{"a":(1)2}]>}) {
  return
}
