//===- RowTerms.cpp - What a published step is made of --------------------===//
#include "fsdp/Machine/CostModel.h"
#include "fsdp/Simulation/RowFit.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::simulation;

// Bytes that the kernels of an eager block move beside matmuls, in elements of
// the residual stream. Forward: two norms 4, two sums 6, GELU of 4 widths 8,
// queries, keys and values split 4. Backward: two norms 6, two sums 6, GELU 12,
// joining 6, bias gradients 8.
static constexpr double kForwardElements = 22, kBackwardElements = 38;
/// Of a logit: read in bf16, made f32, read again, and its gradient.
static constexpr double kLogitBytes = 14;
/// AdamW of a parameter: p, m, v read and written, gradient read, bf16 written.
static constexpr double kOptimizerBytes = 30;
/// Of the operations of attention's forward pass.
static constexpr double kAttentionBackward = 2.5;

static CostModel modelOf(const PublishedRow &row) {
  Machine machine = loadMachine(row.gpu->machine);
  if (row.networkBytesPerSecond != 0)
    // 0.96 of the wire, as in the machine files.
    machine.network.bytesPerSecond =
        0.96 * row.networkBytesPerSecond /
        static_cast<double>(machine.device.ranksPerNode);
  return CostModel(machine);
}

/// Of all parameters, a bucket for each block.
static double secondsOf(const PublishedRow &row, const CostModel &model,
                        rt::CollectiveKind kind, int64_t bytesOfParameter) {
  int64_t local = std::min(row.gpus, model.machine().device.ranksPerNode);
  if (row.gpus % local != 0)
    throw Error("column 'gpus': " + std::to_string(row.gpus) +
                " GPUs are no number of whole nodes of " +
                std::to_string(local));
  CollectiveCall call;
  call.kind = kind;
  call.bytes = row.parameters / row.model->layers * bytesOfParameter;
  call.shape = {local, row.gpus / local};
  call.sums = Sums::Fast;
  call.wireElementBytes = bytesOfParameter;
  return model.collective(call).seconds() *
         static_cast<double>(row.model->layers);
}

static double communicationOf(const PublishedRow &row, const CostModel &model) {
  int64_t reduced = row.mixedPrecision == RowMixedPrecision::Pure ? 2 : 4;
  if (row.sharding == RowSharding::None)
    return secondsOf(row, model, rt::CollectiveKind::AllReduce, reduced);
  // With full sharding the backward pass gathers a second time.
  double gathers = row.sharding == RowSharding::Full ? 2 : 1;
  return gathers * secondsOf(row, model, rt::CollectiveKind::AllGather, 2) +
         secondsOf(row, model, rt::CollectiveKind::ReduceScatter, reduced);
}

RowTerms simulation::termsOf(const PublishedRow &row,
                             const std::string &path) try {
  CostModel model = modelOf(row);
  auto width = static_cast<double>(row.model->width),
       layers = static_cast<double>(row.model->layers),
       sequence = static_cast<double>(row.sequence),
       parameters = static_cast<double>(row.parameters),
       microbatches = static_cast<double>(row.accumulation),
       vocabulary = static_cast<double>(kRowVocabulary);
  double tokens = static_cast<double>(row.microbatch) * sequence;
  double forwards = row.recomputes ? 2 : 1;
  bool isFp8 = row.precision == RowPrecision::AmpFp8;
  double shards =
      row.sharding == RowSharding::None ? 1 : static_cast<double>(row.gpus);

  RowTerms terms;
  terms.isAmpere = row.gpu->isAmpere;
  double inBlocks = 24 * width * width * tokens * layers * (forwards + 2);
  double ofLogits = 6 * tokens * width * vocabulary;
  terms.matmul = microbatches *
                 (inBlocks / (isFp8 ? row.gpu->bestFp8 : row.gpu->bestBf16) +
                  ofLogits / row.gpu->bestBf16);
  // Causal: half of all scores.
  double scores = 2 * tokens * sequence * width * layers;
  terms.attention = microbatches * scores * (forwards + kAttentionBackward) /
                    row.gpu->flashAttention;
  double bytes = layers * tokens * width * 2 *
                     (kForwardElements * forwards + kBackwardElements) +
                 tokens * vocabulary * kLogitBytes;
  terms.memory =
      (microbatches * bytes + kOptimizerBytes * parameters / shards) /
      model.machine().memory.bytesPerSecond;
  terms.communication = microbatches * communicationOf(row, model);
  if (row.offloads)
    // Parameters come for both passes of a microbatch, gradients leave in f32.
    terms.host =
        microbatches * model.hostCopy(row.parameters / row.gpus * 8).seconds();
  return terms;
} catch (const Error &error) {
  throw Error(path + ":" + std::to_string(row.line) + ": " + error.what());
}

double RowTerms::seconds(const Scalars &scalars) const {
  double clock =
      isAmpere ? scalars[static_cast<size_t>(Scalar::AmpereClock)] : 1;
  return matmul / (scalars[static_cast<size_t>(Scalar::Matmul)] * clock) +
         attention / (scalars[static_cast<size_t>(Scalar::Attention)] * clock) +
         memory / scalars[static_cast<size_t>(Scalar::Memory)] +
         communication * scalars[static_cast<size_t>(Scalar::Communication)] +
         host;
}
