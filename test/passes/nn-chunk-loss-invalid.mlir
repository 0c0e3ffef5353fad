// RUN: fsdp-opt %s --split-input-file --verify-diagnostics --nn-chunk-loss=chunks=4
// RUN: echo 'module {}' | not fsdp-opt --nn-chunk-loss=chunks=0 2>&1 | FileCheck %s
// CHECK: error: a loss is split into at least one chunk of rows, not 0

// What is asked for is not dropped: there is no loss with a gradient.
// expected-error @below {{no program has an nn.cross_entropy and its gradient to split into 4 chunks; leave compile.loss_chunks at 1}}
module {
  func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>) -> tensor<8xf32> {
    %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
    %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
    return %rows : tensor<8xf32>
  }
}

// -----

// Chunks are equal.
func.func @train(%h: tensor<6x3xf32>, %w: tensor<5x3xf32>, %t: tensor<6xi32>, %drows: tensor<6xf32>) -> tensor<6x3xf32> {
  %logits = nn.linear %h, %w : tensor<6x3xf32>, tensor<5x3xf32> -> tensor<6x5xf32>
  // expected-error @below {{has 6 rows on a rank, which 4 chunks do not divide; make compile.loss_chunks a divisor of 6}}
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<6x5xf32>, tensor<6xi32>, tensor<6xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<6x5xf32>, tensor<6xi32>, tensor<6xf32>
  %dh = nn.linear_input_grad %d, %w : tensor<6x5xf32>, tensor<5x3xf32> -> tensor<6x3xf32>
  return %dh : tensor<6x3xf32>
}

// -----

// Logits that are gathered from ranks that have a part of the classes.
fsdp.mesh @mesh ["tp" = 2]
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> tensor<8x10xf32> attributes {fsdp.local} {
  %part = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %turned = nn.transpose %part [1, 0] : tensor<8x5xf32> to tensor<5x8xf32>
  %all = fsdp.all_gather %turned on @mesh["tp"] dim 0 : tensor<5x8xf32> -> tensor<10x8xf32>
  // expected-note @below {{they are produced here}}
  %logits = nn.transpose %all [1, 0] : tensor<10x8xf32> to tensor<8x10xf32>
  // expected-error @below {{takes logits that no nn.linear of this rank produces, so they have no chunks: leave compile.loss_chunks at 1, or do not shard the projection's weight in the policy}}
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x10xf32>, tensor<8xi32>, tensor<8xf32>
  return %d : tensor<8x10xf32>
}

// -----

// Logits that are rounded between the projection and the loss.
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> tensor<8x5xbf16> {
  %wide = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  // expected-note @below {{they are produced here}}
  %logits = nn.cast %wide : tensor<8x5xf32> to tensor<8x5xbf16>
  // expected-error-re @below {{takes logits that no nn.linear of this rank produces, so they have no chunks: leave compile.loss_chunks at 1{{$}}}}
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xbf16>, tensor<8xi32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xbf16>, tensor<8xi32>, tensor<8xf32>
  return %d : tensor<8x5xbf16>
}

// -----

// Somebody else needs the logits.
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> (tensor<8x3xf32>, tensor<8x5xf32>) {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %dh = nn.linear_input_grad %d, %w : tensor<8x5xf32>, tensor<5x3xf32> -> tensor<8x3xf32>
  // expected-error @below {{uses all logits of the loss, which chunks do not have; leave compile.loss_chunks at 1}}
  return %dh, %logits : tensor<8x3xf32>, tensor<8x5xf32>
}

// -----

// Somebody else needs the gradient of the logits.
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> tensor<8x5xf32> {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  // expected-error @below {{uses the gradient of all logits, which chunks do not have; leave compile.loss_chunks at 1}}
  return %d : tensor<8x5xf32>
}

// -----

// A gradient of another projection's weight, by the same cotangent.
func.func @train(%h: tensor<8x3xf32>, %other: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> tensor<5x3xf32> {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  // expected-error @below {{uses the gradient of all logits, which chunks do not have; leave compile.loss_chunks at 1}}
  %dw = nn.linear_weight_grad %d, %other : tensor<8x5xf32>, tensor<8x3xf32> -> tensor<5x3xf32>
  return %dw : tensor<5x3xf32>
}

// -----

// The losses squared: their cotangent is known when all of them are.
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>) -> tensor<8x3xf32> {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  // expected-error @below {{has a cotangent that depends on its logits and is not known before them, so they have no chunks; leave compile.loss_chunks at 1}}
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %drows = nn.add %rows, %rows : tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %dh = nn.linear_input_grad %d, %w : tensor<8x5xf32>, tensor<5x3xf32> -> tensor<8x3xf32>
  return %dh : tensor<8x3xf32>
}

// -----

// A cotangent that is read after the losses: something may be written between.
nn.buffer @drows : tensor<8xf32> init #nn.zeros
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>) -> tensor<8x3xf32> {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  // expected-error @below {{produces the cotangent of the losses and cannot be moved before them; leave compile.loss_chunks at 1}}
  %drows = nn.read @drows : tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %dh = nn.linear_input_grad %d, %w : tensor<8x5xf32>, tensor<5x3xf32> -> tensor<8x3xf32>
  return %dh : tensor<8x3xf32>
}

// -----

// Statistics of other logits.
func.func @train(%logits: tensor<8x5xf32>, %lse: tensor<8xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> tensor<8x5xf32> {
  // expected-error @below {{does not follow the nn.cross_entropy whose gradient it is}}
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  return %d : tensor<8x5xf32>
}

// -----

// A gradient that is added to another sum already.
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>, %s: tensor<5x3xf32>) -> tensor<5x3xf32> {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  // expected-error @below {{uses the gradient of all logits, which chunks do not have; leave compile.loss_chunks at 1}}
  %dw = nn.linear_weight_grad %d, %h sum %s : tensor<8x5xf32>, tensor<8x3xf32>, tensor<5x3xf32> -> tensor<5x3xf32>
  return %dw : tensor<5x3xf32>
}

// -----

// The gradient is of a loss that ignores other labels.
func.func @train(%h: tensor<8x3xf32>, %w: tensor<5x3xf32>, %t: tensor<8xi32>, %drows: tensor<8xf32>) -> tensor<5x3xf32> {
  %logits = nn.linear %h, %w : tensor<8x3xf32>, tensor<5x3xf32> -> tensor<8x5xf32>
  %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  // expected-error @below {{does not follow the nn.cross_entropy whose gradient it is}}
  %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index 3 : tensor<8x5xf32>, tensor<8xi32>, tensor<8xf32>
  %dw = nn.linear_weight_grad %d, %h : tensor<8x5xf32>, tensor<8x3xf32> -> tensor<5x3xf32>
  return %dw : tensor<5x3xf32>
}
