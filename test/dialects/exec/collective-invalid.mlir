// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// -----

// collective 1: the mesh
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{refers to @mesh, which is no fsdp.mesh}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// collective 1: an axis twice
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names axis #fsdp.axis_ref<"dp_shard"> twice}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard", "dp_shard"]
}

// -----

// collective 1: an axis and a part of it
fsdp.mesh @mesh ["dp_shard" = 4]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names #fsdp.axis_ref<"dp_shard"> and #fsdp.axis_ref<"dp_shard", 2, 2>, which share ranks of an axis}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard", "dp_shard":(2)2]
}

// -----

// collective 1: sub-axes that share ranks: 2 x 2 x 2 has the middle twice
fsdp.mesh @mesh ["dp_shard" = 8]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names #fsdp.axis_ref<"dp_shard", 2, 4> and #fsdp.axis_ref<"dp_shard", 1, 4>, which share ranks of an axis}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard":(2)4, "dp_shard":(1)4]
}

// -----

// collective 1: no one split of 12 ranks has both sub-axes
fsdp.mesh @mesh ["dp_shard" = 12]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{names #fsdp.axis_ref<"dp_shard", 1, 2> and #fsdp.axis_ref<"dp_shard", 3, 2>, which share ranks of an axis}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard":(1)2, "dp_shard":(3)2]
}

// -----

// collective 1: more axes than a reduction's tree has; those of one rank are none
fsdp.mesh @mesh ["a" = 2, "b" = 2, "c" = 2, "d" = 2, "e" = 2, "f" = 2, "g" = 2, "h" = 2, "one" = 1, "i" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %w = exec.alloc : memref<1020xi8>
  exec.collective all_reduce on reduce (%a : memref<4xf32>) outs(%a : memref<4xf32>)
      workspace(%w : memref<1020xi8>) over @mesh["a", "b", "c", "d", "e", "f", "g", "h", "one"]
  // expected-error @below {{goes over 9 axes of mesh @mesh; at most 8 are possible}}
  exec.collective all_reduce on reduce (%a : memref<4xf32>) outs(%a : memref<4xf32>)
      workspace(%w : memref<1020xi8>) over @mesh["a", "b", "c", "d", "e", "f", "g", "h", "i"]
}

// -----

// collective 1: the axis
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{refers to #fsdp.axis_ref<"tp">, which mesh @mesh lacks}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["tp"]
}

// -----

// collective 2
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{does not have 2 outputs, but (out...)}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%a, %a : memref<4xf32>, memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// collective 3
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{all_reduce takes 1 workspaces, but has 0}}
  exec.collective all_reduce on reduce (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// collective 4: a gather, of whole pieces and of one type
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %b = exec.alloc : memref<6xf32>
  // expected-error @below {{all_gather over 2 ranks cannot produce output 0 ('memref<6xf32>') from 'memref<4xf32>'}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%b : memref<6xf32>) over @mesh["dp_shard"]
}

// -----

// collective 5: a gather changes no type
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xbf16>
  %b = exec.alloc : memref<8xf32>
  // expected-error @below {{all_gather cannot produce 'f32' from 'bf16'}}
  exec.collective all_gather on gather (%a : memref<4xbf16>) outs(%b : memref<8xf32>) over @mesh["dp_shard"]
}

// -----

// collective 4: a scatter that would lose the last element
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<5xf32>
  %b = exec.alloc : memref<2xf32>
  %s = exec.alloc : memref<64xi8>
  // expected-error @below {{reduce_scatter over 2 ranks cannot produce output 0}}
  exec.collective reduce_scatter on reduce (%a : memref<5xf32>) outs(%b : memref<2xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 4: an all_reduce changes no size
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<5xf32>
  %b = exec.alloc : memref<4xf32>
  %s = exec.alloc : memref<64xi8>
  // expected-error @below {{all_reduce over 2 ranks cannot produce output 0}}
  exec.collective all_reduce on reduce (%a : memref<5xf32>) outs(%b : memref<4xf32>) workspace(%s : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 3: a gather has no scratch
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<8xf32>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{of kind all_gather takes 0 workspaces, but has 1}}
  exec.collective all_gather on reduce (%0 : memref<4xf32>) outs(%1 : memref<8xf32>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 3: bytes
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<64xf32>
  // expected-error @below {{needs a workspace of bytes}}
  exec.collective all_reduce on reduce (%0 : memref<4xf32>) outs(%1 : memref<4xf32>) workspace(%2 : memref<64xf32>) over @mesh["dp_shard"]
}

// -----

// collective 4: a gather of elements that add up in another shape
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4x4xf32>
  %1 = exec.alloc : memref<4x8xf32>
  // expected-error @below {{all_gather over 2 ranks cannot produce output 0 ('memref<4x8xf32>') from 'memref<4x4xf32>'}}
  exec.collective all_gather on reduce (%0 : memref<4x4xf32>) outs(%1 : memref<4x8xf32>) over @mesh["dp_shard"]
}

