// RUN: fsdp-opt %s --split-input-file --verify-diagnostics

// Matrix products, norms, attention and losses: one case per constraint, named after
// the op and the number of the constraint in its description.

// linear 1: the weight has rank 2.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error @+1 {{expects the weight of rank 2}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x16xf32>
  return
}

// -----

// linear 1: the input has a last dimension.
func.func @f(%x: tensor<f32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the input of rank 1 or more}}
  %0 = nn.linear %x, %w : tensor<f32>, tensor<16x8xf32> -> tensor<16xf32>
  return
}

// -----

// linear 2: contracted sizes agree.
func.func @f(%x: tensor<4x9xf32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the input's last dimension (9) to be the weight's dimension 1 (8)}}
  %0 = nn.linear %x, %w : tensor<4x9xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  return
}

// -----

// linear 3: the result's shape.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the result of type 'tensor<4x16xf32>'}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
  return
}

// -----

// linear 4: the bias has the weight's rows.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %b: tensor<8xf32>) {
  // expected-error @+1 {{expects the bias of type 'tensor<16xf32>'}}
  %0 = nn.linear %x, %w bias %b : tensor<4x8xf32>, tensor<16x8xf32>, tensor<8xf32> -> tensor<4x16xf32>
  return
}

// -----

// linear 5: equal element types.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xbf16>) {
  // expected-error @+1 {{expects weight and bias with elements of type 'f32'}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<16x8xbf16> -> tensor<4x16xf32>
  return
}

// -----

// linear 5: of the result too.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the result with elements of type 'f32'}}
  %0 = nn.linear %x, %w : tensor<4x8xf32>, tensor<16x8xf32> -> tensor<4x16xbf16>
  return
}

// -----

// linear_input_grad 1: the weight has rank 2.
func.func @f(%d: tensor<4x16xf32>, %w: tensor<16xf32>) {
  // expected-error @+1 {{expects the weight of rank 2}}
  %0 = nn.linear_input_grad %d, %w : tensor<4x16xf32>, tensor<16xf32> -> tensor<4x8xf32>
  return
}

// -----

// linear_input_grad 1: the cotangent has a last dimension.
func.func @f(%d: tensor<f32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the cotangent of rank 1 or more}}
  %0 = nn.linear_input_grad %d, %w : tensor<f32>, tensor<16x8xf32> -> tensor<8xf32>
  return
}

// -----

// linear_input_grad 2: contracted sizes agree.
func.func @f(%d: tensor<4x9xf32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the cotangent's last dimension (9) to be the weight's dimension 0 (16)}}
  %0 = nn.linear_input_grad %d, %w : tensor<4x9xf32>, tensor<16x8xf32> -> tensor<4x8xf32>
  return
}

// -----

// linear_input_grad 3: the result's shape.
func.func @f(%d: tensor<4x16xf32>, %w: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the result of type 'tensor<4x8xf32>'}}
  %0 = nn.linear_input_grad %d, %w : tensor<4x16xf32>, tensor<16x8xf32> -> tensor<4x16xf32>
  return
}

// -----

// linear_input_grad 4: equal element types.
func.func @f(%d: tensor<4x16xf32>, %w: tensor<16x8xbf16>) {
  // expected-error @+1 {{expects the weight with elements of type 'f32'}}
  %0 = nn.linear_input_grad %d, %w : tensor<4x16xf32>, tensor<16x8xbf16> -> tensor<4x8xf32>
  return
}

// -----

// linear_weight_grad 1: equal leading dimensions.
func.func @f(%d: tensor<2x4x16xf32>, %x: tensor<8x8xf32>) {
  // expected-error @+1 {{expects equal leading dimensions, got 'tensor<2x4x16xf32>' and 'tensor<8x8xf32>'}}
  %0 = nn.linear_weight_grad %d, %x : tensor<2x4x16xf32>, tensor<8x8xf32> -> tensor<16x8xf32>
  return
}

// -----

