// RUN: fsdp-opt %s --split-input-file --nn-precision | FileCheck %s
// RUN: fsdp-opt %s --split-input-file --nn-precision -o %t.once
// RUN: fsdp-opt %t.once --split-input-file --nn-precision | diff %t.once -
// RUN: fsdp-opt %s --split-input-file -o %t.before
// RUN: fsdp-opt %s --split-input-file --nn-precision=compute_dtype=f32 | diff %t.before -

// A parameter is cast after its read, also if it is read twice; the batch is
// cast at the beginning, where a matrix product takes it; what follows is bf16.
// The loss takes the prediction in f32, and so it is returned; the target comes
// in f32. Declarations stay.
// CHECK:       nn.parameter @w : tensor<4x4xf32>
// CHECK-LABEL: func.func @mlp
// CHECK-SAME:    (%[[X:.*]]: tensor<2x4xf32>, %[[T:.*]]: tensor<2x4xf32>) -> (tensor<f32> {nn.name = "loss"}, tensor<2x4xf32>)
// CHECK-NEXT:    %[[XB:.*]] = nn.cast %[[X]] : tensor<2x4xf32> to tensor<2x4xbf16>
// CHECK-NEXT:    %[[W:.*]] = nn.read @w
// CHECK-NEXT:    %[[WB:.*]] = nn.cast %[[W]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK-NEXT:    %[[B:.*]] = nn.read @b
// CHECK-NEXT:    %[[BB:.*]] = nn.cast %[[B]] : tensor<4xf32> to tensor<4xbf16>
// CHECK-NEXT:    %[[H:.*]] = nn.linear %[[XB]], %[[WB]] bias %[[BB]] : tensor<2x4xbf16>, tensor<4x4xbf16>, tensor<4xbf16> -> tensor<2x4xbf16>
// CHECK-NEXT:    %[[R:.*]] = nn.relu %[[H]] : tensor<2x4xbf16>
// CHECK-NEXT:    %[[W2:.*]] = nn.read @w
// CHECK-NEXT:    %[[WB2:.*]] = nn.cast %[[W2]]
// CHECK-NEXT:    %[[Y:.*]] = nn.linear %[[R]], %[[WB2]] :
// CHECK-NEXT:    %[[P:.*]] = nn.cast %[[Y]] : tensor<2x4xbf16> to tensor<2x4xf32>
// CHECK-NEXT:    %[[L:.*]] = nn.mse_loss %[[P]], %[[T]] count 8 : tensor<2x4xf32>, tensor<f32>
// CHECK-NEXT:    return %[[L]], %[[P]] : tensor<f32>, tensor<2x4xf32>
nn.parameter @w : tensor<4x4xf32> init #nn.zeros
nn.parameter @b : tensor<4xf32> init #nn.zeros
func.func @mlp(%x: tensor<2x4xf32>, %t: tensor<2x4xf32>) -> (tensor<f32> {nn.name = "loss"}, tensor<2x4xf32>) {
  %w = nn.read @w : tensor<4x4xf32>
  %b = nn.read @b : tensor<4xf32>
  %h = nn.linear %x, %w bias %b : tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32> -> tensor<2x4xf32>
  %r = nn.relu %h : tensor<2x4xf32>
  %again = nn.read @w : tensor<4x4xf32>
  %y = nn.linear %r, %again : tensor<2x4xf32>, tensor<4x4xf32> -> tensor<2x4xf32>
  %l = nn.mse_loss %y, %t count 8 : tensor<2x4xf32>, tensor<f32>
  return %l, %y : tensor<f32>, tensor<2x4xf32>
}

// -----

