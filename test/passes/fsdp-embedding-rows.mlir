// RUN: fsdp-opt %s --split-input-file --fsdp-embedding-rows | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --fsdp-embedding-rows --remarks-filter=fsdp-embedding-rows --remark-format=emitRemark 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: fsdp-opt %s --split-input-file --fsdp-embedding-rows=widen-sums=true | FileCheck %s --check-prefix=WIDE
// The rows that tokens name travel instead of a table, where they are fewer
// bytes.

// REMARK: [Passed] RowsTravel | Category:fsdp-embedding-rows | Function=rows | {{.*}}nn.embedding{{.*}}bytes=72{{.*}}table=248
// REMARK: [Passed] RowsTravel | Category:fsdp-embedding-rows | Function=rows | {{.*}}nn.embedding_grad{{.*}}bytes=72{{.*}}table=248
// Three ranks have 6 tokens, and up to 11 of the 31 rows each.
fsdp.mesh @mesh ["dp_shard" = 3]
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[IDS:.*]]: tensor<2xi32>, %[[S:.*]]: tensor<11x4xbf16>, %[[DY:.*]]: tensor<2x4xbf16>)
// CHECK-NEXT: %[[ALL:.*]] = fsdp.all_gather %[[IDS]] on @mesh["dp_shard"] dim 0 {nn.module = "embed", serves = #fsdp.origin<all "fwd embed">} : tensor<2xi32> -> tensor<6xi32>
// CHECK-NEXT: %[[OWN:.*]] = fsdp.rows_of_shard %[[ALL]] on @mesh["dp_shard"] of 31 {{.*}} : tensor<6xi32>
// CHECK-NEXT: %[[PARTS:.*]] = nn.embedding %[[OWN]], %[[S]] {absent, nn.module = "embed"} : tensor<6xi32>, tensor<11x4xbf16> -> tensor<6x4xbf16>
// CHECK-NEXT: %[[SUM:.*]] = fsdp.reduce_scatter sum %[[PARTS]] on @mesh["dp_shard"] dim 0 {{.*}}serves = #fsdp.origin<all "fwd embed">} : tensor<6x4xbf16> -> tensor<2x4xf32>
// CHECK-NEXT: %[[X:.*]] = nn.cast %[[SUM]] {{.*}} : tensor<2x4xf32> to tensor<2x4xbf16>
// The indices of all ranks are gathered once. Padding of the third shard stays
// zero, since no index names it.
// CHECK-NEXT: %[[DYS:.*]] = fsdp.all_gather %[[DY]] on @mesh["dp_shard"] dim 0 {{.*}}serves = #fsdp.origin<all "bwd embed">} : tensor<2x4xbf16> -> tensor<6x4xbf16>
// CHECK-NEXT: %[[PLACES:.*]] = fsdp.rows_of_shard %[[ALL]] on @mesh["dp_shard"] of 31 {by_rank, {{.*}}} : tensor<6xi32>
// CHECK-NEXT: %[[PIECES:.*]] = nn.embedding_grad %[[PLACES]], %[[DYS]] {absent, {{.*}}} : tensor<6xi32>, tensor<6x4xbf16> -> tensor<33x4xbf16>
// CHECK-NEXT: %[[P0:.*]] = nn.slice %[[PIECES]] [0, 0]
// CHECK-NEXT: %[[W0:.*]] = nn.cast %[[P0]] {{.*}} : tensor<11x4xbf16> to tensor<11x4xf32>
// CHECK-NEXT: %[[P1:.*]] = nn.slice %[[PIECES]] [11, 0]
// CHECK-NEXT: %[[W1:.*]] = nn.cast %[[P1]]
// CHECK-NEXT: %[[P2:.*]] = nn.slice %[[PIECES]] [22, 0]
// CHECK-NEXT: %[[W2:.*]] = nn.cast %[[P2]]
// CHECK-NEXT: %[[LEFT:.*]] = nn.add %[[W0]], %[[W1]]
// CHECK-NEXT: %[[ROOT:.*]] = nn.add %[[LEFT]], %[[W2]]
// CHECK-NEXT: return %[[X]], %[[ROOT]] : tensor<2x4xbf16>, tensor<11x4xf32>
// WIDE: nn.embedding {{.*}} {absent
// WIDE-NEXT: nn.cast {{.*}} : tensor<6x4xbf16> to tensor<6x4xf32>
// WIDE-NEXT: fsdp.reduce_scatter sum {{.*}} : tensor<6x4xf32> -> tensor<2x4xf32>
func.func @rows(%ids: tensor<2xi32>, %s: tensor<11x4xbf16>, %dy: tensor<2x4xbf16>) -> (tensor<2x4xbf16>, tensor<11x4xf32>) attributes {fsdp.local} {
  %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@w], nn.module = "embed", serves = #fsdp.origin<all "fwd embed">} : tensor<11x4xbf16> -> tensor<31x4xbf16>
  %x = nn.embedding %ids, %w {nn.module = "embed"} : tensor<2xi32>, tensor<31x4xbf16> -> tensor<2x4xbf16>
  %d = nn.embedding_grad %ids, %dy {nn.module = "embed"} : tensor<2xi32>, tensor<2x4xbf16> -> tensor<31x4xbf16>
  %g = fsdp.reduce_scatter sum %d on @mesh["dp_shard"] dim 0 {fsdp.parameters = [@w], nn.module = "embed", serves = #fsdp.origin<all "bwd embed">} : tensor<31x4xbf16> -> tensor<11x4xf32>
  return %x, %g : tensor<2x4xbf16>, tensor<11x4xf32>
}
nn.parameter @w : tensor<31x4xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{| "dp_shard"}, {}]>}