// linear_weight_grad 2: the result's shape.
func.func @f(%d: tensor<4x16xf32>, %x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result of type 'tensor<16x8xf32>'}}
  %0 = nn.linear_weight_grad %d, %x : tensor<4x16xf32>, tensor<4x8xf32> -> tensor<8x16xf32>
  return
}

// -----

// linear_weight_grad 3: equal element types.
func.func @f(%d: tensor<4x16xf32>, %x: tensor<4x8xbf16>) {
  // expected-error @+1 {{expects the input with elements of type 'f32'}}
  %0 = nn.linear_weight_grad %d, %x : tensor<4x16xf32>, tensor<4x8xbf16> -> tensor<16x8xf32>
  return
}

// -----

// linear_weight_grad 3: the result is not narrower than the operands.
func.func @f(%d: tensor<4x16xf32>, %x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result with elements of type 'f32'}}
  %0 = nn.linear_weight_grad %d, %x : tensor<4x16xf32>, tensor<4x8xf32> -> tensor<16x8xbf16>
  return
}

// -----

// linear_weight_grad 4: the sum's type.
func.func @f(%d: tensor<4x16xbf16>, %x: tensor<4x8xbf16>, %s: tensor<16x4xf32>) {
  // expected-error @+1 {{expects the sum to have the result's type 'tensor<16x8xf32>', got 'tensor<16x4xf32>'}}
  %0 = nn.linear_weight_grad %d, %x sum %s : tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<16x4xf32> -> tensor<16x8xf32>
  return
}

// -----

// linear_weight_grad 4: no sum in bf16.
func.func @f(%d: tensor<4x16xbf16>, %x: tensor<4x8xbf16>, %s: tensor<16x8xbf16>) {
  // expected-error @+1 {{adds to a sum in bf16, which would round it once per addend; make it f32}}
  %0 = nn.linear_weight_grad %d, %x sum %s : tensor<4x16xbf16>, tensor<4x8xbf16>, tensor<16x8xbf16> -> tensor<16x8xbf16>
  return
}

// -----

// matmul 1: rank at least 2.
func.func @f(%x: tensor<8xf32>) {
  // expected-error @+1 {{expects lhs of rank 2 or more}}
  %0 = nn.matmul %x, %x : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>
  return
}

// -----

// matmul 1: equal ranks.
func.func @f(%x: tensor<4x8xf32>, %y: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expects rhs of rank 2}}
  %0 = nn.matmul %x, %y : tensor<4x8xf32>, tensor<2x8x4xf32> -> tensor<4x4xf32>
  return
}

// -----

// matmul 2: equal leading dimensions.
func.func @f(%x: tensor<3x4x8xf32>, %y: tensor<2x8x4xf32>) {
  // expected-error @+1 {{expects equal leading dimensions}}
  %0 = nn.matmul %x, %y : tensor<3x4x8xf32>, tensor<2x8x4xf32> -> tensor<3x4x4xf32>
  return
}

// -----

// matmul 3: contracted sizes agree.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the contracted sizes to agree, got 8 and 4}}
  %0 = nn.matmul %x, %x : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

// matmul 3: as the operands are read.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the contracted sizes to agree, got 4 and 8}}
  %0 = nn.matmul %x, %x {transpose_lhs, transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

// matmul 4: the result's shape.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the result of type 'tensor<4x4xf32>'}}
  %0 = nn.matmul %x, %x {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

// matmul 5: equal element types.
func.func @f(%x: tensor<4x8xf32>, %y: tensor<4x8xbf16>) {
  // expected-error @+1 {{expects rhs with elements of type 'f32'}}
  %0 = nn.matmul %x, %y {transpose_rhs} : tensor<4x8xf32>, tensor<4x8xbf16> -> tensor<4x4xf32>
  return
}

// -----

// rms_norm 1: the weight's shape.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<4xf32>) {
  // expected-error @+1 {{expects the weight of type 'tensor<8xf32>'}}
  %y, %r = nn.rms_norm %x, %w eps 1.0e-5 : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

// rms_norm 1: there is a last dimension.
func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{expects the input of rank 1 or more}}
  %y, %r = nn.rms_norm %x, %x eps 1.0e-5 : tensor<f32>, tensor<f32>, tensor<f32>
  return
}

