//===- Evaluate.cpp - What a trained model is worth -----------------------===//
#include "Evaluate.h"
#include "fsdp/Data/Philox.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <zlib.h>

using namespace fsdp;
using namespace fsdp::rt;

static const char *const kProgram = "evaluate";

namespace {
/// Nats of predictions.
struct LossSum {
  double nats = 0, predictions = 0;
};
} // namespace

/// What this rank's pieces of a stream are worth, or all ranks', where the loss
/// is of these.
static std::optional<LossSum> sumHeldOut(Rank &rank, const TokenStream &data,
                                         const float &loss,
                                         const GoesOn &goesOn) {
  Batch batch = rank.batch();
  DataShard shard = rank.dataShard();
  LossSum sum;
  int64_t rounds = data.heldOutRounds(shard, batch);
  for (int64_t round = 0; round < rounds; ++round) {
    if (!goesOn())
      return std::nullopt;
    int64_t count = data.fillHeldOut(round, shard, batch);
    if (rank.hasGlobalLoss())
      count = data.heldOutPredictions(round, shard, batch);
    rank.run(kProgram);
    // A batch without a prediction has no mean.
    if (count == 0)
      continue;
    sum.nats += static_cast<double>(loss) * static_cast<double>(count);
    sum.predictions += static_cast<double>(count);
  }
  return sum;
}

std::optional<HeldOutScore>
fsdp::evaluateHeldOut(Rank &rank, const Dataset &data, const GoesOn &goesOn) {
  const float *loss = rank.scalar<float>(range_name::kLoss);
  if (!loss)
    throw Error("the artifact's program 'evaluate' gives no loss");
  std::vector<double> totals; // nats and predictions of each stream
  for (const TokenStream *stream : data.streams()) {
    std::optional<LossSum> sum = sumHeldOut(rank, *stream, *loss, goesOn);
    if (!sum)
      return std::nullopt;
    totals.insert(totals.end(), {sum->nats, sum->predictions});
  }
  if (!rank.hasGlobalLoss()) {
    allReduceSum(totals.data(), static_cast<int64_t>(totals.size()));
    // Ranks with the same data have each counted it.
    for (double &total : totals)
      total /=
          static_cast<double>(rank.world().size / rank.dataShard().count());
  }
  HeldOutScore score;
  double nats = 0, predictions = 0;
  for (size_t i = 0; i < totals.size(); i += 2) {
    nats += totals[i];
    predictions += totals[i + 1];
    score.streams.push_back({std::llround(totals[i + 1]),
                             totals[i + 1] == 0 ? 0 : totals[i] / totals[i + 1],
                             {}});
  }
  if (score.streams.size() == 1)
    score.streams.clear();
  score.predictions = std::llround(predictions);
  score.nats = nats / predictions;
  if (score.predictions == 0 || !std::isfinite(score.nats))
    throw Error("the held-out loss is not finite");
  return score;
}