// -----

// What is rounded before it travels is rounded piece by piece. Trees nest by
// mesh axis, whatever the order of the axes: ranks 0 and 1 of "b" first, which
// are positions 0 and 2.
fsdp.mesh @mesh ["a" = 2, "b" = 2]
// CHECK-LABEL: func.func @rounded
// CHECK: %[[PIECES:.*]] = nn.embedding_grad {{.*}} -> tensor<24x4xf32>
// CHECK-NEXT: %[[R:.*]] = nn.cast %[[PIECES]] : tensor<24x4xf32> to tensor<24x4xbf16>
// CHECK: %[[P0:.*]] = nn.slice %[[R]] [0, 0]
// CHECK-NEXT: %[[W0:.*]] = nn.cast %[[P0]]
// CHECK-NEXT: %[[P1:.*]] = nn.slice %[[R]] [6, 0]
// CHECK-NEXT: %[[W1:.*]] = nn.cast %[[P1]]
// CHECK-NEXT: %[[P2:.*]] = nn.slice %[[R]] [12, 0]
// CHECK-NEXT: %[[W2:.*]] = nn.cast %[[P2]]
// CHECK-NEXT: %[[P3:.*]] = nn.slice %[[R]] [18, 0]
// CHECK-NEXT: %[[W3:.*]] = nn.cast %[[P3]]
// CHECK-NEXT: %[[A:.*]] = nn.add %[[W0]], %[[W2]]
// CHECK-NEXT: %[[B:.*]] = nn.add %[[W1]], %[[W3]]
// CHECK-NEXT: nn.add %[[A]], %[[B]]
func.func @rounded(%ids: tensor<1xi32>, %dy: tensor<1x4xf32>) -> tensor<6x4xf32> attributes {fsdp.local} {
  %d = nn.embedding_grad %ids, %dy : tensor<1xi32>, tensor<1x4xf32> -> tensor<24x4xf32>
  %c = nn.cast %d : tensor<24x4xf32> to tensor<24x4xbf16>
  %g = fsdp.reduce_scatter sum %c on @mesh["b", "a"] dim 0 : tensor<24x4xbf16> -> tensor<6x4xf32>
  return %g : tensor<6x4xf32>
}

// -----

