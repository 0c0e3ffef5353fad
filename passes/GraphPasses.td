//===- GraphPasses.td - What is computed -------------------*- tablegen -*-===//
//
// The passes of Graph/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_GRAPH_PASSES
#define FSDP_GRAPH_PASSES

include "mlir/Pass/PassBase.td"

def MaskDocuments : Pass<"nn-mask-documents", "::mlir::ModuleOp"> {
  let summary = "Lets attention see the document of each query alone";
  let description = [{
    Gives every program with causal attention one more argument, "document_starts": where in its row the
    document of each token begins. Each causal nn.attention takes it as `starts`. So the documents of a row do
    not see each other, and packing several into a row changes nothing for any of them. Positions are still
    those in the row.

    The pass runs first, on the traced programs. It fails where attention has starts already, where queries have
    different numbers of rows or positions, and where no attention is causal.

    ```mlir
    func.func @forward(%tokens: tensor<2x8xi32> {nn.name = "tokens"}) {
      %o, %lse = nn.attention %q, %k, %v scale 5.0e-01 {causal} : …
    // becomes
    func.func @forward(%tokens: tensor<2x8xi32> {nn.name = "tokens"}, %starts: tensor<2x8xi32> {nn.name = "document_starts"}) {
      %o, %lse = nn.attention %q, %k, %v from %starts scale 5.0e-01 {causal} : …
    ```
  }];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Precision : Pass<"nn-precision", "::mlir::ModuleOp"> {
  let summary = "Turns an f32 program into a mixed-precision one";
  let description = [{
    Puts an nn.cast to the compute type after every read of a parameter. The types of what is computed from
    it follow, in program order:

    | precision in the op's record ([nn](nn.md)) | operands | results |
    |---|---|---|
    | Matrix (nn.linear, attention) | the narrowest of their types, or f32 if one is a wide parameter | that type; statistics f32 |
    | Wide (nn.exp, mean) | f32 | f32 |
    | Operands (nn.add, softmax, moves of elements) | the widest of their types | that type |
    | Input (nn.rms_norm, layer_norm, rotary) | the first keeps its type; the others get the widest of their types, or f32 where the record says so | the type of the first operand; statistics f32 |
    | Constant | | the type of its user's other operands |
    | Declared (nn.cast, cross_entropy) | unchanged | as written |
    | (return) | unchanged; a value that another op takes cast to f32 is returned in f32 | |

    An operand of another type is cast right before the op. An argument is cast at the start of the program.
    Each value is cast to a type once.

    Apart from these casts, arguments and buffers keep their types: a target is compared in f32, and only a
    matrix product narrows an f32 batch. A constant, or a value computed from constants alone, has no type of
    its own: it is cast to the type of the op's other operands. Integers keep their types.

    A parameter has one type in a program, even if the program reads it several times (a tied weight). That
    type is f32 if `wide` lists the parameter, or if it is an operand of nn.cast or of an op that takes f32
    (nn.rotary takes its table so), directly or through moves of elements. Declarations stay f32, and so do
    the optimizer and its state.

    A program that already holds a bf16 tensor is left unchanged. The pass fails on f64, on a program that is
    already differentiated, and on ops without a rule above.

    ```mlir
    nn.parameter @w : tensor<8x4xf32> init #nn.zeros
    %w = nn.read @w : tensor<8x4xf32>
    %y = nn.linear %x, %w : tensor<2x4xf32>, tensor<8x4xf32> -> tensor<2x8xf32>
    %z = nn.mse_loss %y, %t count 16 : tensor<2x8xf32>, tensor<f32>
    // becomes
    %b = nn.cast %x : tensor<2x4xf32> to tensor<2x4xbf16>
    %w = nn.read @w : tensor<8x4xf32>
    %v = nn.cast %w : tensor<8x4xf32> to tensor<8x4xbf16>
    %y = nn.linear %b, %v : tensor<2x4xbf16>, tensor<8x4xbf16> -> tensor<2x8xbf16>
    %f = nn.cast %y : tensor<2x8xbf16> to tensor<2x8xf32>
    %z = nn.mse_loss %f, %t count 16 : tensor<2x8xf32>, tensor<f32>
    ```
  }];
  let options = [
    Option<"computeDtype", "compute_dtype", "::fsdp::ComputeType",
           /*default=*/"::fsdp::ComputeType::BF16",
           "The type that parameters are cast to",
           [{::fsdp::SpelledValues<::fsdp::ComputeType>()}]>,
    ListOption<"wide", "wide", "std::string",
               "Parameters and modules that stay f32, as patterns like \"norm,layers.*.attention_norm\"">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Differentiate : Pass<"nn-differentiate", "::mlir::ModuleOp"> {
  let summary = "Produces the training and the evaluation program from the forward program";
  let description = [{
    Clones the program `function` as @train, which returns only the result named "loss", and renames the
    original to @evaluate. At the end of @train it puts `nn.seed` and the reverse pass: the ops in reverse
    program order, each differentiated by its own rule (DifferentiableOpInterface). An `nn.gradient` follows
    as soon as the cotangent of a trained parameter is complete.

    Only ops on a path from a trained parameter (an nn.parameter without nn.frozen) to the loss are
    differentiated. An op on such a path without a reverse rule is an error that names it. A parameter that
    the loss does not depend on gets no nn.gradient.

    **Order of sums.** A value with several uses gets its contributions in the order in which they arrive:
    in reverse program order of the users, and by operand within one user. Each contribution is added to the
    sum so far (`nn.add sum, new`). This order is part of the numerical contract.

    An op of the backward pass carries the location and the module (`nn.module`) of the forward op that it
    belongs to. A sum of contributions belongs to the op that produced the last one. Ops whose results are
    unused are erased in the end (the logits of a training step, a cotangent that no op needs).

    **Parts.** The loss of a model is a mean over the labels of the whole batch. With `parts` = N, the loss
    of @train is the mean of the means of N equal parts of the batch. Data-parallel ranks that average the
    gradients of their own losses train on that mean (DDP, FSDP2). It differs where one part ignores more
    labels than another. @evaluate keeps the mean over all labels. The rows of the loss are split along the
    dimension that has the examples of the batch, wherever the program has moved it. It is an error if no
    dimension has them.

    **Split.** With `split` the program needs no loss. It keeps its name and returns, as further results
    `residual.N`, what its reverse pass needs and cannot compute again from parameters and constants alone.
    The reverse pass does not repeat writes, so what is read from a tensor that the program writes is a
    residual too. The reverse pass is the program `backward`. Its arguments are the residuals, the arguments
    that it needs, and `<result>.cotangent` for every floating-point result. It writes the gradients of
    parameters and returns `<argument>.cotangent` for the arguments in `wrt`. Run one after the other with a
    cotangent of 1, the two programs compute what @train computes, to the bit.

    ```mlir
    func.func @forward(%x: tensor<2x4xf32> {nn.name = "x"}) -> (tensor<2x4xf32> {nn.name = "y"}) {
      %e = nn.exp %x : tensor<2x4xf32>
      %y = nn.neg %e : tensor<2x4xf32>
      return %y : tensor<2x4xf32>
    }
    // becomes, with split=true wrt=x,
    func.func @forward(%x: tensor<2x4xf32> {nn.name = "x"}) -> (tensor<2x4xf32> {nn.name = "y"}, tensor<2x4xf32> {nn.name = "residual.0"}) {
      %e = nn.exp %x : tensor<2x4xf32>
      %y = nn.neg %e : tensor<2x4xf32>
      return %y, %e : tensor<2x4xf32>, tensor<2x4xf32>
    }
    func.func @backward(%dy: tensor<2x4xf32> {nn.name = "y.cotangent"}, %r: tensor<2x4xf32> {nn.name = "residual.0"}) -> (tensor<2x4xf32> {nn.name = "x.cotangent"}) {
      %de = nn.neg %dy : tensor<2x4xf32>
      %dx = nn.mul %de, %r : tensor<2x4xf32>
      return %dx : tensor<2x4xf32>
    }
    ```

    ```mlir
    func.func @forward(...) -> (tensor<f32> {nn.name = "loss"}, ...)
    // becomes
    func.func @train(...) -> (tensor<f32> {nn.name = "loss"}) {
      ...
      %seed = nn.seed %loss : tensor<f32>
      ...
      nn.gradient @w, %g : tensor<4x4xf32>
      return %loss : tensor<f32>
    }
    func.func @evaluate(...) -> (tensor<f32> {nn.name = "loss"}, ...)
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"forward\"",
           "The program to differentiate">,
    Option<"parts", "parts", "int64_t", /*default=*/"1",
           "Equal parts of the batch; the training loss is the mean of their mean losses">,
    Option<"split", "split", "bool", /*default=*/"false",
           "Produce two programs: the forward pass, and the reverse pass of all its results">,
    Option<"backward", "backward", "std::string", /*default=*/"\"backward\"",
           "With `split`: name of the program with the reverse pass">,
    ListOption<"wrt", "wrt", "std::string",
           "With `split`: names of the arguments whose cotangents are returned, besides "
           "the gradients of parameters">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Accumulate : Pass<"nn-accumulate", "::mlir::ModuleOp"> {
  let summary = "Splits a training step into several microbatches";
  let description = [{
    Splits the program `function`, which nn-differentiate has produced, into the programs of one step, and
    writes the step on the module as `nn.steps`:

    | program | runs | does |
    |---|---|---|
    | @gather | once, if `keep-gathers` | gathers every sharded parameter from its storage placement into its compute placement, in the buffer `<parameter>.gathered` (for a second gather `<parameter>.gathered.2`), which @accumulate reads |
    | @count | once | counts the labels of all microbatches of the step; its argument `<targets>.of_step` has the slices of all microbatches, one after the other |
    | @accumulate | `microbatches` times | runs the forward and the backward pass of one slice, divides by that count, and adds to `loss_sum` and `<parameter>.grad_sum` |
    | @update | once | takes the sums as the loss and the gradients of the step, and sets them to zero |

    So the loss is the mean over all labels that count, of all microbatches on all ranks, however many labels
    each microbatch ignores.

    **What adds up.** The losses and gradients of the microbatches must add up to those of the step. The pass
    follows this through the program by the sharding rules of the ops, as if the microbatches were ranks over
    which the first dimension of every argument is split. Of every value, each microbatch then has the same, a
    slice, or a partial. A term that is the same for each microbatch (a regulariser, before or after the
    division by the count) would count once per microbatch and is an error. So is an op that combines examples
    by anything but a sum (a mean or a maximum over the batch, the logarithm of a sum).

    **Order of sums.** Each microbatch is reduced to the storage placement of the parameter and added there,
    in f32, in the order of the microbatches. This rounds differently from one larger batch, and is part of
    the numerical contract. With `reduce-once` the sums are partial over the ranks that share a batch: each
    rank adds up its own microbatches in f32, and @update reduces the result. This rounds differently again.
    `keep-gathers` changes no bit.

    The pass runs before fsdp-optimizer, whose step belongs to @update. Without fsdp-optimizer the gradients
    of the step are written to `<parameter>.grad`.

    The additions stand at the end of @accumulate, where they keep no reduction from running beside the
    backward pass. nn-sum-blocks moves those that wait for none.

    ```mlir
    func.func @train(%x: tensor<2x8xi32> {nn.name = "targets"}) -> (tensor<f32> {nn.name = "loss"}) {
      ...
      %count = nn.count_labels %x ignore_index -100 : tensor<2x8xi32> -> tensor<i64>
      %loss = nn.divide_by_count %sum, %count : tensor<f32>, tensor<i64>
      ...
      nn.gradient @w, %g : tensor<4x4xf32>
      return %loss : tensor<f32>
    }
    // becomes, with microbatches=4,
    func.func @count(%x: tensor<8x8xi32> {nn.name = "targets.of_step"}) -> (tensor<i64> {nn.name = "label_count"})
    func.func @accumulate(%x: tensor<2x8xi32> {nn.name = "targets"}, %count: tensor<i64> {nn.name = "label_count"}) {
      ...
      nn.accumulate @loss_sum, %loss : tensor<f32>
      nn.accumulate @w.grad_sum, %g : tensor<4x4xf32>
      return
    }
    func.func @update() -> (tensor<f32> {nn.name = "loss"}) {
      %loss = nn.read @loss_sum : tensor<f32>
      %g = nn.read @w.grad_sum : tensor<4x4xf32>
      nn.gradient @w, %g : tensor<4x4xf32>
      nn.clear [@loss_sum, @w.grad_sum]
      return %loss : tensor<f32>
    }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"train\"",
           "The training program">,
    Option<"microbatches", "microbatches", "int64_t", /*default=*/"2",
           "Microbatches of a step, from 2 to 2^20">,
    Option<"keepGathers", "keep-gathers", "bool", /*default=*/"false",
           "Gather parameters once per step instead of once per microbatch">,
    Option<"reduceOnce", "reduce-once", "bool", /*default=*/"false",
           "Reduce gradients once per step instead of once per microbatch">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def Optimizer : Pass<"fsdp-optimizer", "::mlir::ModuleOp"> {
  let summary = "Replaces the gradients by an exact norm, clipping and one AdamW step";
  let description = [{
    Works on @train, or on @update where nn-accumulate has split the step. It adds the arguments "lr"
    (tensor<f32>) and "step" (tensor<i32>, from 1) and the result "grad_norm" (tensor<f32>). It declares two
    moments per trained parameter (`<parameter>.exp_avg`, `.exp_avg_sq`, with the parameter's placement), and
    replaces all nn.gradient by

    ```mlir
    %m = nn.abs_max %g0, %g1, ...
    %s = nn.sum_squares %m, %g0, %g1, ...
    %norm, %c = nn.clip_coefficient %m, %s max_norm 1.0
    nn.adamw [@w0, @w1] moments ... (%g0, %g1) lr %lr step %step clip %c
    ```

    Types are logical; fsdp-propagate adds the two small all_reduces. The norm is exact (integer sums), hence
    the same under every placement. Each element must be counted on one rank only. That holds over the mesh
    axes of its storage placement; over other axes every rank has the same. So gradients whose storage
    placements have different axes get an nn.sum_squares each.

    All these ops belong to the module "optimizer". The reductions of the norm over ranks belong to its
    submodules "optimizer.gradient_maximum" and "optimizer.gradient_norm".

    With `max_norm` 0 nothing is clipped, and the norm is computed and returned all the same. One
    multi-tensor nn.adamw updates the parameters, in registration order.
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"train\"",
           "The training program">,
    Option<"beta1", "beta1", "double", /*default=*/"0.9", "Decay of the first moment">,
    Option<"beta2", "beta2", "double", /*default=*/"0.95", "Decay of the second moment">,
    Option<"eps", "eps", "double", /*default=*/"1e-8", "Added to the root of the second moment">,
    Option<"weightDecay", "weight_decay", "double", /*default=*/"0.1", "Decoupled weight decay">,
    Option<"maxNorm", "max_norm", "double", /*default=*/"1.0",
           "Norm to which gradients are clipped; 0: no clipping">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def FoldCasts : Pass<"nn-fold-casts", "::mlir::ModuleOp"> {
  let summary = "Lets the optimizer read bf16 gradients as they are, and rounds rows instead of a table";
  let description = [{
    On a rank that has no sum over ranks to make of it, a gradient is a bf16 product that fsdp-expand widens:
    6 bytes of traffic for each element, and 4 instead of 2 until the step ends. nn.abs_max, nn.sum_squares,
    nn.adamw and nn.accumulate widen what they read by themselves. So a cast from bf16 to f32 that only these ops
    read is left out:

    ```mlir
    %g = nn.cast %dw : tensor<4x8xbf16> to tensor<4x8xf32>
    %m = nn.abs_max %g : tensor<4x8xf32> -> tensor<f32>
    ```

    becomes

    ```mlir
    %m = nn.abs_max %dw : tensor<4x8xbf16> -> tensor<f32>
    ```

    Widening is exact, so no bit changes. A cast with another reader stays.

    A rank that has the whole table of an embedding rounds it to bf16 to look a few rows up. Where nothing else reads
    the rounded table, and half of its rows or fewer are looked up, the rows are rounded instead, to the same bits:

    ```mlir
    %t = nn.cast %table : tensor<64x8xf32> to tensor<64x8xbf16>
    %e = nn.embedding %ids, %t : tensor<4xi32>, tensor<64x8xbf16> -> tensor<4x8xbf16>
    ```

    becomes

    ```mlir
    %r = nn.embedding %ids, %table : tensor<4xi32>, tensor<64x8xf32> -> tensor<4x8xf32>
    %e = nn.cast %r : tensor<4x8xf32> to tensor<4x8xbf16>
    ```
  }];
}

def ComputeCopy : Pass<"nn-compute-copy", "::mlir::ModuleOp"> {
  let summary = "Keeps parameters in bf16 beside f32, written by the optimizer";
  let description = [{
    In mixed precision every step casts each parameter before it is gathered or used: 6 bytes of traffic for each
    element of a rank. The optimizer, which has the new value in a register, can write it in bf16 for 2. After
    fsdp-expand, this pass

    - declares for every parameter that a program reads in bf16 a buffer `<parameter>.compute_copy`, with the
      parameter's placement;
    - lets programs read the copy where they read the parameter and cast it;
    - lets nn.adamw write the copy. Parameters that are read in f32 are updated by an nn.adamw of their own;
    - adds the program @copy_parameters, which casts all parameters. The runtime runs it before the next program
      after it has initialised or loaded a parameter.

    ```mlir
    %w = nn.read @w : tensor<4x8xf32>
    %c = nn.cast %w : tensor<4x8xf32> to tensor<4x8xbf16>
    ```

    becomes

    ```mlir
    %c = nn.read @w.compute_copy : tensor<4x8xbf16>
    ```

    A copy has the bits of the cast, so no bit changes. It takes 2 bytes for each element of the parameters that a
    rank stores, and no checkpoint has it.
  }];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::mlir::func::FuncDialect"];
}

def WideProducts : Pass<"nn-wide-products", "::mlir::func::FuncOp"> {
  let summary = "Joins products of one input to one product";
  let description = [{
    A layer multiplies its input by three weights for attention and by two for a gated feed-forward. As one product
    with the weights below each other (nn.concat, which exec produces in place) there are fewer launches, and the
    gradient of the input is one sum instead of several that are rounded and added: 12 products for a layer of Llama
    instead of 21.

    Queries, keys and values: where nn.attention takes `rotary(x wq^T)`, `rotary(x wk^T)` and `x wv^T`, as heads,
    nn.split_heads takes the heads of one product apart. nn.join_heads puts their gradients side by side.

    Gated feed-forward: what lies between `x w1^T`, `x w3^T` and the next product is element by element, so it can
    as well have the transposed shape. Then each part of the wide product is a slice that lies in one piece:

    ```mlir
    %g = nn.linear %x, %w1 : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
    %u = nn.linear %x, %w3 : tensor<8x4xf32>, tensor<6x4xf32> -> tensor<8x6xf32>
    %a = nn.silu %g : tensor<8x6xf32>
    %h = nn.mul %a, %u : tensor<8x6xf32>
    %y = nn.linear %h, %w2 : tensor<8x6xf32>, tensor<4x6xf32> -> tensor<8x4xf32>
    ```

    becomes

    ```mlir
    %w = nn.concat %w1, %w3 dim 0 : tensor<6x4xf32>, tensor<6x4xf32> to tensor<12x4xf32>
    %p = nn.matmul %w, %x {transpose_rhs} : tensor<12x4xf32>, tensor<8x4xf32> -> tensor<12x8xf32>
    %g = nn.slice %p [0, 0] : tensor<12x8xf32> to tensor<6x8xf32>
    %u = nn.slice %p [6, 0] : tensor<12x8xf32> to tensor<6x8xf32>
    %a = nn.silu %g : tensor<6x8xf32>
    %h = nn.mul %a, %u : tensor<6x8xf32>
    %y = nn.matmul %h, %w2 {transpose_lhs, transpose_rhs} : tensor<6x8xf32>, tensor<4x6xf32> -> tensor<8x4xf32>
    ```

    The bits of products change, and those of the gradient of the input. They are the same in every mode and plan.
    Left as they are: products with a bias, parts that something else reads (a norm of the heads), products of which
    only some have gradients, and a feed-forward whose input has none. Weights that are stored are read where they
    lie, one after another (exec-lower); what lies somewhere else already is copied.
  }];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def ChunkLoss : Pass<"nn-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "Computes logits and their cross entropy one chunk of rows at a time";
  let description = [{
    The logits of a step and their gradient are the largest tensors of a model with many classes: one number
    per token and class. This pass splits a rank's rows of a loss (nn.cross_entropy of nn.linear) into
    `chunks` equal parts. Each chunk is projected to logits, reduced to one loss per row, differentiated and
    multiplied back to the gradients of input and weight before the next chunk begins. So the logits and their
    gradient never have more rows than one chunk.

    This needs the cotangent of the losses before the losses are known. The cotangent does not depend on the
    losses: it is one over the count of labels, which the targets determine. The pass computes it before the
    chunks, from a constant 1 instead of nn.seed. So no product is computed twice, as it would be if the
    backward pass computed the logits of every chunk again.

    The last chunk is differentiated after nn.seed, where all of the loss was before. Its ops keep their
    addresses ("bwd output dw"), they hide the first gathers of the backward pass, and the parameters that
    the forward pass uses last and the backward pass first stay the same. The gradients of the other chunks
    have the phase "fwd".

    **Bits.** The losses of rows, their log-sum-exp and the gradient of the projection's input are rows of
    the same products. They have the same bits if the library computes a row in the same way in a matrix of
    fewer rows. The gradients of weight and bias are sums over rows. They are added up in f32 from chunk to
    chunk (`sum` of nn.linear_weight_grad) and rounded once, in another order than without chunks. This order
    is part of the numerical contract.

    **Memory.** The gradient of the weight is live in f32 between the chunks. In bf16 that is twice the bytes
    of the gradient itself. So fewer bytes are live at the loss if a rank has more rows than about the width
    of the model. If the peak of the step is elsewhere (at an attention whose library needs a large
    workspace), the arena does not shrink.

    The pass runs after fsdp-expand, on the program of one rank, whose rows are its own however batch,
    sequence or loss are sharded. Programs without gradients are left unchanged: @evaluate returns all logits.

    It is an error if no program has such a loss, if `chunks` does not divide a rank's rows, if another op
    produces the logits (a policy that shards the classes gathers them), if another op uses them, or if the
    cotangent of the losses depends on the losses.

    ```mlir
    %logits = nn.linear %h, %w : tensor<8x4xf32>, tensor<16x4xf32> -> tensor<8x16xf32>
    %rows, %lse = nn.cross_entropy %logits, %t ignore_index -100 : tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>
    …
    %seed = nn.seed %loss : tensor<f32>
    …
    %d = nn.cross_entropy_grad %logits, %t, %lse, %drows ignore_index -100 : tensor<8x16xf32>, tensor<8xi32>, tensor<8xf32>
    %dh = nn.linear_input_grad %d, %w : tensor<8x16xf32>, tensor<16x4xf32> -> tensor<8x4xf32>
    %dw = nn.linear_weight_grad %d, %h : tensor<8x16xf32>, tensor<8x4xf32> -> tensor<16x4xf32>
    // becomes, with chunks=2,
    %h0 = nn.slice %h [0, 0] : tensor<8x4xf32> to tensor<4x4xf32>
    %logits0 = nn.linear %h0, %w : tensor<4x4xf32>, tensor<16x4xf32> -> tensor<4x16xf32>
    %rows0, %lse0 = nn.cross_entropy %logits0, %t0 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %d0 = nn.cross_entropy_grad %logits0, %t0, %lse0, %drows0 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %dh0 = nn.linear_input_grad %d0, %w : tensor<4x16xf32>, tensor<16x4xf32> -> tensor<4x4xf32>
    %dw0 = nn.linear_weight_grad %d0, %h0 : tensor<4x16xf32>, tensor<4x4xf32> -> tensor<16x4xf32>
    %h1 = nn.slice %h [4, 0] : tensor<8x4xf32> to tensor<4x4xf32>
    %logits1 = nn.linear %h1, %w : tensor<4x4xf32>, tensor<16x4xf32> -> tensor<4x16xf32>
    %rows1, %lse1 = nn.cross_entropy %logits1, %t1 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %rows = nn.concat %rows0, %rows1 dim 0 : tensor<4xf32>, tensor<4xf32> to tensor<8xf32>
    …
    %seed = nn.seed %loss : tensor<f32>
    …
    %d1 = nn.cross_entropy_grad %logits1, %t1, %lse1, %drows1 ignore_index -100 : tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>
    %dh1 = nn.linear_input_grad %d1, %w : tensor<4x16xf32>, tensor<16x4xf32> -> tensor<4x4xf32>
    %dh = nn.concat %dh0, %dh1 dim 0 : tensor<4x4xf32>, tensor<4x4xf32> to tensor<8x4xf32>
    %dw = nn.linear_weight_grad %d1, %h1 sum %dw0 : tensor<4x16xf32>, tensor<4x4xf32>, tensor<16x4xf32> -> tensor<16x4xf32>
    ```
  }];
  let options = [
    Option<"chunks", "chunks", "int64_t", /*default=*/"1",
           "Chunks of a rank's rows; 1: leave programs unchanged">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def SumBlocks : Pass<"nn-sum-blocks", "::mlir::func::FuncOp"> {
  let summary = "Adds gradients to their sums over microbatches block by block";
  let description = [{
    nn-accumulate adds the gradients of a microbatch to their sums at its end, so that no addition keeps a reduction
    from running beside the backward pass. Until then all gradients are live. Which of them no reduction gives is
    known after fsdp-expand: those of a rank that has no other, and all of them where a step reduces once. This pass
    moves their nn.accumulate to the last gradient of the same block of the model, outside of blocks to the gradient
    itself. exec-lower merges those that follow each other, so one call adds a block.

    ```mlir
    %dv = nn.linear_weight_grad %a, %x {nn.module = "layers.1.wv"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %dw = nn.linear_weight_grad %b, %x {nn.module = "layers.1.wq"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    %du = nn.linear_weight_grad %c, %x {nn.module = "layers.0.wq"} : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<8x8xf32>
    nn.accumulate @layers.1.wv.grad_sum, %dv {nn.module = "layers.1.wv"} : tensor<8x8xf32>
    nn.accumulate @layers.1.wq.grad_sum, %dw {nn.module = "layers.1.wq"} : tensor<8x8xf32>
    nn.accumulate @layers.0.wq.grad_sum, %du {nn.module = "layers.0.wq"} : tensor<8x8xf32>
    ```

    The additions of `layers.1` come before `%du`. An nn.accumulate of a scalar stays, and so does that of a buffer
    which the program uses otherwise. No bit changes: each sum has the same addends in the same order.

    With `in-products`, an nn.linear_weight_grad that nothing else reads becomes an nn.accumulate_product. The product
    then adds to the sum in f32 without being rounded or stored, so bits change:

    ```mlir
    nn.accumulate_product @layers.1.wv.grad_sum, %a, %x {nn.module = "layers.1.wv"} : tensor<2x8xf32>, tensor<2x8xf32>
    ```
  }];
  let options = [
    Option<"inProducts", "in-products", "bool", /*default=*/"false",
           "Let products add to the sums themselves">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Fuse : Pass<"nn-fuse", "::mlir::func::FuncOp"> {
  let summary = "Groups chains of pointwise and row ops into kernels";
  let description = [{
    Ops of KernelOpInterface that share an iteration space and feed one another become one nn.fusion. No bit
    changes: every op of a fusion still rounds to its declared type, and reductions keep their order.

    ```mlir
    %h = nn.add %x, %r : tensor<4x8xf32>
    %y, %rstd = nn.rms_norm %h, %w eps 1.0e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>
    %z = nn.linear %y, %v : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<4x2xf32>
    // becomes
    %y = nn.fusion(%x, %r, %w) : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32> {
      …
    }
    %z = nn.linear %y, %v : tensor<4x8xf32>, tensor<2x8xf32> -> tensor<4x2xf32>
    ```

    Where something of the forward pass is computed again, kernels then join an earlier one that reads the same
    value element by element, so that it is read once. One of the two has what is computed again: a plan that
    recomputes nothing keeps the kernels of chains. The later kernel goes to the place of the earlier if

    - all that it reads exists there, and neither a wait nor another of the ops below stands between;
    - it is the last to use as many bytes as it gives. So after the earlier kernel no more bytes are alive than
      without it; in that kernel its results are alive too.

    ```mlir
    %g = nn.linear %x, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %u = nn.linear %g, %w : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
    %dm = nn.linear_input_grad %dy, %v : tensor<4x2xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
    %g2 = nn.recompute_from %g : tensor<4x8xf32> -> tensor<4x8xf32>
    %s = nn.silu %g2 {fsdp.origin = #fsdp.origin<"again silu">} : tensor<4x8xf32>
    %m = nn.mul %s, %u {fsdp.origin = #fsdp.origin<"again mul">} : tensor<4x8xf32>
    %dv = nn.linear_weight_grad %dy, %m : tensor<4x2xf32>, tensor<4x8xf32> -> tensor<2x8xf32>
    %ds = nn.mul %dm, %u : tensor<4x8xf32>
    %du = nn.mul %dm, %s : tensor<4x8xf32>
    %dg = nn.silu_grad %g, %ds : tensor<4x8xf32>
    %dw = nn.linear_weight_grad %dg, %du : tensor<4x8xf32>, tensor<4x8xf32> -> tensor<8x8xf32>
    // becomes
    %k:3 = nn.fusion(%g2, %u, %dm) : (tensor<4x8xf32>, …) -> (tensor<4x8xf32>, …) {
      …
    }
    %dv = nn.linear_weight_grad %dy, …
    ```

    A kernel computes an element again in each of its stages (every reduction, and the final map). So an op
    that reduces does not join a value that needs exp, log, tanh or erf.

    A sum over rows (the weight gradient of a norm, the gradient of a bias) joins a kernel before it that has these
    rows and computes or reads the same values, so that they are read once. The kernel gives one sum for each block
    of 32 rows, and a second kernel adds these in the order of a sum alone. So no bit changes. The rows are whole
    blocks, `least-row-blocks` of them or more: fewer leave much of a GPU idle. Columns are a multiple of 8, and
    those of all sums of a kernel at most 16,384: a GPU's thread keeps its sums in registers.

    ```mlir
    %g = nn.add %a, %b : tensor<64x8xf32>
    %dx = nn.rms_norm_input_grad %x, %w, %rstd, %g : tensor<64x8xf32>, tensor<8xf32>, tensor<64xf32>
    %dw = nn.rms_norm_weight_grad %x, %rstd, %g : tensor<64x8xf32>, tensor<64xf32> to tensor<8xf32>
    %n = nn.neg %dw : tensor<8xf32>
    %z = nn.linear %dx, %v : tensor<64x8xf32>, tensor<2x8xf32> -> tensor<64x2xf32>
    // becomes
    %k:2 = nn.fusion(%a, %b, %x, %w, %rstd) : (tensor<64x8xf32>, …) -> (tensor<64x8xf32>, tensor<8xf32>) {
      …
    }
    %n = nn.neg …
    ```

    A fusion belongs to the innermost module that contains its members; the members keep their own.
    It never crosses nn.seed, nn.adamw, a collective, or the start or the wait of one. So the pass runs after
    fsdp-overlap. It takes linear time.
  }];
  let options = [
    Option<"leastRowBlocks", "least-row-blocks", "int64_t", "1",
           "Blocks of 32 rows of which a kernel that sums over rows has at least as many">
  ];
}

#endif // FSDP_GRAPH_PASSES