// -----

// rms_norm 2: one statistic per row.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the row statistic of type 'tensor<4xf32>'}}
  %y, %s = nn.rms_norm %x, %w eps 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// rms_norm 2: statistics are f32.
func.func @f(%x: tensor<4x8xbf16>, %w: tensor<8xbf16>) {
  // expected-error @+1 {{expects the row statistic of type 'tensor<4xf32>'}}
  %y, %s = nn.rms_norm %x, %w eps 1.0e-5 : tensor<4x8xbf16>, tensor<8xbf16>, tensor<4xbf16>
  return
}

// -----

// rms_norm 3: eps >= 0.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects eps >= 0}}
  %y, %s = nn.rms_norm %x, %w eps -1.0e-5 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
  return
}

// -----

// rms_norm_input_grad: as nn.rms_norm.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the row statistic of type 'tensor<4xf32>'}}
  %0 = nn.rms_norm_input_grad %x, %w, %w, %x : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// rms_norm_weight_grad: as nn.rms_norm.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the weight of type 'tensor<8xf32>'}}
  %0 = nn.rms_norm_weight_grad %x, %r, %x : tensor<4x8xf32>, tensor<4xf32> to tensor<4xf32>
  return
}

// -----

// layer_norm 1: the weight's shape.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the weight of type 'tensor<8xf32>'}}
  %y, %m, %s = nn.layer_norm %x, %r, %r eps 1.0e-5 : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

// layer_norm 2: one statistic per row.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the row statistic of type 'tensor<4xf32>'}}
  %y, %m, %s = nn.layer_norm %x, %w, %w eps 1.0e-5 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>
  return
}

// -----

// layer_norm 3: eps >= 0.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects eps >= 0}}
  %y, %m, %s = nn.layer_norm %x, %w, %w eps -1.0 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
  return
}

// -----

// layer_norm: the bias has the weight's type.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{failed to verify that all of {weight, bias} have same type}}
  %y, %m, %s = "nn.layer_norm"(%x, %w, %r) {eps = 0.0 : f64} : (tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

// layer_norm_input_grad: as nn.layer_norm.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the weight of type 'tensor<8xf32>'}}
  %0 = nn.layer_norm_input_grad %x, %r, %r, %r, %x : tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  return
}

// -----

// layer_norm_weight_grad: as nn.layer_norm.
func.func @f(%x: tensor<4x8xf32>, %w: tensor<8xf32>, %r: tensor<4xf32>) {
  // expected-error @+1 {{expects the row statistic of type 'tensor<4xf32>'}}
  %0 = nn.layer_norm_weight_grad %x, %w, %w, %x : tensor<4x8xf32>, tensor<8xf32> to tensor<8xf32>
  return
}

// -----

// softmax 1: rank at least 1.
func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{expects the input of rank 1 or more}}
  %0 = nn.softmax %x : tensor<f32>
  return
}

// -----

// softmax_grad: as nn.softmax.
func.func @f(%x: tensor<f32>) {
  // expected-error @+1 {{expects the input of rank 1 or more}}
  %0 = nn.softmax_grad %x, %x : tensor<f32>
  return
}

// -----

// rotary 1: rank 4.
func.func @f(%x: tensor<16x4x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects the input of rank 4}}
  %0 = nn.rotary halves %x, %t : tensor<16x4x4xf32>, tensor<16x2x2xf32>
  return
}

// -----

// rotary 1: head_dim is even.
func.func @f(%x: tensor<2x16x4x5xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects an even head_dim, got 5}}
  %0 = nn.rotary halves %x, %t : tensor<2x16x4x5xf32>, tensor<16x2x2xf32>
  return
}

// -----

// rotary 2: enough positions in the table.
func.func @f(%x: tensor<2x17x4x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects a table of shape [17 or more, 2, 2] in the accumulation type}}
  %0 = nn.rotary halves %x, %t : tensor<2x17x4x4xf32>, tensor<16x2x2xf32>
  return
}

