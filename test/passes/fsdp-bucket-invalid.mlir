// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-bucket

// What is read between two members would have to wait for the last one.
module attributes {fsdp.plan = [
    {name = "layers.0", parameters = ["layers.0.a.weight", "layers.0.b.weight"], bucket = true, reshard_after_forward = true, overlap = false, forward_prefetch = 1, backward_prefetch = 1, reduce_defer = 1}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @layers.0.a.weight : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
  nn.parameter @layers.0.b.weight : tensor<8xf32> init #nn.zeros {fsdp.placement = #fsdp.shard<0, ["dp_shard"]>}
  func.func @train(%a: tensor<8xf32> {nn.name = "a"}, %b: tensor<8xf32> {nn.name = "b"}) {
    // expected-error @below {{cannot join its bucket: its result is used before the bucket's last member}}
    %r0 = fsdp.reduce_scatter sum %a on @mesh["dp_shard"] dim 0 scale 5.0e-01 {fsdp.parameters = ["layers.0.a.weight"]} : tensor<8xf32> -> tensor<4xf32>
    // expected-note @below {{used here}}
    %n = nn.neg %r0 : tensor<4xf32>
    nn.gradient @layers.0.a.weight, %n : tensor<4xf32>
    // expected-note @below {{the last member}}
    %r1 = fsdp.reduce_scatter sum %b on @mesh["dp_shard"] dim 0 scale 5.0e-01 {fsdp.parameters = ["layers.0.b.weight"]} : tensor<8xf32> -> tensor<4xf32>
    nn.gradient @layers.0.b.weight, %r1 : tensor<4xf32>
    return
  }
}
