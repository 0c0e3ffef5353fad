//===- DatasetTest.cpp - Text as bytes ------------------------------------===//
#include "TokenFiles.h"
#include "fsdp/Support/Checksum.h"
#include <map>
#include <sys/stat.h>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

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
  EXPECT_EQ(data.trainText(1000).size(), 950u);
  EXPECT_EQ(data.heldOutText(1000), countingText(1000).substr(950));
  EXPECT_EQ(data.heldOutText(7), countingText(1000).substr(950, 7));
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
    ASSERT_EQ(data.heldOutTokens(), heldOut);
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

// Another process may cut a file that a run reads; of a mapped one, that is a
// signal.
TEST(ByteDataset, ATextThatIsCutMeanwhileIsAnError) {
  TemporaryFolder folder;
  std::string path = folder.write("t", countingText(3000000));
  ByteDataset data(path, 0.5, 8);
  EXPECT_EQ(data.identity().checksum, checksumOf(countingText(3000000)));
  std::filesystem::resize_file(path, 100);
  OwnedBatch batch(8, 8);
  std::string cut = "cannot read the text '" + path + "' at byte ";
  std::string changed = ": the file was changed while it was in use, it had "
                        "3000000 bytes; leave it as it is until the run is "
                        "over";
  EXPECT_EQ(messageOf([&] { data.heldOutText(9); }), cut + "1500000" + changed);
  EXPECT_EQ(messageOf([&] { data.identity(); }),
            cut + "100" + changed);
  EXPECT_EQ(messageOf([&] {
              data.sampleTraining(1, 0, {}, batch.view);
            }).substr(0, cut.size()),
            cut);
  EXPECT_EQ(data.trainText(100), countingText(100));
}

TEST(ByteDataset, MissingAndShortTextsAreErrors) {
  TemporaryFolder folder;
  auto open = [&](const std::string &path) {
    return messageOf([&] { ByteDataset(path, 0.5, 8); });
  };
  EXPECT_EQ(open("/nowhere"),
            "cannot read the text '/nowhere': No such file or directory");
  EXPECT_EQ(open(""), "training.dataset_path is not set; name the text file");
  EXPECT_EQ(open(folder.path),
            "cannot read the text '" + folder.path + "': Is a directory");
  // A pipe without a writer would be waited for.
  std::string pipe = folder.file("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(open(pipe), "cannot read the text '" + pipe +
                            "': it is a pipe or a device, but training reads "
                            "at any position of a regular file");
  EXPECT_EQ(open("/dev/zero").substr(0, 54),
            "cannot read the text '/dev/zero': it is a pipe or a de");
  std::string path = folder.write("short", countingText(16));
  EXPECT_EQ(open(path), "the text '" + path +
                            "' is too short: it has 16 bytes, 8 of them for "
                            "training, and a window needs 9");
  path = folder.write("empty", "");
  EXPECT_NE(open(path).find("it has 0 bytes"), std::string::npos);
}

//===----------------------------------------------------------------------===//
// Token ids
//===----------------------------------------------------------------------===//

/// 300, 301 and so on.
template <typename T> static std::string countingIds(size_t count) {
  std::vector<T> ids;
  for (size_t i = 0; i < count; ++i)
    ids.push_back(static_cast<T>(300 + i));
  return bytesOf(ids);
}