// -----

// rotary 2: one angle per pair.
func.func @f(%x: tensor<2x16x4x8xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects a table of shape [16 or more, 4, 2]}}
  %0 = nn.rotary halves %x, %t : tensor<2x16x4x8xf32>, tensor<16x2x2xf32>
  return
}

// -----

// rotary 2: the table is f32.
func.func @f(%x: tensor<2x16x4x4xbf16>, %t: tensor<16x2x2xbf16>) {
  // expected-error @+1 {{in the accumulation type, got 'tensor<16x2x2xbf16>'}}
  %0 = nn.rotary halves %x, %t : tensor<2x16x4x4xbf16>, tensor<16x2x2xbf16>
  return
}

// -----

// split_heads 1: rank 4.
func.func @f(%x: tensor<16x8x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects the input of rank 4}}
  %q, %k, %v = nn.split_heads halves %x, %t : tensor<16x8x4xf32>, tensor<16x2x2xf32> -> tensor<16x4x4xf32>, tensor<16x2x4xf32>
  return
}

// -----

// split_heads 2: enough positions in the table.
func.func @f(%x: tensor<2x17x8x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects a table of shape [17 or more, 2, 2] in the accumulation type}}
  %q, %k, %v = nn.split_heads halves %x, %t : tensor<2x17x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x17x4x4xf32>, tensor<2x17x2x4xf32>
  return
}

// -----

// split_heads 3: parts of other positions.
func.func @f(%x: tensor<2x16x8x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects parts of the shape and type of 'tensor<2x16x8x4xf32>' but for their heads, got 'tensor<2x8x2x4xf32>'}}
  %q, %k, %v = nn.split_heads halves %x, %t : tensor<2x16x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x4x4xf32>, tensor<2x8x2x4xf32>
  return
}

// -----

// split_heads 3: parts of another type.
func.func @f(%x: tensor<2x16x8x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{but for their heads, got 'tensor<2x16x4x4xbf16>'}}
  %q, %k, %v = nn.split_heads halves %x, %t : tensor<2x16x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x4x4xbf16>, tensor<2x16x2x4xf32>
  return
}

// -----

// split_heads 3: the heads add up.
func.func @f(%x: tensor<2x16x8x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{has 8 heads, but its parts have 6}}
  %q, %k, %v = nn.split_heads halves %x, %t : tensor<2x16x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x4x4xf32>, tensor<2x16x1x4xf32>
  return
}

// -----

// join_heads 1: head_dim is even.
func.func @f(%q: tensor<2x16x4x5xf32>, %k: tensor<2x16x2x5xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects an even head_dim, got 5}}
  %x = nn.join_heads halves %q, %k, %k, %t : tensor<2x16x4x5xf32>, tensor<2x16x2x5xf32>, tensor<16x2x2xf32> -> tensor<2x16x8x5xf32>
  return
}

// -----

// join_heads 2: one angle per pair.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects a table of shape [16 or more, 4, 2]}}
  %x = nn.join_heads halves %q, %k, %k, %t : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<16x2x2xf32> -> tensor<2x16x8x8xf32>
  return
}

// -----

// split_heads 3: a part of another rank.
func.func @f(%x: tensor<2x16x8x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{but for their heads, got 'tensor<2x16x16xf32>'}}
  %q, %k, %v = nn.split_heads halves %x, %t : tensor<2x16x8x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x16xf32>, tensor<2x16x2x4xf32>
  return
}

// -----

// join_heads 3: parts of another head_dim.
func.func @f(%q: tensor<2x16x4x4xf32>, %k: tensor<2x16x2x2xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{expects parts of the shape and type of 'tensor<2x16x8x4xf32>' but for their heads, got 'tensor<2x16x2x2xf32>'}}
  %x = nn.join_heads halves %q, %k, %k, %t : tensor<2x16x4x4xf32>, tensor<2x16x2x2xf32>, tensor<16x2x2xf32> -> tensor<2x16x8x4xf32>
  return
}

// -----