double fsdp::gzipBitsPerByte(std::string_view text) {
  text = text.substr(0, kMostGzipBytes);
  z_stream stream{};
  constexpr int gzipWindow = 15 + 16; // 32 KiB, with gzip's header
  if (deflateInit2(&stream, 9, Z_DEFLATED, gzipWindow, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK)
    throw Error("zlib cannot be started");
  stream.next_in = reinterpret_cast<Bytef *>(const_cast<char *>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  char buffer[1 << 16];
  do {
    stream.next_out = reinterpret_cast<Bytef *>(buffer);
    stream.avail_out = sizeof buffer;
  } while (deflate(&stream, Z_FINISH) == Z_OK);
  auto bits = 8 * static_cast<double>(stream.total_out);
  deflateEnd(&stream);
  return bits / static_cast<double>(text.size());
}

int fsdp::sampleLogits(const std::vector<float> &logits, double temperature,
                       double unit) {
  auto largest = std::max_element(logits.begin(), logits.end());
  if (temperature == 0)
    return static_cast<int>(largest - logits.begin());
  std::vector<double> weights;
  double total = 0;
  for (float logit : logits) {
    weights.push_back(std::exp((logit - *largest) / temperature));
    total += weights.back();
  }
  double rest = unit * total;
  for (size_t i = 0; i < weights.size(); ++i) {
    rest -= weights[i];
    if (rest < 0)
      return static_cast<int>(i);
  }
  return static_cast<int>(largest - logits.begin());
}

static float logitOf(DType type, const std::byte *data) {
  uint32_t bits = 0;
  if (type == DType::BF16) {
    uint16_t half;
    std::memcpy(&half, data, sizeof half);
    bits = uint32_t{half} << 16;
  } else {
    std::memcpy(&bits, data, sizeof bits);
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// `count` logits from element `first` of this rank's on.
static std::vector<float> readLogits(const Rank &rank, const RangeInfo &range,
                                     int64_t first, int64_t count) {
  auto element = static_cast<uint64_t>(sizeOf(range.dtype));
  std::vector<std::byte> data(static_cast<uint64_t>(count) * element);
  rank.read(range, static_cast<uint64_t>(first) * element, data.size(),
            data.data());
  std::vector<float> logits;
  for (size_t i = 0; i < static_cast<size_t>(count); ++i)
    logits.push_back(logitOf(range.dtype, data.data() + i * element));
  return logits;
}

/// The first `classes` at one position, from all ranks, each of which has a box
/// of the logits [batch, sequence, classes]. Those that have one and the same
/// logit have the same bits, so that its mean over them, in double, is exact.
/// Collective.
static std::vector<float> gatherLogits(const Rank &rank, const RangeInfo &range,
                                       int64_t position, int64_t classes) {
  ShardView box = rank.manifest().shardView(range, rank.world().rank);
  // Sums of the logits, then how many ranks have each.
  std::vector<double> sums(static_cast<size_t>(2 * classes), 0);
  bool isHere =
      box.sizes[0] > 0 && box.offsets[1] <= position && position < box.end(1);
  int64_t begin = box.offsets[2], end = std::min(box.end(2), classes);
  if (isHere && begin < end) {
    std::vector<float> mine = readLogits(
        rank, range, (position - box.offsets[1]) * box.stored[2], end - begin);
    for (int64_t i = begin; i < end; ++i) {
      sums[static_cast<size_t>(i)] = mine[static_cast<size_t>(i - begin)];
      sums[static_cast<size_t>(classes + i)] = 1;
    }
  }
  allReduceSum(sums.data(), 2 * classes);
  std::vector<float> logits(static_cast<size_t>(classes));
  for (size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(sums[i] / sums[logits.size() + i]);
  return logits;
}

/// The first `classes` logits at one position of the first row; all rows are
/// equal.
static std::vector<float> logitsAt(const Rank &rank, int64_t position,
                                   int64_t classes) {
  const RangeInfo *range = rank.manifest().findRange(range_name::kLogits);
  if (range->placement)
    return gatherLogits(rank, *range, position, classes);
  return readLogits(rank, *range, position * range->shape.back(), classes);
}

/// Sets every row to the last of `ids`, this rank's columns of them. Returns
/// how many there are.
static int64_t fillRows(const Batch &batch, Coordinate columns,
                        const std::vector<int32_t> &ids) {
  auto length = std::min(static_cast<int64_t>(ids.size()),
                         batch.sequence * columns.count);
  const int32_t *window = ids.data() + ids.size() - length;
  for (int64_t i = 0; i < batch.sequence; ++i) {
    int64_t at = columns.index * batch.sequence + i;
    int32_t token = at < length ? window[at] : 0;
    for (int64_t row = 0; row < batch.rows; ++row)
      batch.tokens[row * batch.sequence + i] = token;
  }
  return length;
}

std::optional<std::vector<int32_t>>
fsdp::generateIds(Rank &rank, const RunConfig &config, std::vector<int32_t> ids,
                  int64_t classes, const GoesOn &goesOn) {
  const RangeInfo *logits = rank.manifest().findRange(range_name::kLogits);
  if (!logits || (logits->dtype != DType::F32 && logits->dtype != DType::BF16))
    throw Error("the artifact's program 'evaluate' gives no logits");
  if (!logits->full.empty())
    classes = std::min(classes, logits->full.back());
  Batch batch = rank.batch();
  uint64_t key =
      philoxKey(static_cast<uint64_t>(config.training.seed), "sample");
  std::fill_n(batch.targets, batch.rows * batch.sequence, 0);
  rank.seeWholeRows(batch);
  for (int64_t i = 0; i < *config.sample.length; ++i) {
    if (!goesOn())
      return std::nullopt;
    int64_t length = fillRows(batch, rank.dataShard().columns, ids);
    rank.run(kProgram);
    double unit = openUnit(philox({static_cast<uint32_t>(i), 0, 0, 0}, key)[0]);
    ids.push_back(sampleLogits(logitsAt(rank, length - 1, classes),
                               config.sample.temperature, unit));
  }
  return ids;
}
