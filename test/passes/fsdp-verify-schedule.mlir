// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect --fsdp-verify-schedule="max-in-flight=400"

// A well-formed schedule passes: 128 + 256 = 384 bytes are in flight at most.
// Nothing says what it was made of, and that is said.
// expected-warning @below {{no program has 'fsdp.outcome', which fsdp-plan writes: the schedule cannot hang, but its results were compared with nothing}}
module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @good(%s: tensor<4x8xf32> {nn.name = "s"}) -> (tensor<8x8xf32> {nn.name = "w"}) {
    %f = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    %w = fsdp.await %f : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    return %w : tensor<8x8xf32>
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @never_awaited(%s: tensor<4x8xf32> {nn.name = "s"}) {
    // expected-error @below {{'fsdp.async' op is never awaited: its buffers would never be free}}
    %f = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @awaited_twice(%s: tensor<4x8xf32> {nn.name = "s"}) {
    // expected-error @below {{is awaited more than once}}
    %f = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    // expected-note @below {{here}}
    %a = fsdp.await %f : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    // expected-note @below {{here}}
    %b = fsdp.await %f : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    return
  }
}

// -----

// Two gathers of 384 bytes each would be in flight.
module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @too_much_in_flight(%s: tensor<4x8xf32> {nn.name = "s"}) {
    %f = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    // expected-error @below {{brings the bytes in flight to 768, over the limit of 400}}
    %f2 = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    %a = fsdp.await %f : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    %b = fsdp.await %f2 : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  // expected-error @below {{a program is one block}}
  func.func @branches(%s: tensor<4x8xf32> {nn.name = "s"}) {
    "func.return"() : () -> ()
  ^other:
    return
  }
}

// -----

// A reduction that another one awaits is in flight until that is awaited, its
// result counted once: 256 + 128 bytes, then 384 + 128.
module {
  fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
  func.func @chained(%g: tensor<8x8xf32> {nn.name = "g"}) {
    %f = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
      %s = fsdp.reduce_scatter sum %g on @mesh["dp_shard"] dim 0 : tensor<8x8xf32> -> tensor<4x8xf32>
      fsdp.yield %s : tensor<4x8xf32>
    }
    // expected-error @below {{brings the bytes in flight to 512, over the limit of 400}}
    %h = fsdp.async : !fsdp.future<tensor<4x8xf32>> {
      %s = fsdp.await %f : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
      %r = fsdp.all_reduce sum %s on @mesh["dp_replicate"] : tensor<4x8xf32> -> tensor<4x8xf32>
      fsdp.yield %r : tensor<4x8xf32>
    }
    %r = fsdp.await %h : !fsdp.future<tensor<4x8xf32>> -> tensor<4x8xf32>
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @not_expanded(%s: tensor<4x8xf32> {nn.name = "s"}) {
    // expected-error @below {{'fsdp.redistribute' op is still here after fsdp-expand}}
    %w = fsdp.redistribute %s on @mesh to <[{}, {}]> : tensor<4x8xf32> -> tensor<4x8xf32>
    return
  }
}

// -----

// The await of the second link frees the first: 256 bytes are in flight in
// each of the two chains, never 512.
// expected-warning @below {{no program has 'fsdp.outcome', which fsdp-plan writes: the schedule cannot hang, but its results were compared with nothing}}
module {
  fsdp.mesh @mesh ["dp_replicate" = 2, "dp_shard" = 2]
  func.func @one_chain_after_another(%g: tensor<4x8xf32> {nn.name = "g"}) {
    %f = fsdp.async : !fsdp.future<tensor<2x8xf32>> {
      %s = fsdp.reduce_scatter sum %g on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<2x8xf32>
      fsdp.yield %s : tensor<2x8xf32>
    }
    %h = fsdp.async : !fsdp.future<tensor<2x8xf32>> {
      %s = fsdp.await %f : !fsdp.future<tensor<2x8xf32>> -> tensor<2x8xf32>
      %r = fsdp.all_reduce sum %s on @mesh["dp_replicate"] : tensor<2x8xf32> -> tensor<2x8xf32>
      fsdp.yield %r : tensor<2x8xf32>
    }
    %r = fsdp.await %h : !fsdp.future<tensor<2x8xf32>> -> tensor<2x8xf32>
    %f2 = fsdp.async : !fsdp.future<tensor<2x8xf32>> {
      %s = fsdp.reduce_scatter sum %g on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<2x8xf32>
      fsdp.yield %s : tensor<2x8xf32>
    }
    %h2 = fsdp.async : !fsdp.future<tensor<2x8xf32>> {
      %s = fsdp.await %f2 : !fsdp.future<tensor<2x8xf32>> -> tensor<2x8xf32>
      %r2 = fsdp.all_reduce sum %s on @mesh["dp_replicate"] : tensor<2x8xf32> -> tensor<2x8xf32>
      fsdp.yield %r2 : tensor<2x8xf32>
    }
    %r2 = fsdp.await %h2 : !fsdp.future<tensor<2x8xf32>> -> tensor<2x8xf32>
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @under_control_flow(%s: tensor<4x8xf32> {nn.name = "s"}) {
    memref.alloca_scope {
      // expected-error @below {{'fsdp.all_gather' op is under control flow: ranks could differ in whether they issue it}}
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
    }
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @started_elsewhere(%f: !fsdp.future<tensor<8x8xf32>>) {
    // expected-error @below {{'fsdp.await' op awaits a future that no fsdp.async of this program started}}
    %w = fsdp.await %f : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @used_otherwise(%s: tensor<4x8xf32> {nn.name = "s"}) {
    %f = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    // expected-error @below {{'test.use' op uses a future; only fsdp.await may}}
    "test.use"(%f) : (!fsdp.future<tensor<8x8xf32>>) -> ()
    return
  }
}

// -----

module {
  fsdp.mesh @mesh ["dp_shard" = 2]
  func.func @awaited_in_another_block(%s: tensor<4x8xf32> {nn.name = "s"}) {
    %f = fsdp.async : !fsdp.future<tensor<8x8xf32>> {
      %g = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<4x8xf32> -> tensor<8x8xf32>
      fsdp.yield %g : tensor<8x8xf32>
    }
    "test.if"() ({
      // expected-error @below {{'fsdp.await' op awaits a future of another block}}
      %w = fsdp.await %f : !fsdp.future<tensor<8x8xf32>> -> tensor<8x8xf32>
    }) : () -> ()
    return
  }
}