TEST(IdsDataset, AllTypesAreReadAlike) {
  TemporaryFolder folder;
  IdsDataset narrow({folder.write("u16", countingIds<uint16_t>(18)), "u16", ""},
                    0.5, 8, 1024);
  IdsDataset wide({folder.write("u32", countingIds<uint32_t>(18)), "u32", ""},
                  0.5, 8, 1024);
  IdsDataset withSign(
      {folder.write("i32", countingIds<int32_t>(18)), "i32", ""}, 0.5, 8, 1024);
  for (const IdsDataset *data : {&narrow, &wide, &withSign}) {
    EXPECT_EQ(data->trainTokens(), 9);
    EXPECT_EQ(data->heldOutTokens(), 9);
    OwnedBatch batch(2, 8);
    // Only offset 0 is possible.
    data->sampleTraining(1, 5, {}, batch.view);
    for (int i = 0; i < 16; ++i) {
      EXPECT_EQ(batch.tokens[i], 300 + i % 8);
      EXPECT_EQ(batch.targets[i], 301 + i % 8);
    }
    EXPECT_EQ(data->fillHeldOut(0, {}, batch.view), 8);
    EXPECT_EQ(batch.tokens[0], 309);
    EXPECT_EQ(batch.targets[7], 317);
    EXPECT_EQ(batch.targets[8], kIgnoredTarget);
  }
  EXPECT_EQ(narrow.identity().trainBytes, 18);
  EXPECT_EQ(wide.identity().trainBytes, 36);
}

// The same windows as of a text: the position in the data is no other.
TEST(IdsDataset, WindowsAreThoseOfBytes) {
  TemporaryFolder folder;
  std::string text = countingText(5000);
  std::vector<uint16_t> ids;
  for (char byte : text)
    ids.push_back(static_cast<unsigned char>(byte));
  ByteDataset bytes(folder.write("t", text), 0.1, 8);
  IdsDataset same({folder.write("ids", bytesOf(ids)), "u16", ""}, 0.1, 8, 256);
  OwnedBatch a(3, 8), b(3, 8);
  for (int step = 0; step < 20; ++step) {
    bytes.sampleTraining(7, step, rows(1, 2), a.view);
    same.sampleTraining(7, step, rows(1, 2), b.view);
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.targets, b.targets);
  }
}

TEST(IdsDataset, MaskedIdsAreReadAndNotPredicted) {
  TemporaryFolder folder;
  std::string mask;
  for (int i = 0; i < 120; ++i)
    mask += static_cast<char>(i % 3 == 0);
  IdsDataset data({folder.write("ids", countingIds<uint16_t>(120)), "u16",
                   folder.write("mask", mask)},
                  0.5, 10, 1024);
  auto expectMasked = [](const OwnedBatch &batch, size_t places) {
    for (size_t i = 0; i < places; ++i) {
      int next = batch.tokens[i] + 1;
      EXPECT_EQ(batch.targets[i],
                (next - 300) % 3 == 0 ? next : kIgnoredTarget);
    }
  };
  OwnedBatch batch(3, 5);
  for (int step = 0; step < 10; ++step) {
    data.sampleTraining(1, step, {{0, 1}, {1, 2}}, batch.view);
    expectMasked(batch, 15);
  }
  // 59 predictions in rounds of 30, of which 19 labels.
  int64_t all = 0;
  for (int round = 0; round < 2; ++round) {
    int64_t sum = 0;
    for (int column = 0; column < 2; ++column) {
      sum += data.fillHeldOut(round, {{0, 1}, {column, 2}}, batch.view);
      if (round == 0)
        expectMasked(batch, 15);
    }
    EXPECT_EQ(data.heldOutPredictions(round, {{0, 1}, {1, 2}}, batch.view),
              sum);
    all += sum;
  }
  EXPECT_EQ(all, 19);
  EXPECT_EQ(data.countLabels(0, 60), 20);
}

TEST(IdsDataset, AMaskMayChangeMeanwhile) {
  TemporaryFolder folder;
  std::string path = folder.write("mask", std::string(120, '\1'));
  IdsDataset data(
      {folder.write("ids", countingIds<uint16_t>(120)), "u16", path}, 0.5, 10,
      1024);
  std::string label = std::string(1, '\7') + '\xff' + '\0';
  std::string mask;
  for (int i = 0; i < 40; ++i)
    mask += label;
  folder.write("mask", mask);
  EXPECT_EQ(data.countLabels(0, 120), 80);
  OwnedBatch batch(3, 20);
  EXPECT_EQ(data.fillHeldOut(0, {}, batch.view),
            data.heldOutPredictions(0, {}, batch.view));
  std::filesystem::resize_file(path, 60);
  EXPECT_EQ(messageOf([&] {
              data.fillHeldOut(0, {}, batch.view);
            }).substr(0, path.size() + 35),
            "cannot read the mask '" + path + "' at byte 61:");
}

