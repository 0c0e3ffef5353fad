//===- Evaluate.cpp - What a trained model is worth -----------------------===//
#include "Evaluate.h"
#include "fsdp/Runtime/Philox.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <zlib.h>

using namespace fsdp;
using namespace fsdp::rt;

static const char *const kProgram = "evaluate";

HeldOutScore fsdp::evaluateHeldOut(Rank &rank, const ByteDataset &text) {
  Batch batch = rank.batch();
  World world = rank.world();
  const float *loss = rank.scalar<float>("loss");
  if (!loss)
    throw Error("the artifact's program 'evaluate' gives no loss");
  double totals[2] = {0, 0}; // nats and predictions of this rank
  int64_t rounds = text.heldOutRounds(world.size, batch);
  for (int64_t round = 0; round < rounds; ++round) {
    int64_t count = text.fillHeldOut(round, world.rank, world.size, batch);
    rank.run(kProgram);
    // A batch without a prediction has no mean.
    if (count == 0)
      continue;
    totals[0] += static_cast<double>(*loss) * static_cast<double>(count);
    totals[1] += static_cast<double>(count);
  }
  allReduceSum(totals, 2);
  HeldOutScore score;
  score.predictions = std::llround(totals[1]);
  score.bitsPerByte = totals[0] / totals[1] / M_LN2;
  if (score.predictions == 0 || !std::isfinite(score.bitsPerByte))
    throw Error("the loss on the held-out text is not finite");
  return score;
}

double fsdp::gzipBitsPerByte(std::string_view text) {
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

/// The 256 logits of bytes at one position of the first row.
static std::vector<float> byteLogits(const Rank &rank, int64_t position) {
  const RangeInfo *range = rank.manifest().findRange("logits");
  const std::byte *data = rank.find("logits");
  int64_t classes = range->shape.back();
  std::vector<float> logits(256);
  for (int64_t i = 0; i < 256; ++i) {
    int64_t element = position * classes + i;
    uint32_t bits = 0;
    if (range->dtype == DType::BF16) {
      uint16_t half;
      std::memcpy(&half, data + element * 2, sizeof half);
      bits = uint32_t{half} << 16;
    } else {
      std::memcpy(&bits, data + element * 4, sizeof bits);
    }
    std::memcpy(&logits[i], &bits, sizeof bits);
  }
  return logits;
}

std::string fsdp::generateText(Rank &rank, const RunConfig &config,
                               const ByteDataset &text) {
  const RangeInfo *logits = rank.manifest().findRange("logits");
  if (!logits || (logits->dtype != DType::F32 && logits->dtype != DType::BF16))
    throw Error("the artifact's program 'evaluate' gives no logits");
  Batch batch = rank.batch();
  std::string story = config.sample.prompt;
  if (story.empty())
    story = text.heldOutText().empty() ? text.trainText().substr(0, 64)
                                       : text.heldOutText().substr(0, 64);
  uint64_t key =
      philoxKey(static_cast<uint64_t>(config.training.seed), "sample");
  std::fill_n(batch.tokens, batch.rows * batch.sequence, 0);
  std::fill_n(batch.targets, batch.rows * batch.sequence, 0);
  for (int64_t i = 0; i < config.sample.length; ++i) {
    auto length = std::min(static_cast<int64_t>(story.size()), batch.sequence);
    std::string_view window =
        std::string_view(story).substr(story.size() - (size_t)length);
    for (int64_t at = 0; at < length; ++at)
      batch.tokens[at] = static_cast<unsigned char>(window[(size_t)at]);
    rank.run(kProgram);
    double unit = openUnit(philox({static_cast<uint32_t>(i), 0, 0, 0}, key)[0]);
    story += static_cast<char>(sampleLogits(byteLogits(rank, length - 1),
                                            config.sample.temperature, unit));
  }
  return story;
}

std::string fsdp::printable(std::string_view text) {
  std::string result;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\n' || (byte >= 0x20 && byte < 0x7f))
      result += c;
    else
      result += format("\\x%02x", byte);
  }
  return result;
}
