//===- DatasetTest.cpp - Text as bytes ------------------------------------===//
#include "fsdp/Runtime/Dataset.h"
#include "TemporaryFolder.h"
#include <map>
#include <sys/stat.h>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

/// A batch with its own memory.
struct OwnedBatch {
  OwnedBatch(int64_t rows, int64_t sequence)
      : tokens(rows * sequence), targets(rows * sequence),
        view{rows, sequence, tokens.data(), targets.data()} {}
  std::vector<int32_t> tokens, targets;
  Batch view;
};

} // namespace

/// Rows alone are cut.
static DataShard rows(int64_t index, int64_t count) {
  return {{index, count}, {}};
}

/// Bytes 0 .. 255 again and again, so that a byte tells where it stood.
static std::string countingText(size_t size) {
  std::string text;
  for (size_t i = 0; i < size; ++i)
    text += static_cast<char>(i % 251);
  return text;
}

TEST(ByteDataset, SplitsOffTheEnd) {
  TemporaryFolder folder;
  ByteDataset data(folder.write("t", countingText(1000)), 0.05, 10);
  EXPECT_EQ(data.trainText().size(), 950u);
  EXPECT_EQ(data.heldOutText(), countingText(1000).substr(950));
}

TEST(ByteDataset, WindowsAreConsecutiveAndNeverHeldOut) {
  TemporaryFolder folder;
  // 9 training bytes and windows of 8: only offset 0 is possible.
  ByteDataset data(folder.write("t", countingText(18)), 0.5, 8);
  OwnedBatch batch(4, 8);
  for (int step = 0; step < 20; ++step) {
    data.sampleTraining(1, step, {}, batch.view);
    for (int i = 0; i < 32; ++i) {
      EXPECT_EQ(batch.tokens[i], i % 8);
      EXPECT_EQ(batch.targets[i], i % 8 + 1);
    }
  }
}

TEST(ByteDataset, EveryOffsetIsDrawnEquallyOften) {
  TemporaryFolder folder;
  // 14 training bytes and windows of 4: offsets 0 .. 9.
  ByteDataset data(folder.write("t", countingText(14)), 0, 4);
  OwnedBatch batch(10, 4);
  std::map<int, int> counts;
  for (int step = 0; step < 1000; ++step) {
    data.sampleTraining(7, step, {}, batch.view);
    for (int row = 0; row < 10; ++row)
      ++counts[batch.tokens[row * 4]];
  }
  ASSERT_EQ(counts.size(), 10u);
  for (auto [offset, count] : counts)
    EXPECT_NEAR(count, 1000, 150) << offset; // five standard deviations
}

TEST(ByteDataset, WindowsDependOnSeedStepAndRowAlone) {
  TemporaryFolder folder;
  ByteDataset data(folder.write("t", countingText(5000)), 0, 4);
  OwnedBatch a(2, 4), b(2, 4), c(1, 4);
  data.sampleTraining(7, 3, rows(1, 4), a.view);
  data.sampleTraining(7, 3, rows(1, 4), b.view);
  EXPECT_EQ(a.tokens, b.tokens);
  // Row 1 of rank 1 with two rows is rank 3 with one row.
  data.sampleTraining(7, 3, rows(3, 4), c.view);
  EXPECT_EQ(c.tokens[0], a.tokens[4]);
  data.sampleTraining(7, 4, rows(1, 4), b.view);
  EXPECT_NE(a.tokens, b.tokens);
  data.sampleTraining(8, 3, rows(1, 4), b.view);
  EXPECT_NE(a.tokens, b.tokens);
}

// 103 held-out bytes over 2 ranks x 3 rows x 5 places: 102 predictions need 4
// rounds of 30.
TEST(ByteDataset, EveryHeldOutByteIsPredictedOnce) {
  TemporaryFolder folder;
  std::string text = countingText(206);
  ByteDataset data(folder.write("t", text), 0.5, 5);
  OwnedBatch batch(3, 5);
  ASSERT_EQ(data.heldOutRounds(rows(0, 2), batch.view), 4);
  std::vector<int> predicted(206, 0);
  int64_t total = 0;
  for (int round = 0; round < 4; ++round)
    for (int rank = 0; rank < 2; ++rank) {
      total += data.fillHeldOut(round, rows(rank, 2), batch.view);
      for (int i = 0; i < 15; ++i) {
        if (batch.targets[i] == kIgnoredTarget)
          continue;
        EXPECT_EQ(batch.targets[i], batch.tokens[i] + 1);
        ++predicted[batch.targets[i]];
      }
    }
  EXPECT_EQ(total, 102);
  for (int i = 0; i < 206; ++i)
    EXPECT_EQ(predicted[i], i > 103 ? 1 : 0) << i;
}

