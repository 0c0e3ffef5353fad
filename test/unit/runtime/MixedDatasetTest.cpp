//===- MixedDatasetTest.cpp - Rows of several sources ---------------------===//
#include "fsdp/Data/MixedDataset.h"
#include "TokenFiles.h"
#include "fsdp/Data/Philox.h"
#include <algorithm>
#include <cmath>
#include <set>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

//===----------------------------------------------------------------------===//
// Weights
//===----------------------------------------------------------------------===//

TEST(MixedSource, IsTakenApartAtItsLastSign) {
  MixedSource source = parseMixedSource("a=b/c=0.25");
  EXPECT_EQ(source.path, "a=b/c");
  EXPECT_EQ(source.weight, "0.25");
  for (const char *bad : {"", "a", "=1", "a=", "a=0", "a=0.0", "a=-1", "a=+1",
                          "a=1e3", "a=.5", "a=1.", "a=1.2.3", "a=nan", "a= 1",
                          "a=1 ", "a=1234567", "a=0.1234567", "a=0x1"})
    EXPECT_THROW(parseMixedSource(bad), Error) << bad;
}

/// Of every prefix, how far sources are from their shares.
static void expectExact(const std::vector<std::string> &weights) {
  RowDeal deal(weights);
  double sum = 0;
  for (const std::string &weight : weights)
    sum += std::stod(weight);
  std::vector<int64_t> dealt(weights.size(), 0);
  for (int64_t row = 0; row < 2 * deal.cycle() + 3; ++row) {
    RowDeal::Place place = deal.at(row);
    ASSERT_EQ(place.number, dealt[place.source]++);
    for (size_t s = 0; s < weights.size(); ++s) {
      double share = static_cast<double>(row + 1) * std::stod(weights[s]) / sum;
      // A multiple of one part in 100,000.
      ASSERT_LT(std::abs(static_cast<double>(dealt[s]) - share), 1 - 1e-6)
          << "row " << row << ", source " << s;
    }
  }
}

TEST(RowDeal, SourcesGetTheirSharesOfAnyNumberOfRows) {
  expectExact({"1"});
  expectExact({"3", "1"});
  expectExact({"0.7", "0.2", "0.1"});
  expectExact({"1", "1", "1", "97"});
  expectExact({"0.001", "0.999"});
  for (uint32_t draw = 0; draw < 300; ++draw) {
    auto random = philox({draw, 0, 0, 0}, 1);
    std::vector<std::string> weights;
    for (uint32_t s = 0; s <= random[0] % 9; ++s)
      weights.push_back(
          std::to_string(1 + philox({draw, s, 1, 0}, 1)[0] % (1 + draw)));
    SCOPED_TRACE(draw);
    expectExact(weights);
  }
}

/// Runs resume in the middle of it.
TEST(RowDeal, TheOrderStays) {
  auto order = [](const std::vector<std::string> &weights) {
    RowDeal deal(weights);
    std::string sources;
    for (int64_t row = 0; row < deal.cycle(); ++row)
      sources += std::to_string(deal.at(row).source);
    return sources;
  };
  EXPECT_EQ(order({"3", "1"}), "0001");
  EXPECT_EQ(order({"1", "1", "1"}), "012");
  EXPECT_EQ(order({"0.5", "0.3", "0.2"}), "0102010102");
  EXPECT_EQ(order({"7", "6", "5", "2"}), "01201201302102101023");
}

TEST(RowDeal, CyclesAreAsShortAsTheyCanBe) {
  RowDeal deal({"0.50", "150", "49.5"});
  EXPECT_EQ(deal.cycle(), 400);
  EXPECT_EQ(deal.share(0), 1);
  EXPECT_EQ(deal.share(1), 300);
  EXPECT_EQ(deal.share(2), 99);
}

TEST(RowDeal, RefusesCyclesThatAreTooLong) {
  EXPECT_NO_THROW(RowDeal({"99999", "1"}));
  EXPECT_THROW(RowDeal({"100000", "1"}), Error);
  EXPECT_THROW(RowDeal({"0.000001", "999999"}), Error);
}

//===----------------------------------------------------------------------===//
// Mixtures
//===----------------------------------------------------------------------===//