// join_heads 3: the heads add up.
func.func @f(%q: tensor<2x16x4x4xf32>, %k: tensor<2x16x2x4xf32>, %t: tensor<16x2x2xf32>) {
  // expected-error @+1 {{has 9 heads, but its parts have 8}}
  %x = nn.join_heads halves %q, %k, %k, %t : tensor<2x16x4x4xf32>, tensor<2x16x2x4xf32>, tensor<16x2x2xf32> -> tensor<2x16x9x4xf32>
  return
}

// -----

// attention 1: the query has rank 4.
func.func @f(%q: tensor<16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects the query of rank 4}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 2: keys have rank 4.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<16x2x8xf32>) {
  // expected-error @+1 {{expects key and value of rank 4}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<2x16x4x8xf32>, tensor<16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 2: the same batch.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<3x16x2x8xf32>) {
  // expected-error @+1 {{expects equal batch and head_dim}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<2x16x4x8xf32>, tensor<3x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 2: the same head_dim.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x6xf32>) {
  // expected-error @+1 {{expects equal batch and head_dim}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<2x16x4x8xf32>, tensor<2x16x2x6xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 2: the same element type.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xbf16>) {
  // expected-error @+1 {{expects key and value with elements of type 'f32'}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<2x16x4x8xf32>, tensor<2x16x2x8xbf16>, tensor<2x4x16xf32>
  return
}

// -----

// attention 3: heads divide.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x3x8xf32>) {
  // expected-error @+1 {{expects heads (4) to be a multiple of kv_heads (3)}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<2x16x4x8xf32>, tensor<2x16x3x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 4: the shape of lse.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects lse of type 'tensor<2x4x16xf32>'}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4xf32>
  return
}

// -----

// attention 5: causal needs equal lengths.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x17x2x8xf32>) {
  // expected-error @+1 {{expects q_len = kv_len where causal, got 16 and 17}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {causal} : tensor<2x16x4x8xf32>, tensor<2x17x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention_grad: as nn.attention.
func.func @f(%q: tensor<2x16x4x8xf32>, %l: tensor<2x16x4xf32>) {
  // expected-error @+1 {{expects lse of type 'tensor<2x4x16xf32>'}}
  %0:3 = nn.attention_grad %q, %q, %q, %q, %l, %q scale 1.0 : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4xf32>
  return
}

// -----

// attention 6: a window needs causal.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects `causal` beside a window}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {window = 4 : i64} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 6: a window has a key.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects a window of 1 or more keys, got 0}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {causal, window = 0 : i64} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 7: a cap is positive.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects a cap that is positive and finite}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {cap = 0.0 : f64, causal} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 7: a cap is not negative.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects a cap that is positive and finite}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {cap = -1.0 : f64} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 7: a cap is finite.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects a cap that is positive and finite}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {cap = 0x7FF0000000000000 : f64} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 7: a cap is a number.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>) {
  // expected-error @+1 {{expects a cap that is positive and finite}}
  %o, %l = nn.attention %q, %k, %k scale 1.0 {cap = 0x7FF8000000000000 : f64} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention 8: starts need causal.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %s: tensor<2x16xi32>) {
  // expected-error @+1 {{expects `causal` beside starts of documents}}
  %o, %l = nn.attention %q, %k, %k from %s scale 1.0 : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>, tensor<2x16xi32>
  return
}

// -----

// attention 8: a start per query.
func.func @f(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %s: tensor<2x15xi32>) {
  // expected-error @+1 {{the starts}}
  %o, %l = nn.attention %q, %k, %k from %s scale 1.0 {causal} : tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x4x16xf32>, tensor<2x15xi32>
  return
}

// -----