// Tables that stay: of tied weights, and where rows are no fewer bytes.
// REMARK: [Missed] TableTravels | Category:fsdp-embedding-rows | Function=tables | Remark="nn.embedding: other ops read the table too
// REMARK: [Missed] TableTravels | Category:fsdp-embedding-rows | Function=tables | Remark="nn.embedding: rows are no fewer bytes
// REMARK: [Missed] TableTravels | Category:fsdp-embedding-rows | Function=tables | Remark="nn.embedding_grad: rows are no fewer bytes
fsdp.mesh @mesh ["dp_shard" = 2]
// CHECK-LABEL: func.func @tables
// CHECK-NOT: fsdp.rows_of_shard
func.func @tables(%ids: tensor<2xi32>, %s: tensor<5x4xf32>, %t: tensor<5x4xf32>, %dy: tensor<2x4xf32>)
    -> (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x10xf32>, tensor<2x4xf32>, tensor<10x4xf32>) attributes {fsdp.local} {
  %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<5x4xf32> -> tensor<10x4xf32>
  %x = nn.embedding %ids, %w : tensor<2xi32>, tensor<10x4xf32> -> tensor<2x4xf32>
  %y = nn.linear %dy, %w : tensor<2x4xf32>, tensor<10x4xf32> -> tensor<2x10xf32>
  %v = fsdp.all_gather %t on @mesh["dp_shard"] dim 0 : tensor<5x4xf32> -> tensor<9x4xf32>
  %more = nn.concat %ids, %ids, %ids dim 0 : tensor<2xi32>, tensor<2xi32>, tensor<2xi32> to tensor<6xi32>
  %six = nn.embedding %more, %v : tensor<6xi32>, tensor<9x4xf32> -> tensor<6x4xf32>
  %z = nn.slice %six [0, 0] : tensor<6x4xf32> to tensor<2x4xf32>
  %d = nn.embedding_grad %ids, %dy : tensor<2xi32>, tensor<2x4xf32> -> tensor<2x4xf32>
  %g = fsdp.reduce_scatter sum %d on @mesh["dp_shard"] dim 0 : tensor<2x4xf32> -> tensor<1x4xf32>
  %pad = nn.pad %g [0, 0] : tensor<1x4xf32> to tensor<2x4xf32>
  // A gradient that is not reduced, as of weights that every rank stores.
  %e = nn.embedding_grad %ids, %dy : tensor<2xi32>, tensor<2x4xf32> -> tensor<10x4xf32>
  return %x, %z, %y, %pad, %e : tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x10xf32>, tensor<2x4xf32>, tensor<10x4xf32>
}

// -----

// REMARK: [Missed] TableTravels | Category:fsdp-embedding-rows | Function=many | Remark="nn.embedding_grad: a kernel adds the pieces of 64 ranks at most
// Of more than 64 ranks rows are read, and their gradients are not added up.
fsdp.mesh @mesh ["dp_shard" = 65]
// CHECK-LABEL: func.func @many
// CHECK: nn.embedding {{.*}} {absent}
// CHECK: fsdp.reduce_scatter
// CHECK: nn.embedding_grad %arg0
// CHECK: fsdp.reduce_scatter
func.func @many(%ids: tensor<1xi32>, %s: tensor<10x64xf32>, %dy: tensor<1x64xf32>) -> (tensor<1x64xf32>, tensor<10x64xf32>) attributes {fsdp.local} {
  %w = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<10x64xf32> -> tensor<650x64xf32>
  %x = nn.embedding %ids, %w : tensor<1xi32>, tensor<650x64xf32> -> tensor<1x64xf32>
  %d = nn.embedding_grad %ids, %dy : tensor<1xi32>, tensor<1x64xf32> -> tensor<650x64xf32>
  %g = fsdp.reduce_scatter sum %d on @mesh["dp_shard"] dim 0 : tensor<650x64xf32> -> tensor<10x64xf32>
  return %x, %g : tensor<1x64xf32>, tensor<10x64xf32>
}

// -----