/// The message of a file of ids for a vocabulary; "none" if it is taken.
static std::string messageOfIds(const std::string &bytes,
                                const std::string &type, int64_t vocabulary) {
  TemporaryFolder folder;
  std::string path = folder.write("ids", bytes);
  std::string message =
      messageOf([&] { IdsDataset({path, type, ""}, 0, 8, vocabulary); });
  std::string name = "the ids '" + path + "' are ";
  return message.empty() ? "none"
         : message.compare(0, name.size(), name) == 0
             ? message.substr(name.size())
             : message;
}

// Read as narrower ones, all ids of a small vocabulary are in it.
TEST(IdsDataset, WiderIdsAreErrors) {
  std::string narrow = "wider than the 16 bits of training.ids_dtype = u16: "
                       "every second number of 16 bits is ";
  std::string remedy = "; set training.ids_dtype = \"u32\"";
  std::string u32 = countingIds<uint32_t>(400000); // of several pieces
  EXPECT_EQ(messageOfIds(countingIds<uint32_t>(32), "u16", 1024),
            narrow + "0" + remedy);
  EXPECT_EQ(messageOfIds(countingIds<uint32_t>(65000), "u16", 65536),
            narrow + "0" + remedy);
  EXPECT_EQ(messageOfIds(countingIds<uint32_t>(65000), "u16", 0),
            narrow + "0" + remedy);
  // The upper halves of ids of Llama 3.
  EXPECT_EQ(messageOfIds(u32.substr(0, 4 * 120000), "u16", 128256),
            narrow + "at most 1" + remedy);
  EXPECT_EQ(messageOfIds(u32, "u32", 500000), "none");
  EXPECT_EQ(messageOfIds(countingIds<int64_t>(400000), "u32", 500000),
            "wider than the 32 bits of training.ids_dtype = u32: every second "
            "number of 32 bits is 0; write them in 32 bits, as "
            "ids.astype(\"<u4\").tofile() does");
  // Ids whose halves are no others: few, all 0, and one that is not.
  EXPECT_EQ(messageOfIds(countingIds<uint32_t>(31), "u16", 1024), "none");
  EXPECT_EQ(messageOfIds(std::string(200, '\0'), "u16", 1024), "none");
  std::string one = countingIds<uint32_t>(60000);
  one[one.size() - 2] = 1;
  EXPECT_EQ(messageOfIds(one, "u16", 65536), "none");
}

TEST(IdsDataset, OtherFormatsAreErrors) {
  const int64_t all = 65536; // every number is an id of it
  std::string text = "a text; tokenize it (docs/data.md shows how), or "
                     "set training.dataset = bytes";
  std::string line = "\"In the beginning\",\tGod\r\n";
  EXPECT_EQ(messageOfIds(line + line, "u16", 32000), text);
  EXPECT_EQ(
      messageOfIds("\xef\xbb\xbf" + line + "\xd0\x92 \f" + line, "u16", all),
      text);
  // 64 KiB are looked at, whose last character is cut.
  std::string euros = " ";
  for (int i = 0; i < 30000; ++i)
    euros += "\xe2\x82\xac";
  EXPECT_EQ(messageOfIds(euros + ".", "u16", all), text);
  EXPECT_EQ(messageOfIds(line + "\x01" + line + " ", "u16", all), "none");
  EXPECT_EQ(messageOfIds(line + "\x80" + line + " ", "u16", all), "none");
  EXPECT_EQ(messageOfIds("thirty bytes are not enough...", "u16", all), "none");
  std::string rest = countingIds<uint16_t>(40);
  std::string gzip("\x1f\x8b\x08\x00\0\0\0\0\x02\x03", 10);
  EXPECT_EQ(messageOfIds(gzip + rest, "u16", all),
            "compressed by gzip; gunzip unpacks them");
  gzip[3] = '\x20'; // a flag that nothing has
  EXPECT_EQ(messageOfIds(gzip + rest, "u16", all), "none");
  EXPECT_EQ(messageOfIds("\x28\xb5\x2f\xfd" + rest, "u16", all),
            "compressed by zstd; unzstd unpacks them");
}