// -----

// collective 4: a scatter of 5 rows gives 3, not 4
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<5x2xf32>
  %1 = exec.alloc : memref<4x2xf32>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{reduce_scatter over 2 ranks cannot produce output 0 ('memref<4x2xf32>') from 'memref<5x2xf32>'}}
  exec.collective reduce_scatter on reduce (%0 : memref<5x2xf32>) outs(%1 : memref<4x2xf32>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 4: a scatter of other columns
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<6x4xf32>
  %1 = exec.alloc : memref<4x3xf32>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{reduce_scatter over 2 ranks cannot produce output 0 ('memref<4x3xf32>') from 'memref<6x4xf32>'}}
  exec.collective reduce_scatter on reduce (%0 : memref<6x4xf32>) outs(%1 : memref<4x3xf32>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 4: an all_reduce of another shape
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<2x2xf32>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{all_reduce over 2 ranks cannot produce output 0 ('memref<2x2xf32>') from 'memref<4xf32>'}}
  exec.collective all_reduce on reduce (%0 : memref<4xf32>) outs(%1 : memref<2x2xf32>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 4: the second tensor of a bucket
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<5xf32>
  %2 = exec.alloc : memref<8xf32>
  %3 = exec.alloc : memref<8xf32>
  // expected-error @below {{all_gather over 2 ranks cannot produce output 1 ('memref<8xf32>') from 'memref<5xf32>'}}
  exec.collective all_gather on reduce (%0, %1 : memref<4xf32>, memref<5xf32>) outs(%2, %3 : memref<8xf32>, memref<8xf32>) over @mesh["dp_shard"]
}

// -----

// collective 5: a sum in bf16
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xbf16>
  %1 = exec.alloc : memref<4xbf16>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{all_reduce by sum cannot produce 'bf16' from 'bf16'}}
  exec.collective all_reduce on reduce (%0 : memref<4xbf16>) outs(%1 : memref<4xbf16>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"]
}

// -----

// collective 5: a maximum of bf16
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xbf16>
  %1 = exec.alloc : memref<4xf32>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{all_reduce by max cannot produce 'f32' from 'bf16'}}
  exec.collective all_reduce on reduce (%0 : memref<4xbf16>) outs(%1 : memref<4xf32>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"] {reduce = #exec<reduce_kind max>}
}

// -----

// collective 5: a maximum of integers
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xi64>
  %1 = exec.alloc : memref<4xi64>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{all_reduce by max cannot produce 'i64' from 'i64'}}
  exec.collective all_reduce on reduce (%0 : memref<4xi64>) outs(%1 : memref<4xi64>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"] {reduce = #exec<reduce_kind max>}
}

// -----

// collective 6
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<4xbf16>
  %2 = exec.alloc : memref<8xf32>
  %3 = exec.alloc : memref<8xbf16>
  // expected-error @below {{moves 'f32' and produces 'f32', but tensor 1 is 'memref<4xbf16>' and 'memref<8xbf16>'}}
  exec.collective all_gather on reduce (%0, %1 : memref<4xf32>, memref<4xbf16>) outs(%2, %3 : memref<8xf32>, memref<8xbf16>) over @mesh["dp_shard"]
}

// -----

// collective 7: a maximum
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<0xi8>
  // expected-error @below {{cannot be fast: the library only adds values of the result's type}}
  exec.collective all_reduce on reduce (%0 : memref<4xf32>) outs(%0 : memref<4xf32>) workspace(%1 : memref<0xi8>) over @mesh["dp_shard"] {fast, reduce = #exec<reduce_kind max>}
}

// -----

