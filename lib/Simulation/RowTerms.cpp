//===- RowTerms.cpp - What a published step is made of --------------------===//
#include "fsdp/Machine/CostModel.h"
#include "fsdp/Simulation/RowFit.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::simulation;

/// Of a logit: read in bf16, made f32, read again, and its gradient.
static constexpr double kLogitBytes = 14;
/// AdamW of a parameter: p, m, v read and written, gradient read, bf16 written.
static constexpr double kOptimizerBytes = 30;
/// Of the operations of attention's forward pass.
static constexpr double kAttentionBackward = 2.5;
/// To quantise an element: read for the largest, read again, written.
static constexpr double kQuantiseBytes = 5;

namespace {

/// Elements that the kernels of a block move beside matmuls, for each token:
/// so many times the width of the residual stream, of queries with keys, and of
/// the inside of the MLP.
struct Moves {
  double width, heads, hidden;
};

struct BlockMoves {
  Moves forward, backward;
};

} // namespace

/// GELU. Forward: two norms 4, two sums 6, queries, keys and values split 4,
/// GELU 2 of the MLP's inside. Backward: two norms 6, two sums 6, joining 6,
/// bias gradients 8, GELU 3.
static constexpr BlockMoves kEagerGelu = {{14, 0, 2}, {26, 0, 3}};
/// A sum and its norm are one kernel: 8, and 10 backward.
static constexpr BlockMoves kFusedGelu = {{10, 0, 2}, {14, 0, 3}};
/// With a gate and rotary positions. Forward: two norms 4, two sums 6, the
/// rotation through f32 10, SiLU 2, product 3. Backward: two norms 6, gradients
/// added up 15, rotation 10, product 6, SiLU 3.
static constexpr BlockMoves kEagerGated = {{10, 10, 5}, {21, 10, 9}};
static constexpr BlockMoves kFusedGated = {{8, 2, 3}, {10, 2, 6}};

static const BlockMoves &movesOf(const PublishedRow &row,
                                 const SoftwareProfile &profile) {
  bool isEager = profile.kernels.pointwise == PointwiseKernels::Eager;
  if (row.model.isGated)
    return isEager ? kEagerGated : kFusedGated;
  return isEager ? kEagerGelu : kFusedGelu;
}

static SoftwareProfile profileOf(const PublishedRow &row) {
  if (!row.profile.empty())
    return loadProfile(row.profile);
  SoftwareProfile eager;
  eager.kernels.pointwise = PointwiseKernels::Eager;
  return eager;
}

static CostModel modelOf(const PublishedRow &row,
                         const SoftwareProfile &profile) {
  Machine machine = loadMachine(row.gpu->machine);
  if (row.networkBytesPerSecond != 0)
    // 0.96 of the wire, as in the machine files.
    machine.network.bytesPerSecond =
        0.96 * row.networkBytesPerSecond /
        static_cast<double>(machine.device.ranksPerNode);
  if (row.gpu->memoryBytesPerSecond != 0)
    machine.memory.bytesPerSecond = row.gpu->memoryBytesPerSecond;
  return CostModel(machine, profile);
}

namespace {

/// The terms of one row.
class TermsOfRow {
public:
  explicit TermsOfRow(const PublishedRow &row)
      : row(row), profile(profileOf(row)), model(modelOf(row, profile)),
        width(of(row.model.width)), hidden(of(row.model.hidden)),
        heads(width * (1 + of(row.model.keyHeads) / of(row.model.heads))),
        blocks(of(row.model.layers) / of(row.stages)),
        tokens(of(row.microbatch) * of(row.sequence) / of(row.contextRanks)),
        microbatches(of(row.accumulation)),
        idle(1 + (of(row.stages) - 1) / (inPipeline() * of(row.partsOfStage))) {
  }

