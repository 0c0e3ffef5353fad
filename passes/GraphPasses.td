//===- GraphPasses.td - What is computed -------------------*- tablegen -*-===//
//
// The passes of Graph/, in pipeline order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_GRAPH_PASSES
#define FSDP_GRAPH_PASSES

include "mlir/Pass/PassBase.td"

def Precision : Pass<"nn-precision", "::mlir::ModuleOp"> {
  let summary = "Makes a mixed-precision program of an f32 one";
  let description = [{
    Puts an nn.cast to the compute type behind every read of a parameter; what is
    computed from it follows, in program order:

    | precision in the op's record ([nn](nn.md)) | operands | results |
    |---|---|---|
    | Matrix (nn.linear, attention) | the narrowest of their types, or f32 if one is a wide parameter | that type; statistics f32 |
    | Wide (nn.exp, mean) | f32 | f32 |
    | Operands (nn.add, softmax, moves of elements) | the widest of their types | that type |
    | Input (nn.rms_norm, layer_norm, rotary) | the first as it comes, the others the widest of their types, or f32 where the record says so | the first one's type; statistics f32 |
    | Constant | | that of who takes it |
    | Declared (nn.cast, cross_entropy) | as they come | as written |
    | (return) | as they come; in f32 what another op takes cast to f32 | |

    Operands of other types are cast right before the op, arguments at the beginning,
    a value once to a type. Arguments and buffers keep their types otherwise: a target
    is compared in f32, and only a matrix product makes an f32 batch narrow. A constant, and what is
    computed from constants alone, has no type of its own: it is cast to that of
    the op's other operands. Integers stay.

    A parameter has one type in a program, also if it is read several times (a tied
    one). It is f32 where `wide` lists it, or where it is an operand of an op that
    takes f32 (nn.rotary its table) or of nn.cast, moves of elements in
    between not counted. Declarations stay f32, and so do the optimizer and its
    state.

    A program that holds a bf16 tensor has its precision already and stays as it
    is. Fails on f64, on a program that is differentiated already, and on ops
    without a rule above.

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
           "What parameters are cast to",
           [{::fsdp::SpelledValues<::fsdp::ComputeType>()}]>,
    ListOption<"wide", "wide", "std::string",
               "Parameters and modules that stay f32: patterns like \"norm,layers.*.attention_norm\"">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Differentiate : Pass<"nn-differentiate", "::mlir::ModuleOp"> {
  let summary = "Makes the training and the evaluation program from the forward one";
  let description = [{
    Clones the program `function` as @train, which gives the result named
    "loss" alone, and renames the original to @evaluate. At the end of @train
    it puts `nn.seed` and the reverse pass: ops in reverse program order, each
    by its own rule (DifferentiableOpInterface), and `nn.gradient` as soon as
    a trained parameter's cotangent is complete.

    Only ops on a path from a trained parameter (an nn.parameter without
    nn.frozen) to the loss are differentiated; one without a reverse rule is
    an error that names it. A parameter the loss does not depend on gets no
    nn.gradient.

    **Order of sums.** A value with several uses gets its contributions in the
    order in which they arrive: reverse program order of the users, within one
    user by operand; each is added to the sum so far (`nn.add sum, new`).
    This order is part of the numerical contract.

    Ops of the backward pass carry the location and the module (`nn.module`)
    of the op they belong to; a sum of contributions is of the op that made
    the last one.
    What nothing uses in the end is erased (the logits of a training step, a
    cotangent nobody asked for).

    **Parts.** The loss of a model is a mean over the labels of the whole batch.
    With `parts` that of @train is the mean of the means of so many equal parts
    of the batch: what data-parallel ranks that average their own losses'
    gradients train with (DDP, FSDP2). It differs where labels are ignored, more
    in one part than in another. @evaluate keeps the mean over all labels. The rows
    of the loss are cut along the dimension that has the examples of the batch,
    wherever the program has moved it; where none has, that is an error.

    **Split.** With `split` the program need have no loss. It stays, and gets as
    further results `residual.N` what its reverse pass needs of it and cannot
    make again from parameters and constants alone; what the program writes it
    writes once, and a read of that is no such parameter. The reverse pass is the
    program `backward`: it takes those, the arguments that it needs and
    `<result>.cotangent` for every floating result, writes the gradients of
    parameters, and gives `<argument>.cotangent` for the arguments in `wrt`. Run
    one behind the other, with a cotangent of 1, the two compute what @train
    does, to the bit.

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
           "Parts of the batch, the mean of whose mean losses is trained on">,
    Option<"split", "split", "bool", /*default=*/"false",
           "Two programs: the forward pass, and the reverse pass of any results">,
    Option<"backward", "backward", "std::string", /*default=*/"\"backward\"",
           "With `split`: the name of the reverse pass">,
    ListOption<"wrt", "wrt", "std::string",
           "With `split`: names of arguments whose cotangents are wanted, besides "
           "the gradients of parameters">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Accumulate : Pass<"nn-accumulate", "::mlir::ModuleOp"> {
  let summary = "Cuts a training step into several microbatches";
  let description = [{
    Takes the program `function`, which nn-differentiate has made, apart into the
    programs of one step, and writes the step on the module as `nn.steps`:

    | program | runs | does |
    |---|---|---|
    | @gather | once, if `keep-gathers` | brings every parameter that rests cut to where it is computed with, in the buffer `<parameter>.gathered` (of a second gather `<parameter>.gathered.2`) that @accumulate reads |
    | @count | once | counts the labels of all microbatches of the step: its argument `<targets>.of_step` has their slices one behind the other |
    | @accumulate | `microbatches` times | the forward and the backward pass of one slice, divided by that count, added to `loss_sum` and `<parameter>.grad_sum` |
    | @update | once | takes the sums as the step's loss and gradients, and sets them to zero |

    So the loss is the mean over the labels of all microbatches on all ranks
    that count, whatever each of them ignores. **What adds up.** Loss and
    gradients of the microbatches must add up to those of the step. That is
    followed through the program by the ops' sharding rules, as if the microbatches
    were ranks over which the first dimension of every argument is cut: of every
    value each has the same, a slice, or a part of a sum. A term that is the same
    for each (a regulariser, before or behind the division by the count) would
    count once per microbatch, and is an error, as is what takes examples together
    otherwise than by a sum (a mean or a maximum over the batch, the logarithm of a
    sum). **Order of sums.** Every
    microbatch is reduced into the place where the parameter rests and added
    there, in f32, in the order of the microbatches. That is another rounding
    than that of one larger batch, and part of the numerical contract. With
    `reduce-once` the sums are parts of a sum over the ranks that share a batch:
    each adds its own microbatches in f32, and @update reduces the result. That
    is a rounding of its own. `keep-gathers` changes no bit.

    It runs before fsdp-optimizer, whose step belongs to @update. Without it the
    gradients of the step are written to `<parameter>.grad`.

    The additions stand at the end of @accumulate, where none keeps a reduction
    from running beside the backward pass.

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
           "Parameters are gathered once per step, not in every microbatch">,
    Option<"reduceOnce", "reduce-once", "bool", /*default=*/"false",
           "Gradients are reduced once per step, not in every microbatch">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def Optimizer : Pass<"fsdp-optimizer", "::mlir::ModuleOp"> {
  let summary = "Replaces the gradients by an exact norm, clipping and one AdamW step";
  let description = [{
    Adds to the program, which is @train or nn-accumulate's @update, the
    arguments "lr" (tensor<f32>) and "step"
    (tensor<i32>, from 1) and the result "grad_norm" (tensor<f32>), declares
    two moments per trained parameter (`<parameter>.exp_avg`, `.exp_avg_sq`,
    with the parameter's placement), and replaces all nn.gradient by

    ```mlir
    %m = nn.abs_max %g0, %g1, ...
    %s = nn.sum_squares %m, %g0, %g1, ...
    %norm, %c = nn.clip_coefficient %m, %s max_norm 1.0
    nn.adamw [@w0, @w1] moments ... (%g0, %g1) lr %lr step %step clip %c
    ```

    Types are logical; fsdp-propagate adds the two small all_reduces. The norm is
    exact (integer sums), hence the same under every layout. An element must be
    counted on one rank only, and is over the axes that cut it at rest; over
    others every rank has the same. So gradients that rest cut over other axes
    have an nn.sum_squares of their own.

    All belong to the module "optimizer"; what the norm reduces over ranks to
    "optimizer.gradient_maximum" and "optimizer.gradient_norm" in it.

    With `max_norm` 0 nothing is clipped; the norm is computed and returned all
    the same. Parameters are updated in registration order by one multi-tensor
    nn.adamw.
  }];
  let options = [
    Option<"function", "function", "std::string", /*default=*/"\"train\"",
           "The training program">,
    Option<"beta1", "beta1", "double", /*default=*/"0.9", "Decay of the first moment">,
    Option<"beta2", "beta2", "double", /*default=*/"0.95", "Decay of the second moment">,
    Option<"eps", "eps", "double", /*default=*/"1e-8", "Added to the root of the second moment">,
    Option<"weightDecay", "weight_decay", "double", /*default=*/"0.1", "Decoupled weight decay">,
    Option<"maxNorm", "max_norm", "double", /*default=*/"1.0",
           "Gradients are clipped to this norm; 0: never">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect", "::fsdp::dist::FsdpDialect"];
}

def ChunkLoss : Pass<"nn-chunk-loss", "::mlir::ModuleOp"> {
  let summary = "Projects to logits and takes their cross entropy a chunk of rows at a time";
  let description = [{
    The logits of a step, and their gradient, are the largest tensors of a model
    with many classes: for each token a number per class. This pass cuts the rows
    that a rank has of a loss, nn.cross_entropy of nn.linear, into `chunks` equal
    parts. A chunk is projected, reduced to one loss per row, differentiated and
    multiplied back to the gradients of input and weight before the next one
    begins, so that logits and their gradient never have more rows than one.

    This needs the cotangent of the losses before they are known. It does not
    depend on them: it is one over the count of labels, which the targets give.
    What makes it is computed in front of the chunks, from a constant 1 in place of
    nn.seed. So there is no second projection, as there would be if the backward
    pass made every chunk's logits again: no product is computed twice.

    The last chunk is differentiated behind nn.seed, where all of the loss was: its
    ops keep their addresses ("bwd output dw"), they hide the first gathers
    of the backward pass, and what the program uses last and first of its
    two passes stays the same. Those of the other chunks are of the phase "fwd".

    **Bits.** The losses of rows, their logarithms of sums of exponentials and the
    gradient of the projection's input are rows of the same products, and have
    the same bits where the library computes a row the same in a matrix of fewer
    rows. The gradients of weight and bias are sums over rows: they are added up in
    f32 from chunk to chunk (nn.linear_weight_grad's `sum`) and rounded once, in
    another order than without chunks. That is part of the numerical contract.

    **Memory.** Between the chunks lives the gradient of the weight in
    f32. In bf16 that is twice the bytes of the gradient itself, so less is alive
    at the loss where a rank has more rows than about the width of the model. Where
    the peak of the step is elsewhere (at an attention whose library wants much
    scratch) the arena does not shrink.

    It runs behind fsdp-expand, on the program of one rank: its rows are its own
    however the batch, the sequence or the loss is cut over ranks. Programs
    without gradients stay as they are: @evaluate returns its logits whole.

    It is an error if no program has such a loss, if a rank's rows cannot be cut
    into so many chunks, if the logits are made by another op (a policy that cuts the
    classes gathers them), if somebody else uses them, or if the
    cotangent of the losses depends on them.

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
           "Chunks of a rank's rows; 1: programs stay as they are">,
  ];
  let dependentDialects = ["::fsdp::nn::NNDialect"];
}

def Fuse : Pass<"nn-fuse", "::mlir::func::FuncOp"> {
  let summary = "Groups chains of pointwise and row ops into kernels";
  let description = [{
    Ops of KernelOpInterface that share an iteration space and feed one
    another become one nn.fusion. No bit changes: every op of a fusion still
    rounds to its declared type, and reductions keep their order.

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

    Inside a kernel an element is computed again in every stage (each
    reduction, the final map), so an op that reduces does not join a value that
    needs exp, log, tanh or erf. Sums over rows (weight gradients) stay alone.
    A fusion belongs to the module around those of its members, which keep
    theirs. It never crosses a collective or the start or wait of one, nn.seed or
    nn.adamw, so it runs after fsdp-overlap. Linear time.
  }];
}

#endif // FSDP_GRAPH_PASSES