// attention_grad 6: a window as in nn.attention.
func.func @f(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @+1 {{expects `causal` beside a window}}
  %0:3 = nn.attention_grad %q, %q, %q, %q, %l, %q scale 1.0 {window = 4 : i64} : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// attention_grad 7: a cap as in nn.attention.
func.func @f(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error @+1 {{expects a cap that is positive and finite}}
  %0:3 = nn.attention_grad %q, %q, %q, %q, %l, %q scale 1.0 {cap = 0.0 : f64} : tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>
  return
}

// -----

// embedding 1: the table has rank 2.
func.func @f(%i: tensor<2xi32>, %t: tensor<8xf32>) {
  // expected-error @+1 {{expects the table of rank 2}}
  %0 = nn.embedding %i, %t : tensor<2xi32>, tensor<8xf32> -> tensor<2x8xf32>
  return
}

// -----

// embedding 2: one row per index.
func.func @f(%i: tensor<2xi32>, %t: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the rows of type 'tensor<2x8xf32>'}}
  %0 = nn.embedding %i, %t : tensor<2xi32>, tensor<16x8xf32> -> tensor<2x16xf32>
  return
}

// -----

// embedding 3: equal element types.
func.func @f(%i: tensor<2xi32>, %t: tensor<16x8xf32>) {
  // expected-error @+1 {{expects the rows with elements of type 'f32'}}
  %0 = nn.embedding %i, %t : tensor<2xi32>, tensor<16x8xf32> -> tensor<2x8xbf16>
  return
}

// -----

// embedding_grad: as nn.embedding.
func.func @f(%i: tensor<2xi32>, %d: tensor<2x8xf32>) {
  // expected-error @+1 {{expects the rows of type 'tensor<2x9xf32>'}}
  %0 = nn.embedding_grad %i, %d : tensor<2xi32>, tensor<2x8xf32> -> tensor<16x9xf32>
  return
}

// -----

// cross_entropy 1: logits have classes.
func.func @f(%l: tensor<f32>, %t: tensor<i32>) {
  // expected-error @+1 {{expects the logits of rank 1 or more}}
  %0, %1 = nn.cross_entropy %l, %t ignore_index -100 : tensor<f32>, tensor<i32>, tensor<f32>
  return
}

// -----

// cross_entropy 1: targets have the leading dimensions of the logits.
func.func @f(%l: tensor<2x4x8xf32>, %t: tensor<8xi32>) {
  // expected-error @+1 {{expects the targets of type 'tensor<2x4xi32>'}}
  %0, %1 = nn.cross_entropy %l, %t ignore_index -100 : tensor<2x4x8xf32>, tensor<8xi32>, tensor<8xf32>
  return
}

// -----

// cross_entropy 1: one target per row.
func.func @f(%l: tensor<4x8xf32>, %t: tensor<8xi32>) {
  // expected-error @+1 {{expects the targets of type 'tensor<4xi32>'}}
  %0, %1 = nn.cross_entropy %l, %t ignore_index -100 : tensor<4x8xf32>, tensor<8xi32>, tensor<4xf32>
  return
}

// -----

// cross_entropy 2: a loss and lse per row.
func.func @f(%l: tensor<4x8xf32>, %t: tensor<4xi32>) {
  // expected-error @+1 {{expects lse of type 'tensor<4xf32>'}}
  %0, %1 = nn.cross_entropy %l, %t ignore_index -100 : tensor<4x8xf32>, tensor<4xi32>, tensor<8xf32>
  return
}

// -----

// cross_entropy 2: they are f32 for narrower logits.
func.func @f(%l: tensor<4x8xbf16>, %t: tensor<4xi32>) {
  // expected-error @+1 {{expects lse of type 'tensor<4xf32>'}}
  %0, %1 = nn.cross_entropy %l, %t ignore_index -100 : tensor<4x8xbf16>, tensor<4xi32>, tensor<4xbf16>
  return
}

// -----

// cross_entropy_grad: a cotangent per row, as nn.cross_entropy gives losses.
func.func @f(%l: tensor<4x8xf32>, %t: tensor<4xi32>, %s: tensor<f32>) {
  // expected-error @+1 {{expects lse of type 'tensor<4xf32>'}}
  %0 = nn.cross_entropy_grad %l, %t, %s, %s ignore_index -100 : tensor<4x8xf32>, tensor<4xi32>, tensor<f32>
  return
}