// Integers stay. Statistics, the rows of the cross entropy, its sum and the
// quotient are f32; the table of angles is a buffer and stays; residual adds
// follow their operands, and so do the logits that are returned.
// CHECK-LABEL: func.func @transformer
// CHECK-SAME:    -> (tensor<f32>, tensor<1x2x8xbf16>)
// CHECK:         %[[TABLE:.*]] = nn.read @rope : tensor<2x2x2xf32>
// CHECK:         %[[H:.*]] = nn.embedding %{{.*}}, %{{.*}} : tensor<1x2xi32>, tensor<8x4xbf16> -> tensor<1x2x4xbf16>
// CHECK:         nn.rms_norm %[[H]], %{{.*}} eps 1.000000e-05 : tensor<1x2x4xbf16>, tensor<4xbf16>, tensor<1x2xf32>
// CHECK:         nn.reshape %{{.*}} : tensor<1x2x4xbf16> to tensor<1x2x1x4xbf16>
// CHECK:         nn.rotary halves %{{.*}}, %[[TABLE]] : tensor<1x2x1x4xbf16>, tensor<2x2x2xf32>
// CHECK:         nn.attention {{.*}} : tensor<1x2x1x4xbf16>, tensor<1x2x1x4xbf16>, tensor<1x1x2xf32>
// CHECK:         nn.add %[[H]], %{{.*}} : tensor<1x2x4xbf16>
// CHECK:         %[[LOGITS:.*]] = nn.linear {{.*}} -> tensor<1x2x8xbf16>
// CHECK-NEXT:    %[[ROWS:.*]], %{{.*}} = nn.cross_entropy %[[LOGITS]], %{{.*}} : tensor<1x2x8xbf16>, tensor<1x2xi32>, tensor<1x2xf32>
// CHECK-NEXT:    nn.sum %[[ROWS]] [0, 1] : tensor<1x2xf32> to tensor<f32>
// CHECK-NEXT:    nn.count_labels %{{.*}} : tensor<1x2xi32> -> tensor<i64>
// CHECK-NEXT:    %[[LOSS:.*]] = nn.divide_by_count {{.*}} : tensor<f32>, tensor<i64>
// CHECK-NEXT:    return %[[LOSS]], %[[LOGITS]] : tensor<f32>, tensor<1x2x8xbf16>
nn.parameter @table : tensor<8x4xf32> init #nn.zeros
nn.parameter @norm : tensor<4xf32> init #nn.ones
nn.buffer @rope : tensor<2x2x2xf32> init #nn.rotary_table<[1.0, 0.1]>
func.func @transformer(%tokens: tensor<1x2xi32>, %targets: tensor<1x2xi32>) -> (tensor<f32>, tensor<1x2x8xf32>) {
  %rope = nn.read @rope : tensor<2x2x2xf32>
  %table = nn.read @table : tensor<8x4xf32>
  %h = nn.embedding %tokens, %table : tensor<1x2xi32>, tensor<8x4xf32> -> tensor<1x2x4xf32>
  %norm = nn.read @norm : tensor<4xf32>
  %n, %rstd = nn.rms_norm %h, %norm eps 1.0e-05 : tensor<1x2x4xf32>, tensor<4xf32>, tensor<1x2xf32>
  %s = nn.reshape %n : tensor<1x2x4xf32> to tensor<1x2x1x4xf32>
  %q = nn.rotary halves %s, %rope : tensor<1x2x1x4xf32>, tensor<2x2x2xf32>
  %o, %lse = nn.attention %q, %q, %s scale 0.5 {causal} : tensor<1x2x1x4xf32>, tensor<1x2x1x4xf32>, tensor<1x1x2xf32>
  %j = nn.reshape %o : tensor<1x2x1x4xf32> to tensor<1x2x4xf32>
  %r = nn.add %h, %j : tensor<1x2x4xf32>
  %again = nn.read @table : tensor<8x4xf32>
  %logits = nn.linear %r, %again : tensor<1x2x4xf32>, tensor<8x4xf32> -> tensor<1x2x8xf32>
  %rows, %lse2 = nn.cross_entropy %logits, %targets ignore_index -100 : tensor<1x2x8xf32>, tensor<1x2xi32>, tensor<1x2xf32>
  %sum = nn.sum %rows [0, 1] : tensor<1x2xf32> to tensor<f32>
  %count = nn.count_labels %targets ignore_index -100 : tensor<1x2xi32> -> tensor<i64>
  %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
  return %loss, %logits : tensor<f32>, tensor<1x2x8xf32>
}

// -----

// A softmax written out: the exponentials and their sum are f32, and so is the
// quotient; the product with a bf16 tensor takes it in bf16. A value is cast
// once: %e and %m take the same f32 scores.
// CHECK-LABEL: func.func @softmax
// CHECK:         %[[S:.*]] = nn.matmul {{.*}} -> tensor<4x4xbf16>
// CHECK-NEXT:    %[[F:.*]] = nn.cast %[[S]] : tensor<4x4xbf16> to tensor<4x4xf32>
// CHECK-NEXT:    %[[E:.*]] = nn.exp %[[F]] : tensor<4x4xf32>
// CHECK-NEXT:    %[[M:.*]] = nn.mean %[[F]] [1] count 4 : tensor<4x4xf32> to tensor<4xf32>
// CHECK-NEXT:    %[[SUM:.*]] = nn.sum %[[E]] [1] : tensor<4x4xf32> to tensor<4xf32>
// CHECK-NEXT:    %[[D:.*]] = nn.broadcast %[[SUM]] [0] : tensor<4xf32> to tensor<4x4xf32>
// CHECK-NEXT:    %[[P:.*]] = nn.div %[[E]], %[[D]] : tensor<4x4xf32>
// CHECK-NEXT:    %[[PB:.*]] = nn.cast %[[P]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK-NEXT:    nn.matmul %[[PB]], %{{.*}} : tensor<4x4xbf16>, tensor<4x4xbf16> -> tensor<4x4xbf16>
nn.parameter @w : tensor<4x4xf32> init #nn.zeros
func.func @softmax(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %w = nn.read @w : tensor<4x4xf32>
  %s = nn.matmul %x, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %e = nn.exp %s : tensor<4x4xf32>
  %m = nn.mean %s [1] count 4 : tensor<4x4xf32> to tensor<4xf32>
  %sum = nn.sum %e [1] : tensor<4x4xf32> to tensor<4xf32>
  %d = nn.broadcast %sum [0] : tensor<4xf32> to tensor<4x4xf32>
  %p = nn.div %e, %d : tensor<4x4xf32>
  %y = nn.matmul %p, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return %y, %m : tensor<4x4xf32>, tensor<4xf32>
}