/// Two sources of Megatron's: ids from 0 on, and `count` ids from 1000 on.
static std::unique_ptr<MixedDataset> mix(const TemporaryFolder &folder,
                                         double fraction,
                                         const char *second = "1",
                                         int64_t secondId = 1000) {
  auto open = [&](const char *name, int64_t from,
                  std::vector<int32_t> lengths) {
    Megatron files;
    files.lengths = lengths;
    files.offsets.clear();
    files.firsts = {0};
    int64_t count = 0;
    for (int32_t length : lengths) {
      files.offsets.push_back(2 * count);
      files.firsts.push_back(int64_t(files.offsets.size()));
      count += length;
    }
    files.sequences = lengths.size();
    files.documents = lengths.size() + 1;
    files.ids = bytesOf(counting<uint16_t>(from, count));
    folder.write(std::string(name) + ".bin", files.ids);
    folder.write(std::string(name) + ".idx", files.index());
    return std::make_unique<TokenDataset>(
        openMegatron(folder.path + "/" + name), fraction, 4, 2000);
  };
  std::vector<MixedDataset::Part> parts;
  parts.push_back({open("a", 0, {20, 14, 6}), "3"});
  parts.push_back({open("b", secondId, {33, 3, 4}), second});
  return std::make_unique<MixedDataset>(std::move(parts));
}

TEST(MixedDataset, RowsComeFromTheirSources) {
  TemporaryFolder folder;
  auto data = mix(folder, 0.1);
  data->setOrder(WindowOrder::Shuffled);
  EXPECT_EQ(data->trainTokens(), 34 + 36);
  // 8 windows of the first, 8 of the second: after 8 / (3/4) rows an epoch of
  // the first is over.
  std::multiset<int32_t> windows;
  OwnedBatch batch(1, 4);
  int64_t second = 0;
  for (int64_t step = 0; step < 32; ++step) {
    data->sampleTraining(7, step, {}, batch.view);
    second += batch.tokens[0] >= 1000;
    EXPECT_EQ(batch.targets[3], batch.tokens[0] + 4);
    if (batch.tokens[0] < 1000)
      windows.insert(batch.tokens[0]);
  }
  EXPECT_EQ(second, 8);
  ASSERT_EQ(windows.size(), 24u);
  // Three epochs, each from its own start.
  std::set<int32_t> different(windows.begin(), windows.end());
  EXPECT_LE(different.size(), 24u);
  EXPECT_GE(different.size(), 8u);
  EXPECT_LE(*windows.rbegin(), 34 - 5);
}

TEST(MixedDataset, BatchesAreTheSameInPieces) {
  TemporaryFolder folder;
  auto data = mix(folder, 0.1, "2");
  for (WindowOrder order : {WindowOrder::Random, WindowOrder::Shuffled}) {
    data->setOrder(order);
    for (int64_t step = 0; step < 9; ++step) {
      OwnedBatch whole(6, 4);
      data->sampleTraining(3, step, {}, whole.view);
      for (int64_t rank = 0; rank < 3; ++rank)
        for (int64_t half = 0; half < 2; ++half) {
          OwnedBatch piece(2, 2);
          data->sampleTraining(3, step, {{rank, 3}, {half, 2}}, piece.view);
          for (int64_t i = 0; i < 4; ++i)
            ASSERT_EQ(
                piece.tokens[size_t(i)],
                whole
                    .tokens[size_t((rank * 2 + i / 2) * 4 + half * 2 + i % 2)]);
        }
    }
  }
}

TEST(MixedDataset, EverySourceIsEvaluatedForItself) {
  TemporaryFolder folder;
  auto data = mix(folder, 0.1);
  // Held out: 34 to 39, and 1036 to 1039.
  EXPECT_EQ(data->heldOutTokens(), 6 + 4);
  std::vector<std::multiset<int32_t>> predicted;
  for (const TokenStream *stream : data->streams()) {
    OwnedBatch batch(1, 4);
    int64_t rounds = stream->heldOutRounds({}, batch.view), labels = 0;
    predicted.emplace_back();
    for (int64_t round = 0; round < rounds; ++round) {
      int64_t found = stream->fillHeldOut(round, {}, batch.view);
      EXPECT_EQ(found, stream->heldOutPredictions(round, {}, batch.view));
      labels += found;
      for (size_t i = 0; i < size_t(found); ++i) {
        predicted.back().insert(batch.targets[i]);
        EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
      }
    }
    EXPECT_EQ(labels, stream->heldOutLabels());
  }
  EXPECT_EQ(predicted, (std::vector<std::multiset<int32_t>>{
                           {35, 36, 37, 38, 39}, {1037, 1038, 1039}}));
}

