// RUN: fsdp-trace llama3_debug --batch 2 --seq 8 --set n_layers=2 --set n_kv_heads=4 --set vocab_size=32 | FileCheck %s
// RUN: fsdp-trace llama3_debug --batch 2 --seq 8 --set n_layers=2,n_kv_heads=4,vocab_size=32 | fsdp-opt --verify-each | FileCheck %s --check-prefix=PARSED
// RUN: fsdp-trace llama3_debug --seq 8 --set n_layers=1 --locations | FileCheck %s --check-prefix=LOC

// One block of Llama 3 with grouped heads as text. 16 heads of 256 / 16 = 16
// elements; 4 key and value heads, so wk and wv give 4 x 16 = 64 columns.
// Deviations of wo, w2, w3: 0.02 / sqrt(2 (layer + 1)) = 0.0141.., 0.01.
// The output layer's: 256^-1/2 = 1/16.

// Rotary frequencies of Llama 3.1, heads of 16 elements: a base of 500000, the
// last three divided by 8, the one before between.

// CHECK: #rotary_table = #nn.rotary_table<[1.000000e+00, 0.19392274474868576, 0.037606030930863933, 0.0072926647372171093, 5.2484616099295468E-4, 3.4281021959525912E-5, 6.6478698711812354E-6, 1.2891731721515574E-6]>
// CHECK-LABEL: module @llama3_debug
// CHECK-SAME: nn.model = {dim = 256 : i64, family = "llama3",
// CHECK-SAME: norm_eps = 1.000000e-05 : f64,
// CHECK-SAME: rope_halves = false,
// CHECK-NEXT: nn.buffer @rope_table : tensor<8x8x2xf32> init #rotary_table
// CHECK-NEXT: nn.parameter @tok_embeddings.weight : tensor<32x256xf32> init #nn.normal<std = 1.000000e+00>
// CHECK-NEXT: nn.parameter @layers.0.attention.wq.weight : tensor<256x256xf32> init #nn.normal<std = 2.000000e-02>
// CHECK-NEXT: nn.parameter @layers.0.attention.wk.weight : tensor<64x256xf32> init #nn.normal<std = 2.000000e-02>
// CHECK-NEXT: nn.parameter @layers.0.attention.wv.weight : tensor<64x256xf32> init #nn.normal<std = 2.000000e-02>
// CHECK-NEXT: nn.parameter @layers.0.attention.wo.weight : tensor<256x256xf32> init #nn.normal<std = 0.01414213562373{{[0-9]*}}>
// CHECK-NEXT: nn.parameter @layers.0.feed_forward.w1.weight : tensor<768x256xf32> init #nn.normal<std = 2.000000e-02>
// CHECK-NEXT: nn.parameter @layers.0.feed_forward.w2.weight : tensor<256x768xf32> init #nn.normal<std = 0.01414213562373{{[0-9]*}}>
// CHECK-NEXT: nn.parameter @layers.0.feed_forward.w3.weight : tensor<768x256xf32> init #nn.normal<std = 0.01414213562373{{[0-9]*}}>
// CHECK-NEXT: nn.parameter @layers.0.attention_norm.weight : tensor<256xf32> init #nn.ones
// CHECK-NEXT: nn.parameter @layers.0.ffn_norm.weight : tensor<256xf32> init #nn.ones
// CHECK-NEXT: nn.parameter @layers.1.attention.wq.weight
// CHECK:      nn.parameter @layers.1.attention.wo.weight : tensor<256x256xf32> init #nn.normal<std = 1.000000e-02>
// CHECK:      nn.parameter @norm.weight : tensor<256xf32> init #nn.ones
// CHECK-NEXT: nn.parameter @output.weight : tensor<32x256xf32> init #nn.normal<std = 6.250000e-02, cut = 3.000000e+00>

// CHECK-LABEL: func.func @forward(
// CHECK-SAME:    %[[TOKENS:.*]]: tensor<2x8xi32> {nn.name = "tokens"}
// CHECK-SAME:    %[[TARGETS:.*]]: tensor<2x8xi32> {nn.name = "targets"}
// CHECK-SAME:    -> (tensor<f32> {nn.name = "loss"}, tensor<2x8x32xf32> {nn.name = "logits"})
// CHECK-NEXT:    %[[ROPE:.*]] = nn.read @rope_table {{.*}}: tensor<8x8x2xf32>
// CHECK-NEXT:    %[[TABLE:.*]] = nn.read @tok_embeddings.weight
// CHECK-NEXT:    %[[X:.*]] = nn.embedding %[[TOKENS]], %[[TABLE]]

