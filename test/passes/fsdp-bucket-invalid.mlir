// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --fsdp-bucket

// A plan is applied, not made.
// expected-error @below {{the module has no plan; run fsdp-plan first}}
module {
}

// -----

// expected-error @below {{fsdp.plan[0]: 'match' must be an array of strings}}
module attributes {fsdp.plan = [{bucket = "all"}]} {
}

// -----

// A reduction waits for the bucket's last member, so that nothing may use it
// before.
module attributes {fsdp.plan = [{match = ["* {v,w} {all_gather,reduce_scatter,all_reduce}"], bucket = "all", merge = true, overlap = false, prefetch = 1, defer = 1, recompute = true}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @v : tensor<8xf32> init #nn.zeros
  nn.parameter @w : tensor<8xf32> init #nn.zeros
  func.func @f(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<4xf32> {nn.name = "y"}) {
    // expected-error @below {{'fsdp.reduce_scatter' op cannot join its bucket: its result is used before the bucket's last member}}
    %v = fsdp.reduce_scatter sum %x on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@v]} : tensor<8xf32> -> tensor<4xf32>
    // expected-note @below {{used here}}
    %y = nn.neg %v : tensor<4xf32>
    // expected-note @below {{the last member}}
    %w = fsdp.reduce_scatter sum %x on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@w]} : tensor<8xf32> -> tensor<4xf32>
    return %y : tensor<4xf32>
  }
}

// -----

// The last member reads what another one gives.
module attributes {fsdp.plan = [{match = ["* {u,v,w} {all_gather,reduce_scatter,all_reduce}"], bucket = "all", merge = true, overlap = false, prefetch = 1, defer = 1, recompute = true}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @v : tensor<8xf32> init #nn.zeros
  nn.parameter @w : tensor<8xf32> init #nn.zeros
  func.func @f(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<8xf32> {nn.name = "y"}) {
    // expected-error @below {{'fsdp.all_reduce' op cannot join its bucket: its result is used before the bucket's last member}}
    %v = fsdp.all_reduce sum %x on @mesh["dp_shard"] {fsdp.parameters = [@v]} : tensor<8xf32> -> tensor<8xf32>
    // expected-note @below {{used here}}
    // expected-note @below {{the last member}}
    %w = fsdp.all_reduce sum %v on @mesh["dp_shard"] {fsdp.parameters = [@w]} : tensor<8xf32> -> tensor<8xf32>
    return %w : tensor<8xf32>
  }
}

// -----

// Another one than the last does.
module attributes {fsdp.plan = [{match = ["* {u,v,w} {all_gather,reduce_scatter,all_reduce}"], bucket = "all", merge = true, overlap = false, prefetch = 1, defer = 1, recompute = true}]} {
  fsdp.mesh @mesh ["dp_shard" = 2]
  nn.parameter @u : tensor<8xf32> init #nn.zeros
  nn.parameter @v : tensor<8xf32> init #nn.zeros
  nn.parameter @w : tensor<8xf32> init #nn.zeros
  func.func @f(%x: tensor<8xf32> {nn.name = "x"}) -> (tensor<8xf32> {nn.name = "y"}, tensor<8xf32> {nn.name = "z"}) {
    %u = fsdp.all_reduce sum %x on @mesh["dp_shard"] {fsdp.parameters = [@u]} : tensor<8xf32> -> tensor<8xf32>
    // expected-error @below {{'fsdp.all_reduce' op cannot join its bucket: it reduces what another member gives; put it into another bucket of the plan}}
    %v = fsdp.all_reduce sum %u on @mesh["dp_shard"] {fsdp.parameters = [@v]} : tensor<8xf32> -> tensor<8xf32>
    %w = fsdp.all_reduce sum %x on @mesh["dp_shard"] {fsdp.parameters = [@w]} : tensor<8xf32> -> tensor<8xf32>
    return %v, %w : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// Members of a bucket start and end together, so one decision is for all.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @v : tensor<8xf32> init #nn.zeros
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @f(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<8xf32> {nn.name = "y"}) {
  // expected-note @below {{the first member has #fsdp.decision<bucket = "all", overlap = true, prefetch = 1>}}
  %v = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "all", overlap = true, prefetch = 1>, fsdp.origin = #fsdp.origin<"fwd v all_gather">, fsdp.parameters = [@v]} : tensor<4xf32> -> tensor<8xf32>
  // expected-error @below {{is in the bucket 'all' with another decision than its first member; make their 'fsdp.decision' equal, or put one of them into another bucket}}
  // expected-note @below {{this one has #fsdp.decision<bucket = "all", overlap = true, prefetch = 2>}}
  %w = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "all", overlap = true, prefetch = 2>, fsdp.origin = #fsdp.origin<"fwd w all_gather">, fsdp.parameters = [@w]} : tensor<4xf32> -> tensor<8xf32>
  %y = nn.add %v, %w : tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

// Whether they merge is a part of it.
fsdp.mesh @mesh ["dp_shard" = 2]
nn.parameter @v : tensor<8xf32> init #nn.zeros
nn.parameter @w : tensor<8xf32> init #nn.zeros
func.func @f(%x: tensor<4xf32> {nn.name = "x"}) -> (tensor<8xf32> {nn.name = "y"}) {
  // expected-note @below {{the first member has}}
  %v = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "all">, fsdp.origin = #fsdp.origin<"fwd v all_gather">, fsdp.parameters = [@v]} : tensor<4xf32> -> tensor<8xf32>
  // expected-error @below {{is in the bucket 'all' with another decision}}
  // expected-note @below {{this one has}}
  %w = fsdp.all_gather %x on @mesh["dp_shard"] dim 0 {fsdp.decision = #fsdp.decision<bucket = "all", merge = false>, fsdp.origin = #fsdp.origin<"fwd w all_gather">, fsdp.parameters = [@w]} : tensor<4xf32> -> tensor<8xf32>
  %y = nn.add %v, %w : tensor<8xf32>
  return %y : tensor<8xf32>
}