// -----

// A constant takes the type of the tensor beside it, as does what is computed
// from constants alone; an f32 buffer widens what it is added to.
// CHECK-LABEL: func.func @constants
// CHECK-SAME:    -> tensor<4xf32>
// CHECK:         %[[C:.*]] = nn.constant dense<2.000000e+00> : tensor<1xf32>
// CHECK-NEXT:    %[[ROOT:.*]] = nn.sqrt %[[C]] : tensor<1xf32>
// CHECK-NEXT:    %[[S:.*]] = nn.broadcast %[[ROOT]] [0] : tensor<1xf32> to tensor<4xf32>
// CHECK-NEXT:    %[[SB:.*]] = nn.cast %[[S]] : tensor<4xf32> to tensor<4xbf16>
// CHECK-NEXT:    %[[Y:.*]] = nn.mul %{{.*}}, %[[SB]] : tensor<4xbf16>
// CHECK-NEXT:    %[[SHIFT:.*]] = nn.read @shift : tensor<4xf32>
// CHECK-NEXT:    %[[F:.*]] = nn.cast %[[Y]] : tensor<4xbf16> to tensor<4xf32>
// CHECK-NEXT:    nn.add %[[F]], %[[SHIFT]] : tensor<4xf32>
nn.parameter @w : tensor<4xf32> init #nn.zeros
nn.buffer @shift : tensor<4xf32> init #nn.ones
func.func @constants() -> tensor<4xf32> {
  %w = nn.read @w : tensor<4xf32>
  %c = nn.constant dense<2.0> : tensor<1xf32>
  %root = nn.sqrt %c : tensor<1xf32>
  %s = nn.broadcast %root [0] : tensor<1xf32> to tensor<4xf32>
  %y = nn.mul %w, %s : tensor<4xf32>
  %shift = nn.read @shift : tensor<4xf32>
  %z = nn.add %y, %shift : tensor<4xf32>
  return %z : tensor<4xf32>
}

// -----

// One type per parameter: the exponential of @w is taken, so every read of it
// is f32, also the one that a matrix product takes, whose input is cast up. @v
// is bf16.
// CHECK-LABEL: func.func @one_type
// CHECK-NEXT:    %[[V:.*]] = nn.read @v
// CHECK-NEXT:    %[[VB:.*]] = nn.cast %[[V]] : tensor<4x4xf32> to tensor<4x4xbf16>
// CHECK-NEXT:    %[[W:.*]] = nn.read @w
// CHECK-NEXT:    %[[UP:.*]] = nn.cast %[[VB]] : tensor<4x4xbf16> to tensor<4x4xf32>
// CHECK-NEXT:    nn.linear %[[UP]], %[[W]] : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
// CHECK-NEXT:    %[[W2:.*]] = nn.read @w
// CHECK-NEXT:    %[[T:.*]] = nn.transpose %[[W2]] [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
// CHECK-NEXT:    nn.exp %[[T]] : tensor<4x4xf32>
nn.parameter @v : tensor<4x4xf32> init #nn.zeros
nn.parameter @w : tensor<4x4xf32> init #nn.zeros
func.func @one_type() -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %v = nn.read @v : tensor<4x4xf32>
  %w = nn.read @w : tensor<4x4xf32>
  %y = nn.linear %v, %w : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  %again = nn.read @w : tensor<4x4xf32>
  %t = nn.transpose %again [1, 0] : tensor<4x4xf32> to tensor<4x4xf32>
  %e = nn.exp %t : tensor<4x4xf32>
  return %y, %e : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// A program that holds a bf16 tensor stays as it is: here the weight of the norm
// was left in f32 on purpose.
// CHECK-LABEL: func.func @mixed
// CHECK-NEXT:    %[[W:.*]] = nn.read @w : tensor<4xf32>
// CHECK-NEXT:    nn.rms_norm %{{.*}}, %[[W]]
nn.parameter @w : tensor<4xf32> init #nn.zeros
func.func @mixed(%x: tensor<2x4xbf16>) -> tensor<2x4xbf16> {
  %w = nn.read @w : tensor<4xf32>
  %y, %rstd = nn.rms_norm %x, %w eps 1.0e-05 : tensor<2x4xbf16>, tensor<4xf32>, tensor<2xf32>
  return %y : tensor<2x4xbf16>
}