// Buckets, other dimensions, maxima, gradients that others read, and parts of
// tables already.
fsdp.mesh @mesh ["dp_shard" = 2]
// CHECK-LABEL: func.func @others
// CHECK-NOT: fsdp.rows_of_shard
func.func @others(%ids: tensor<1xi32>, %s: tensor<5x4xf32>, %t: tensor<10x2xf32>, %dy: tensor<1x4xf32>)
    -> (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<10x4xf32>, tensor<5x4xf32>) attributes {fsdp.local} {
  %w:2 = fsdp.all_gather %s, %s on @mesh["dp_shard"] dim 0 : tensor<5x4xf32>, tensor<5x4xf32> -> tensor<10x4xf32>, tensor<10x4xf32>
  %x = nn.embedding %ids, %w#0 : tensor<1xi32>, tensor<10x4xf32> -> tensor<1x4xf32>
  %v = fsdp.all_gather %t on @mesh["dp_shard"] dim 1 : tensor<10x2xf32> -> tensor<10x4xf32>
  %y = nn.embedding %ids, %v : tensor<1xi32>, tensor<10x4xf32> -> tensor<1x4xf32>
  %u = fsdp.all_gather %s on @mesh["dp_shard"] dim 0 : tensor<5x4xf32> -> tensor<10x4xf32>
  %z = nn.embedding %ids, %u {absent} : tensor<1xi32>, tensor<10x4xf32> -> tensor<1x4xf32>
  %a = nn.embedding_grad %ids, %dy : tensor<1xi32>, tensor<1x4xf32> -> tensor<10x4xf32>
  %max = fsdp.reduce_scatter max %a on @mesh["dp_shard"] dim 0 : tensor<10x4xf32> -> tensor<5x4xf32>
  %b = nn.embedding_grad %ids, %dy : tensor<1xi32>, tensor<1x4xf32> -> tensor<10x4xf32>
  %read = fsdp.reduce_scatter sum %b on @mesh["dp_shard"] dim 0 : tensor<10x4xf32> -> tensor<5x4xf32>
  %c = nn.embedding_grad %ids, %dy {absent} : tensor<1xi32>, tensor<1x4xf32> -> tensor<10x4xf32>
  %part = fsdp.reduce_scatter sum %c on @mesh["dp_shard"] dim 0 : tensor<10x4xf32> -> tensor<5x4xf32>
  return %x, %y, %z, %max, %read, %b, %part : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<10x4xf32>, tensor<5x4xf32>
}

// -----

// Sums in another order than the gradients: indices are gathered where they
// are defined.
fsdp.mesh @mesh ["dp_shard" = 2]
// CHECK-LABEL: func.func @order
// CHECK: %[[IDS:.*]] = nn.reshape
// CHECK-NEXT: %[[ALL:.*]] = fsdp.all_gather %[[IDS]]
// CHECK: fsdp.rows_of_shard %[[ALL]] on @mesh["dp_shard"] of 100
// CHECK: fsdp.rows_of_shard %[[ALL]] on @mesh["dp_shard"] of 200
func.func @order(%given: tensor<1x1xi32>, %dy: tensor<1x4xf32>) -> (tensor<100x4xf32>, tensor<50x4xf32>) attributes {fsdp.local} {
  %ids = nn.reshape %given : tensor<1x1xi32> to tensor<1xi32>
  %a = nn.embedding_grad %ids, %dy : tensor<1xi32>, tensor<1x4xf32> -> tensor<200x4xf32>
  %b = nn.embedding_grad %ids, %dy : tensor<1xi32>, tensor<1x4xf32> -> tensor<100x4xf32>
  %second = fsdp.reduce_scatter sum %b on @mesh["dp_shard"] dim 0 : tensor<100x4xf32> -> tensor<50x4xf32>
  %first = fsdp.reduce_scatter sum %a on @mesh["dp_shard"] dim 0 : tensor<200x4xf32> -> tensor<100x4xf32>
  return %first, %second : tensor<100x4xf32>, tensor<50x4xf32>
}