TEST(IdsDataset, ErrorsNameFileAndPosition) {
  TemporaryFolder folder;
  auto open = [&](const std::string &ids, const std::string &type,
                  const std::string &mask = "", int64_t vocabulary = 1024) {
    try {
      IdsDataset data({folder.write("ids", ids), type,
                       mask.empty() ? "" : folder.write("mask", mask)},
                      0.5, 8, vocabulary);
    } catch (const Error &error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  std::string ids = "the ids '" + folder.file("ids") + "'";
  std::string mask = "the mask '" + folder.file("mask") + "'";
  std::string good = countingIds<uint16_t>(18);
  EXPECT_EQ(open(good, "u16"), "no error");
  EXPECT_EQ(open(good + "x", "u16"),
            ids + " have 37 bytes, which are no whole number of ids of "
                  "training.ids_dtype = u16");
  // The 18th is 317.
  EXPECT_EQ(open(good, "u16", "", 317),
            ids + " are not the model's: id 317 at position 17 (byte 34) is "
                  "not in its vocabulary, 0 to 316; is training.ids_dtype = "
                  "u16 the type of the file, and its tokenizer the model's?");
  std::string narrow = open(countingIds<uint16_t>(40), "u32");
  EXPECT_EQ(narrow.find(ids + " are not the model's: id 19726636 at position "
                              "0 (byte 0)"),
            0u)
      << narrow;
  std::vector<int32_t> negative(20000, 5);
  negative[19000] = -100;
  std::string below = open(bytesOf(negative), "i32");
  EXPECT_NE(below.find("id -100 at position 19000 (byte 76000)"),
            std::string::npos)
      << below;
  EXPECT_EQ(open(countingIds<uint16_t>(17), "u16"),
            ids + " are too few: there are 17, 8 of them for training, and a "
                  "window needs 9; take a longer file, or lower "
                  "validation.fraction");
  EXPECT_EQ(open(good, "u16", std::string(17, '\1')),
            mask + " has 17 bytes, and '" + folder.file("ids") +
                "' 18 ids; it needs a byte for each");
  std::string other(18, '\1');
  other[12] = '1';
  EXPECT_EQ(open(good, "u16", other),
            mask + " has 49 at position 12; a byte of it is 1 (a label) or 0 "
                   "(none)");
  EXPECT_EQ(
      open(good, "u16", std::string(9, '\0') + std::string(9, '\1')),
      mask +
          " marks none of the 9 ids to train on as a label; a byte of 1 does");
  EXPECT_EQ(open("\x93NUMPY" + good, "u16"),
            ids + " are a file of NumPy; ids.tofile() writes bare ids");
  EXPECT_EQ(open(std::string("\x07\0\0\0\0\0\0\0{\"a\":1}", 15) + good, "u16"),
            ids + " are a safetensors file; ids.tofile() writes bare ids");
  // The same bytes in places where the format has others are ids.
  EXPECT_EQ(open(good.substr(0, 8) + "{\"" + good, "u16", "", 10000),
            "no error");
  EXPECT_EQ(open("PK\x03\x04" + good, "u16", "", 20000), "no error");
  EXPECT_EQ(open("PK\x03\x04" + good + std::string("PK\x05\x06", 4), "u16"),
            ids + " are a zip archive; unpack it, or write bare ids with "
                  "ids.tofile()");
}