/// A source of 40 ids that holds out the last `heldOut`.
static MixedDataset::Part partOf(const TemporaryFolder &folder,
                                 const std::string &tokenizer, int64_t heldOut,
                                 bool hasDocuments = true) {
  Megatron files;
  files.lengths = {10, 10, static_cast<int32_t>(20 - heldOut),
                   static_cast<int32_t>(heldOut)};
  files.offsets = {0, 20, 40, 80 - 2 * heldOut};
  files.firsts = {0, 1, 2, 3, 4};
  files.documents = 5;
  files.ids = bytesOf(counting<uint16_t>(0, 40));
  TokenSource from = openMegatron(files.write(folder));
  from.name = "the folder of " + tokenizer;
  from.tokenizer = tokenizer;
  if (!hasDocuments)
    from.documents = nullptr;
  return {std::make_unique<TokenDataset>(
              std::move(from), static_cast<double>(heldOut) / 40, 4, 2000),
          "1"};
}

template <typename... P> static MixedDataset mixOf(P &&...from) {
  std::vector<MixedDataset::Part> parts;
  (parts.push_back(std::move(from)), ...);
  return MixedDataset(std::move(parts));
}

TEST(MixedDataset, ASourceWithTwoHeldOutTokensCanBeEvaluated) {
  TemporaryFolder folder;
  for (int64_t heldOut : {1, 2, 3}) {
    MixedDataset data =
        mixOf(partOf(folder, "x", heldOut), partOf(folder, "x", 1));
    EXPECT_EQ(data.heldOutTokens(), heldOut + 1);
    EXPECT_EQ(data.hasHeldOut(), heldOut > 1);
    EXPECT_EQ(data.source(0).heldOutLabels(), heldOut - 1);
  }
}

TEST(MixedDataset, AllSourcesMustHaveDocuments) {
  TemporaryFolder folder;
  EXPECT_TRUE(
      mixOf(partOf(folder, "x", 3), partOf(folder, "x", 3)).hasDocuments());
  EXPECT_FALSE(mixOf(partOf(folder, "x", 3), partOf(folder, "x", 3, false))
                   .hasDocuments());
}

TEST(MixedDataset, NothingMayBeHeldOut) {
  TemporaryFolder folder;
  auto data = mix(folder, 0);
  EXPECT_EQ(data->trainTokens(), 80);
  EXPECT_EQ(data->heldOutTokens(), 0);
  EXPECT_FALSE(data->hasHeldOut());
}

TEST(MixedDataset, SourcesAndWeightsAreOfItsIdentity) {
  TemporaryFolder folder;
  DataIdentity one = mix(folder, 0.1)->identity();
  EXPECT_EQ(one.bytes, 160);
  EXPECT_EQ(one.trainBytes, 140);
  EXPECT_EQ(mix(folder, 0.1, "1.0")->identity().checksum, one.checksum);
  EXPECT_NE(mix(folder, 0.1, "2")->identity().checksum, one.checksum);
  EXPECT_NE(mix(folder, 0.1, "1", 1001)->identity().checksum, one.checksum);
}

TEST(MixedDataset, RefusesDifferentTokenizers) {
  TemporaryFolder folder;
  auto mixed = [&](const char *first, const char *second, const char *third) {
    return mixOf(partOf(folder, first, 3), partOf(folder, second, 3),
                 partOf(folder, third, 3));
  };
  EXPECT_NO_THROW(mixed("x", "", "x"));
  try {
    mixed("x", "", "y");
    FAIL();
  } catch (const Error &error) {
    EXPECT_EQ(std::string(error.what()),
              "the folder of y was made by another tokenizer than the folder "
              "of x; tokenize all sources of training.mixture with the model's "
              "tokenizer");
  }
}