// -----

// cross_entropy_grad: the targets as for nn.cross_entropy.
func.func @f(%l: tensor<4x8xf32>, %t: tensor<8xi32>, %s: tensor<4xf32>) {
  // expected-error @+1 {{expects the targets of type 'tensor<4xi32>'}}
  %0 = nn.cross_entropy_grad %l, %t, %s, %s ignore_index -100 : tensor<4x8xf32>, tensor<8xi32>, tensor<4xf32>
  return
}

// -----

// count_labels: the counts have 64 bits.
func.func @f(%t: tensor<8xi32>) {
  // expected-error @+1 {{64-bit signless integer values, not empty and of at most 2^56 bytes, but got 'tensor<i32>'}}
  %0 = nn.count_labels %t ignore_index -100 : tensor<8xi32> -> tensor<i32>
  return
}

// -----

// count_labels 1: a number or a row.
func.func @f(%t: tensor<8x2xi32>) {
  // expected-error @+1 {{gives one count or a row of them, not 'tensor<2x2xi64>'}}
  %0 = nn.count_labels %t ignore_index -100 : tensor<8x2xi32> -> tensor<2x2xi64>
  return
}

// -----

// count_labels 2: equal parts.
func.func @f(%t: tensor<8x3xi32>) {
  // expected-error @+1 {{cannot split 'tensor<8x3xi32>' into 3 equal parts along its first dimension}}
  %0 = nn.count_labels %t ignore_index -100 : tensor<8x3xi32> -> tensor<3xi64>
  return
}

// -----

// divide_by_count 1: not rounded to bf16.
func.func @f(%s: tensor<bf16>, %n: tensor<i64>) {
  // expected-error @+1 {{but got 'tensor<bf16>'}}
  %0 = nn.divide_by_count %s, %n : tensor<bf16>, tensor<i64>
  return
}

// -----

// divide_by_count 2: a count for every sum.
func.func @f(%s: tensor<4xf32>, %n: tensor<i64>) {
  // expected-error @+1 {{expects the counts of type 'tensor<4xi64>'}}
  %0 = nn.divide_by_count %s, %n : tensor<4xf32>, tensor<i64>
  return
}

// -----

// divide_by_count 2: the counts are nn.count_labels's.
func.func @f(%s: tensor<f32>, %n: tensor<i32>) {
  // expected-error @+1 {{64-bit signless integer values, not empty and of at most 2^56 bytes, but got 'tensor<i32>'}}
  %0 = nn.divide_by_count %s, %n : tensor<f32>, tensor<i32>
  return
}

// -----

// mse_loss 1: equal operand types.
func.func @f(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) {
  // expected-error @+1 {{failed to verify that all of {prediction, target} have same type}}
  %0 = "nn.mse_loss"(%x, %y) {count = 32 : i64} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<f32>
  return
}

// -----

// mse_loss 2: the loss's type.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects the loss of type 'tensor<f32>'}}
  %0 = nn.mse_loss %x, %x count 32 : tensor<4x8xf32>, tensor<f64>
  return
}

// -----

// mse_loss 3: a positive count.
func.func @f(%x: tensor<4x8xf32>) {
  // expected-error @+1 {{expects a positive count, got -1}}
  %0 = nn.mse_loss %x, %x count -1 : tensor<4x8xf32>, tensor<f32>
  return
}

// -----

// mse_loss_grad: as nn.mse_loss.
func.func @f(%x: tensor<4x8xf32>, %d: tensor<f64>) {
  // expected-error @+1 {{expects the loss's cotangent of type 'tensor<f32>'}}
  %0 = nn.mse_loss_grad %x, %x, %d count 32 : tensor<4x8xf32>, tensor<f64>
  return
}

// -----

// mse_loss_grad: a positive count.
func.func @f(%x: tensor<4x8xf32>, %d: tensor<f32>) {
  // expected-error @+1 {{expects a positive count, got 0}}
  %0 = nn.mse_loss_grad %x, %x, %d count 0 : tensor<4x8xf32>, tensor<f32>
  return
}