// The attention half: x + wo(attention(rotary(wq(n)), rotary(wk(n)), wv(n))).
// CHECK-NEXT:    %[[W:.*]] = nn.read @layers.0.attention_norm.weight
// CHECK-NEXT:    %[[N:.*]], %{{.*}} = nn.rms_norm %[[X]], %[[W]] eps 1.000000e-05
// CHECK-NEXT:    %[[WQ:.*]] = nn.read @layers.0.attention.wq.weight
// CHECK-NEXT:    %[[Q:.*]] = nn.linear %[[N]], %[[WQ]]
// CHECK-NEXT:    %[[QH:.*]] = nn.reshape %[[Q]] {nn.module = "layers.0.attention"} : tensor<2x8x256xf32> to tensor<2x8x16x16xf32>
// CHECK-NEXT:    %[[QR:.*]] = nn.rotary adjacent %[[QH]], %[[ROPE]]
// CHECK-NEXT:    %[[WK:.*]] = nn.read @layers.0.attention.wk.weight
// CHECK-NEXT:    %[[K:.*]] = nn.linear %[[N]], %[[WK]]
// CHECK-NEXT:    %[[KH:.*]] = nn.reshape %[[K]] {{.*}}: tensor<2x8x64xf32> to tensor<2x8x4x16xf32>
// CHECK-NEXT:    %[[KR:.*]] = nn.rotary adjacent %[[KH]], %[[ROPE]]
// CHECK-NEXT:    %[[WV:.*]] = nn.read @layers.0.attention.wv.weight
// CHECK-NEXT:    %[[V:.*]] = nn.linear %[[N]], %[[WV]]
// CHECK-NEXT:    %[[VH:.*]] = nn.reshape %[[V]] {{.*}}: tensor<2x8x64xf32> to tensor<2x8x4x16xf32>
// CHECK-NEXT:    %[[A:.*]], %{{.*}} = nn.attention %[[QR]], %[[KR]], %[[VH]] scale 2.500000e-01 {causal, nn.module = "layers.0.attention"}
// CHECK-NEXT:    %[[AJ:.*]] = nn.reshape %[[A]] {{.*}}: tensor<2x8x16x16xf32> to tensor<2x8x256xf32>
// CHECK-NEXT:    %[[WO:.*]] = nn.read @layers.0.attention.wo.weight
// CHECK-NEXT:    %[[O:.*]] = nn.linear %[[AJ]], %[[WO]]
// CHECK-NEXT:    %[[H:.*]] = nn.add %[[X]], %[[O]] {nn.module = "layers.0", nn.residual}

// The feed-forward half: h + w2(silu(w1(n)) * w3(n)).
// CHECK-NEXT:    %[[FW:.*]] = nn.read @layers.0.ffn_norm.weight
// CHECK-NEXT:    %[[F:.*]], %{{.*}} = nn.rms_norm %[[H]], %[[FW]] eps 1.000000e-05
// CHECK-NEXT:    %[[W1:.*]] = nn.read @layers.0.feed_forward.w1.weight
// CHECK-NEXT:    %[[G:.*]] = nn.linear %[[F]], %[[W1]]
// CHECK-NEXT:    %[[S:.*]] = nn.silu %[[G]]
// CHECK-NEXT:    %[[W3:.*]] = nn.read @layers.0.feed_forward.w3.weight
// CHECK-NEXT:    %[[U:.*]] = nn.linear %[[F]], %[[W3]]
// CHECK-NEXT:    %[[M:.*]] = nn.mul %[[S]], %[[U]]
// CHECK-NEXT:    %[[W2:.*]] = nn.read @layers.0.feed_forward.w2.weight
// CHECK-NEXT:    %[[D:.*]] = nn.linear %[[M]], %[[W2]]
// CHECK-NEXT:    %[[BLOCK:.*]] = nn.add %[[H]], %[[D]] {nn.module = "layers.0", nn.residual}
// CHECK-NEXT:    nn.read @layers.1.attention_norm.weight
// CHECK-NEXT:    nn.rms_norm %[[BLOCK]]

// The end: 2 x 8 rows of logits against as many targets; batch and sequence
// stay dimensions of their own.
// CHECK:         %[[OUT:.*]] = nn.read @output.weight
// CHECK-NEXT:    %[[LOGITS:.*]] = nn.linear %{{.*}}, %[[OUT]]
// CHECK-NEXT:    %[[ROWS:.*]], %{{.*}} = nn.cross_entropy %[[LOGITS]], %[[TARGETS]] ignore_index -100 {nn.module = "loss"} : tensor<2x8x32xf32>, tensor<2x8xi32>, tensor<2x8xf32>
// CHECK-NEXT:    %[[SUM:.*]] = nn.sum %[[ROWS]] [0, 1] {{.*}}: tensor<2x8xf32> to tensor<f32>
// CHECK-NEXT:    %[[COUNT:.*]] = nn.count_labels %[[TARGETS]] ignore_index -100 {{.*}}: tensor<2x8xi32> -> tensor<i64>
// CHECK-NEXT:    %[[LOSS:.*]] = nn.divide_by_count %[[SUM]], %[[COUNT]] {{.*}}: tensor<f32>, tensor<i64>
// CHECK-NEXT:    return %[[LOSS]], %[[LOGITS]]

// What is printed is what fsdp-opt parses and verifies.
// PARSED: func.func @forward

// Every op knows the module it comes from.
// LOC: nn.linear {{.*}} loc(#[[WQ:loc[0-9]+]])
// LOC: #[[WQ]] = loc("layers.0.attention.wq")