  RowTerms run() {
    RowTerms terms;
    terms.clock = row.gpu->clock;
    double share = microbatches * idle / of(row.tensorRanks);
    terms.matmul = share * matmul() / profile.scale.matmul;
    terms.attention = share * attention();
    terms.memory = memory(share);
    terms.communication =
        (row.communicatesOnce ? 1 : microbatches) * ofParameters() +
        microbatches * idle * ofActivations();
    terms.communication *= profile.scale.collective;
    if (row.offloads)
      // Parameters come for both passes of a microbatch, gradients leave in
      // f32.
      terms.host = microbatches *
                   model.hostCopy(row.parameters / row.gpus * 8).seconds();
    return terms;
  }

private:
  static double of(int64_t number) { return static_cast<double>(number); }

  /// Microbatches that a pipeline works on: torchtitan cuts a batch into as
  /// many as there are stages.
  double inPipeline() const {
    return of(row.accumulation > 1 ? row.accumulation : row.stages);
  }

  bool isFull() const { return row.recompute == RowRecompute::Full; }
  /// Forward passes of what is no matmul and no attention.
  double forwards() const {
    return row.recompute == RowRecompute::None ? 1 : 2;
  }
  double weights() const { return of(row.model.weights()); }

  double matmul() const {
    double again = isFull() ? weights()
                   : row.recompute == RowRecompute::Selective
                       ? of(row.model.weightsAgain())
                       : 0;
    double inBlocks = 2 * (3 * weights() + again) * tokens * blocks;
    double ofLogits =
        6 * tokens * width * of(row.model.vocabulary) / of(row.stages);
    return inBlocks / (row.isFp8 ? row.gpu->bestFp8 : row.gpu->bestBf16) +
           ofLogits / row.gpu->bestBf16;
  }

  double attention() const {
    const Machine &machine = model.machine();
    auto rate = [&](double ofProfile, double ofMachine) {
      return machine.compute.bf16 * (ofProfile != 0 ? ofProfile : ofMachine);
    };
    double forward = rate(profile.attention.forward, machine.attention.forward);
    double backward =
        rate(profile.attention.backward, machine.attention.backward);
    if (row.profile.empty())
      forward = backward = row.gpu->flashAttention;
    // Causal: half of all scores.
    double scores = 2 * tokens * of(row.sequence) * width * blocks;
    return scores *
           ((isFull() ? 2 : 1) / forward + kAttentionBackward / backward);
  }

  /// For each token, of a block.
  double movedBytes() const {
    const BlockMoves &moves = movesOf(row, profile);
    auto elements = [&](const Moves &some) {
      return some.width * width + some.heads * heads + some.hidden * hidden;
    };
    double bytes =
        2 * (elements(moves.forward) * forwards() + elements(moves.backward));
    if (profile.kernels.fp8 == Fp8Recipe::None)
      return bytes;
    // The inputs of products, again where they are computed again, and the
    // gradients of their results.
    double inputs = (3 * width + hidden) * forwards();
    double results = 2 * heads + width + 2 * hidden;
    // A scale for a row is another one for a column: both are written.
    double copies = profile.kernels.fp8 == Fp8Recipe::Rowwise ? 2 : 1;
    return bytes + kQuantiseBytes * copies * (inputs + results);
  }

  double memory(double share) const {
    double bytes =
        blocks * tokens * movedBytes() +
        tokens * of(row.model.vocabulary) * kLogitBytes / of(row.stages);
    double state = of(row.parameters) / of(row.tensorRanks * row.stages);
    // Parameters that are gathered in bf16 are quantised by every rank.
    if (profile.kernels.fp8 == Fp8Recipe::Rowwise)
      bytes += 2 * kQuantiseBytes * weights() * blocks;
    return (share * bytes + kOptimizerBytes * state / of(row.shards())) /
           (model.machine().memory.bytesPerSecond * profile.scale.memory);
  }