// collective 7: another type
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xbf16>
  %1 = exec.alloc : memref<2xf32>
  %2 = exec.alloc : memref<0xi8>
  // expected-error @below {{cannot be fast}}
  exec.collective reduce_scatter on reduce (%0 : memref<4xbf16>) outs(%1 : memref<2xf32>) workspace(%2 : memref<0xi8>) over @mesh["dp_shard"] {fast}
}

// -----

// collective 8: it scales nothing
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<2xf32>
  %2 = exec.alloc : memref<64xi8>
  // expected-error @below {{does not scale; multiply its result}}
  exec.collective reduce_scatter on reduce (%0 : memref<4xf32>) outs(%1 : memref<2xf32>) workspace(%2 : memref<64xi8>) over @mesh["dp_shard"] {scale = 5.0e-01}
}

// -----

// collective 7: a gather
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %0 = exec.alloc : memref<4xf32>
  %1 = exec.alloc : memref<8xf32>
  // expected-error @below {{cannot be fast}}
  exec.collective all_gather on gather (%0 : memref<4xf32>) outs(%1 : memref<8xf32>) over @mesh["dp_shard"] {fast}
}

// -----

// collective 9
fsdp.mesh @mesh ["dp_shard" = 4]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  // expected-error @below {{'exec.collective' op of kind all_to_all has no function in the runtime}}
  exec.collective all_to_all on gather (%a : memref<4xf32>) outs(%a : memref<4xf32>) over @mesh["dp_shard"]
}

// -----

// What a collective serves has no op.
fsdp.mesh @mesh ["dp_shard" = 2]
exec.program @p {
  %a = exec.alloc : memref<4xf32>
  %b = exec.alloc : memref<8xf32>
  // expected-error @+1 {{attribute 'serves' failed to satisfy constraint: a #fsdp.origin of all of a path, without an op}}
  exec.collective all_gather on gather (%a : memref<4xf32>) outs(%b : memref<8xf32>) over @mesh["dp_shard"] {serves = #fsdp.origin<"fwd layers.3 all_gather">}
}

// -----

// collective 10: ranks of a node that are not the mesh's
fsdp.mesh @mesh ["dp" = 8] {node_size = 4 : i64}
exec.program @p {
  %a = exec.alloc : memref<8xf32>
  %b = exec.alloc : memref<1xf32>
  %w = exec.alloc : memref<64xi8>
  // expected-error @below {{has 2 node_ranks, but of these axes nodes of 4 ranks have 4}}
  exec.collective reduce_scatter on reduce (%a : memref<8xf32>) outs(%b : memref<1xf32>) workspace(%w : memref<64xi8>) over @mesh["dp"] {node_ranks = 2 : i64}
}

// -----

// collective 10: no nodes are stated
fsdp.mesh @mesh ["dp" = 8]
exec.program @p {
  %a = exec.alloc : memref<8xf32>
  %b = exec.alloc : memref<1xf32>
  %w = exec.alloc : memref<64xi8>
  // expected-error @below {{has node_ranks, but nodes of 0 ranks (node_size of the mesh) make no two levels of a sum over these axes}}
  exec.collective reduce_scatter on reduce (%a : memref<8xf32>) outs(%b : memref<1xf32>) workspace(%w : memref<64xi8>) over @mesh["dp"] {node_ranks = 2 : i64}
}

// -----

// collective 10: all ranks share a node
fsdp.mesh @mesh ["a" = 2, "dp" = 4] {node_size = 4 : i64}
exec.program @p {
  %a = exec.alloc : memref<8xf32>
  %b = exec.alloc : memref<2xf32>
  %w = exec.alloc : memref<64xi8>
  // expected-error @below {{make no two levels of a sum over these axes}}
  exec.collective reduce_scatter on reduce (%a : memref<8xf32>) outs(%b : memref<2xf32>) workspace(%w : memref<64xi8>) over @mesh["dp"] {node_ranks = 4 : i64}
}

// -----

// collective 10: a maximum
fsdp.mesh @mesh ["dp" = 8] {node_size = 4 : i64}
exec.program @p {
  %a = exec.alloc : memref<8xf32>
  %w = exec.alloc : memref<64xi8>
  // expected-error @below {{has node_ranks, which only sums to f32 that are not fast have}}
  exec.collective all_reduce on reduce (%a : memref<8xf32>) outs(%a : memref<8xf32>) workspace(%w : memref<64xi8>) over @mesh["dp"] {reduce = #exec<reduce_kind max>, node_ranks = 4 : i64}
}