// A sequence of 8 in two pieces of 4: together they are the windows of a rank
// that has all of it, in training and evaluation.
TEST(ByteDataset, ColumnsArePiecesOfTheSameWindows) {
  TemporaryFolder folder;
  ByteDataset data(folder.write("t", countingText(150)), 0.3, 8);
  OwnedBatch whole(3, 8), piece(3, 4);
  auto expectPiece = [&](int64_t column) {
    for (int64_t row = 0; row < 3; ++row)
      for (int64_t i = 0; i < 4; ++i) {
        int64_t there = row * 8 + column * 4 + i;
        EXPECT_EQ(piece.tokens[row * 4 + i], whole.tokens[there]);
        EXPECT_EQ(piece.targets[row * 4 + i], whole.targets[there]);
      }
  };
  DataShard left{{1, 2}, {0, 2}}, right{{1, 2}, {1, 2}};
  for (int step = 0; step < 20; ++step) {
    data.sampleTraining(3, step, rows(1, 2), whole.view);
    for (const DataShard &shard : {left, right}) {
      data.sampleTraining(3, step, shard, piece.view);
      expectPiece(shard.columns.index);
    }
  }
  // 45 held-out bytes, 44 predictions: the only round is not full.
  ASSERT_EQ(data.heldOutRounds(left, piece.view), 1);
  ASSERT_EQ(data.heldOutRounds(rows(1, 2), whole.view), 1);
  int64_t predictions = data.fillHeldOut(0, rows(1, 2), whole.view);
  EXPECT_EQ(predictions, 44 - 24);
  for (const DataShard &shard : {left, right}) {
    predictions -= data.fillHeldOut(0, shard, piece.view);
    expectPiece(shard.columns.index);
  }
  EXPECT_EQ(predictions, 0);
}

// The predictions of a round are those of all its shards, the last round's too.
TEST(ByteDataset, PredictionsOfARoundAreThoseOfItsShards) {
  TemporaryFolder folder;
  for (int heldOut : {0, 1, 2, 30, 31, 32, 91, 103}) {
    ByteDataset data(folder.write("t", countingText(206)), heldOut / 206.0, 10);
    ASSERT_EQ(data.heldOutText().size(), size_t(heldOut));
    OwnedBatch batch(3, 5);
    int64_t rounds = data.heldOutRounds({{0, 1}, {0, 2}}, batch.view);
    int64_t all = 0;
    for (int64_t round = 0; round <= rounds; ++round) {
      int64_t sum = 0;
      for (int64_t column = 0; column < 2; ++column)
        sum += data.fillHeldOut(round, {{0, 1}, {column, 2}}, batch.view);
      EXPECT_EQ(data.heldOutPredictions(round, {{0, 1}, {1, 2}}, batch.view),
                sum)
          << heldOut << " bytes, round " << round;
      all += sum;
    }
    EXPECT_EQ(all, std::max(0, heldOut - 1));
  }
}

TEST(ByteDataset, HighBytesAreTokensAbove127) {
  TemporaryFolder folder;
  ByteDataset data(folder.write("t", "\xff\xfe\xfd"), 0, 2);
  OwnedBatch batch(1, 2);
  data.sampleTraining(1, 0, {}, batch.view);
  EXPECT_EQ(batch.tokens, (std::vector<int32_t>{255, 254}));
  EXPECT_EQ(batch.targets, (std::vector<int32_t>{254, 253}));
}

TEST(ByteDataset, MissingAndShortTextsAreErrors) {
  TemporaryFolder folder;
  auto open = [&](const std::string &path) {
    return messageOf([&] { ByteDataset(path, 0.5, 8); });
  };
  EXPECT_EQ(open("/nowhere"),
            "cannot read the text '/nowhere': No such file or directory");
  EXPECT_EQ(open(""), "training.dataset_path is not set: which text?");
  EXPECT_EQ(open(folder.path),
            "cannot read the text '" + folder.path + "': Is a directory");
  // A pipe without a writer would be waited for.
  std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open(pipe), "cannot read the text '" + pipe +
                            "': it is a pipe or a device, and training reads "
                            "at any place of a regular file");
  EXPECT_EQ(open("/dev/zero").substr(0, 54),
            "cannot read the text '/dev/zero': it is a pipe or a de");
  std::string path = folder.write("short", countingText(16));
  EXPECT_EQ(open(path), "the text '" + path +
                            "' is too short: it has 16 bytes, 8 of them for "
                            "training, and a window needs 9");
  path = folder.write("empty", "");
  EXPECT_NE(open(path).find("it has 0 bytes"), std::string::npos);
}