  /// Of a collective of `bytes`, once in each block of a stage.
  double inBlocks(rt::CollectiveKind kind, int64_t bytes, int64_t element,
                  GroupShape shape) const {
    CollectiveCall call;
    call.kind = kind;
    call.bytes = bytes;
    call.shape = shape;
    call.sums = Sums::Fast;
    call.wireElementBytes = element;
    return model.collective(call).seconds() * blocks;
  }

  /// Of all parameters of a stage, a bucket for each block, in elements of so
  /// many bytes.
  double ofBuckets(rt::CollectiveKind kind, int64_t element) const {
    int64_t ranks = row.dataRanks() * row.contextRanks;
    int64_t inNode = std::max<int64_t>(
        model.machine().device.ranksPerNode / row.tensorRanks, 1);
    int64_t local = std::min(ranks, inNode);
    if (ranks % local != 0)
      throw Error("column 'gpus': " + std::to_string(row.gpus) +
                  " GPUs are no number of whole nodes of " +
                  std::to_string(model.machine().device.ranksPerNode));
    int64_t bytes =
        row.parameters / row.model.layers / row.tensorRanks * element;
    return inBlocks(kind, bytes, element, {local, ranks / local});
  }

  double ofParameters() const {
    using Kind = rt::CollectiveKind;
    if (row.sharding == RowSharding::None && !row.communicatesOnce)
      return ofBuckets(Kind::AllReduce, row.gradientBytes);
    // With full sharding the backward pass gathers a second time.
    bool isTwice = row.sharding == RowSharding::Full && !row.communicatesOnce;
    int64_t gathered = profile.kernels.fp8 == Fp8Recipe::Tensorwise ? 1 : 2;
    return (isTwice ? 2 : 1) * ofBuckets(Kind::AllGather, gathered) +
           ofBuckets(Kind::ReduceScatter, row.gradientBytes);
  }

  /// With the sequence split over a block's ranks: two gathers and two
  /// reductions in each direction. What is computed again gathers again; all of
  /// a block reduces again too.
  double ofActivations() const {
    if (row.tensorRanks == 1)
      return 0;
    if (row.tensorRanks > model.machine().device.ranksPerNode)
      throw Error("column 'tp': " + std::to_string(row.tensorRanks) +
                  " ranks are more than a node has");
    auto bytes = static_cast<int64_t>(tokens) * row.model.width * 2;
    GroupShape shape{row.tensorRanks, 1};
    double gathers = row.recompute == RowRecompute::None ? 4 : 6;
    double reductions = isFull() ? 6 : 4;
    return gathers * inBlocks(rt::CollectiveKind::AllGather, bytes, 2, shape) +
           reductions *
               inBlocks(rt::CollectiveKind::ReduceScatter, bytes, 2, shape);
  }

  const PublishedRow &row;
  SoftwareProfile profile;
  CostModel model;
  double width, hidden, heads; ///< heads: queries and keys.
  double blocks;               ///< Of a stage.
  double tokens;               ///< Of a microbatch, of all tensor ranks.
  double microbatches;
  double idle; ///< What waiting for other stages multiplies a step by.
};

} // namespace

RowTerms simulation::termsOf(const PublishedRow &row,
                             const std::string &path) try {
  return TermsOfRow(row).run();
} catch (const Error &error) {
  throw Error(path + ":" + std::to_string(row.line) + ": " + error.what());
}

double RowTerms::seconds(const Scalars &scalars) const {
  auto scalar = [&](Scalar which) {
    return scalars[static_cast<size_t>(which)];
  };
  double speed = clock == RowGpu::Ampere   ? scalar(Scalar::AmpereClock)
                 : clock == RowGpu::Capped ? scalar(Scalar::CappedClock)
                                           : 1;
  return matmul / (scalar(Scalar::Matmul) * speed) +
         attention / (scalar(Scalar::Attention) * speed) +
         memory / scalar(Scalar::Memory) +
         communication * scalar(Scalar::Communication) + host;
}
