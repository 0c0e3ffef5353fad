// RUN: fsdp-opt %s --fsdp-propagate --fsdp-verify-placements | FileCheck %s

// A dimension of one element may be split over an axis of one rank: the weight's row
// stays where it is.
// CHECK-LABEL: func.func @train
// CHECK: %[[W:.*]] = nn.read @w
// CHECK-NEXT: nn.linear %{{.*}}, %[[W]] : tensor<12x4x2xf32>, tensor<1x2xf32>
module {
  fsdp.mesh @mesh ["a" = 1, "b" = 4]
  nn.parameter @v : tensor<2x2xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{}, {| "a"}]>}
  nn.parameter @w : tensor<1x2xf32> init #nn.zeros {fsdp.placement = #fsdp.placement<[{"a"}, {}]>}
  func.func @train(%x: tensor<12x4x2xf32> {fsdp.placement = #fsdp.placement<[{"a"}, {}, {}]>, nn.name = "x"}) -> (tensor<12x4x2xf32> {nn.name = "u"}, tensor<12x4x1xf32> {nn.name = "y"}) {
    %v = nn.read @v : tensor<2x2xf32>
    %u = nn.linear %x, %v : tensor<12x4x2xf32>, tensor<2x2xf32> -> tensor<12x4x2xf32>
    %t = fsdp.redistribute %u on @mesh to <[{}, {}, {}]> : tensor<12x4x2xf32> -> tensor<12x4x2xf32>
    %w = nn.read @w : tensor<1x2xf32>
    %y = nn.linear %x, %w : tensor<12x4x2xf32>, tensor<1x2xf32> -> tensor<12x4x1xf32>
    %z = fsdp.redistribute %y on @mesh to <[{}, {"a"}, {}]> : tensor<12x4x1xf32> -> tensor<12x4x1xf32>
    return %t, %z : tensor<12x4x2xf32>, tensor<12x4x1xf32>
  }
}
