//===- TokenDatasetTest.cpp - Token folders and their documents -----------===//
#include "TokenFiles.h"
#include <algorithm>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;
using nlohmann::json;

namespace {

/// Two shards of 60 and 40 ids, the second with a mask; documents at 0, 25, 60,
/// 61 and 90.
struct Folder {
  Folder() {
    mkdir(path.c_str(), 0777);
    write("ids-00000.bin", bytesOf(counting<uint16_t>(0, 60)));
    write("ids-00001.bin", bytesOf(counting<uint16_t>(60, 40)));
    std::string mask;
    for (int i = 60; i < 100; ++i)
      mask += static_cast<char>(i % 4 != 0);
    write("mask-00001.bin", mask);
    write("documents.bin", bytesOf<uint64_t>({0, 25, 60, 61, 90}));
    // Token i is "i,".
    std::string texts;
    std::vector<uint64_t> table{100, 0};
    for (int i = 0; i < 100; ++i) {
      texts += std::to_string(i) + ",";
      table.push_back(texts.size());
    }
    write("table.bin", bytesOf(table) + texts);
    auto file = [&](const char *name, int64_t bytes) {
      return json{{"file", name}, {"bytes", bytes}, {"xxh3", "0123456789abcdef"}};
    };
    description = {{"format", "fsdp tokens"},
                   {"version", 1},
                   {"dtype", "u16"},
                   {"tokens", 100},
                   {"documents", 5},
                   {"labels", 90},
                   {"largest_id", 99},
                   {"vocabulary", 100},
                   {"shards", {file("ids-00000.bin", 120), file("ids-00001.bin", 80)}},
                   {"document_starts", file("documents.bin", 40)},
                   {"table", file("table.bin", int64_t(8 + 101 * 8 + texts.size()))}};
    description["shards"][0]["tokens"] = 60;
    description["shards"][1]["tokens"] = 40;
    description["shards"][1]["mask"] = file("mask-00001.bin", 40);
    description["shards"][1]["mask"]["labels"] = 30;
    describe();
  }

  void write(const std::string &name, const std::string &bytes) const {
    root.write("tokens/" + name, bytes);
  }
  void describe() const { write("tokens.json", description.dump()); }

  TemporaryFolder root;
  std::string path = root.path + "/tokens";
  json description;
};

} // namespace

//===----------------------------------------------------------------------===//
// Token folders
//===----------------------------------------------------------------------===//

TEST(TokenFolder, HoldsOutWholeDocuments) {
  Folder folder;
  // Of 100 tokens 5 are asked for; the next document begins at 90. With 20 the
  // share begins at 80, with 9.9 % at 90.
  for (auto [fraction, train] : std::vector<std::pair<double, int64_t>>{
           {0.05, 90}, {0.2, 90}, {0.099, 90}, {0.4, 60}, {0.39, 61}, {0, 100}}) {
    TokenDataset data(openTokenFolder(folder.path), fraction, 10, 100);
    EXPECT_EQ(data.trainTokens(), train) << fraction;
    EXPECT_EQ(data.heldOutTokens(), 100 - train);
    EXPECT_FALSE(data.splitsDocument());
  }
}

TEST(TokenFolder, HoldsOutTheEndOfALongDocument) {
  Folder folder;
  // To be trained on are 95 tokens, and half of them at least are.
  for (auto [starts, train] :
       std::vector<std::pair<std::vector<uint64_t>, int64_t>>{
           {{0}, 95},
           {{0, 46}, 95},
           {{0, 47}, 47},
           {{0, 10, 20}, 95},
           {{0, 95}, 95},
           {{0, 10, 97}, 97}}) {
    folder.write("documents.bin", bytesOf(starts));
    folder.description["documents"] = starts.size();
    folder.description["document_starts"]["bytes"] = 8 * starts.size();
    folder.describe();
    TokenDataset data(openTokenFolder(folder.path), 0.05, 10, 100);
    EXPECT_EQ(data.trainTokens(), train);
    EXPECT_EQ(data.splitsDocument(),
              std::count(starts.begin(), starts.end(), uint64_t(train)) == 0);
    OwnedBatch batch(1, 10);
    EXPECT_EQ(data.fillHeldOut(0, {}, batch.view),
              data.heldOutPredictions(0, {}, batch.view));
    EXPECT_EQ(batch.tokens[0], train);
  }
}

TEST(TokenFolder, WindowsCrossShards) {
  Folder folder;
  TokenDataset data(openTokenFolder(folder.path), 0, 50, 100);
  OwnedBatch batch(1, 50);
  bool crosses = false;
  for (int64_t step = 0; step < 20; ++step) {
    data.sampleTraining(3, step, {}, batch.view);
    int first = batch.tokens[0];
    crosses |= first < 60 && first + 50 > 60;
    for (int i = 0; i < 50; ++i) {
      int next = first + i + 1;
      ASSERT_EQ(batch.tokens[i], next - 1);
      ASSERT_EQ(batch.targets[i],
                next >= 60 && next % 4 == 0 ? kIgnoredTarget : next);
    }
  }
  EXPECT_TRUE(crosses);
}

TEST(TokenFolder, CountsLabels) {
  Folder folder;
  TokenDataset data(openTokenFolder(folder.path), 0, 10, 100);
  EXPECT_EQ(data.countLabels(0, 100), 90);
  EXPECT_EQ(data.countLabels(0, 60), 60);
  EXPECT_EQ(data.countLabels(58, 66), 6);
  EXPECT_EQ(data.countLabels(60, 100), 30);
  EXPECT_EQ(data.documents(), 5);
  DataIdentity identity = data.identity();
  EXPECT_EQ(identity.bytes, 200);
  EXPECT_EQ(identity.trainBytes, 200);
}

TEST(TokenFolder, ItsDescriptionIsItsIdentity) {
  Folder folder;
  auto digest = [&] {
    return TokenDataset(openTokenFolder(folder.path), 0, 10, 100)
        .identity()
        .checksum;
  };
  uint64_t before = digest();
  EXPECT_EQ(digest(), before);
  folder.description["shards"][0]["xxh3"] = "1123456789abcdef";
  folder.describe();
  EXPECT_NE(digest(), before);
}

TEST(TokenFolder, ItsTableDecodes) {
  Folder folder;
  TokenTable table(openTokenFolder(folder.path).tablePath);
  EXPECT_EQ(table.size(), 100);
  EXPECT_EQ(table.decode({3, 99, 0, -1, 100, 12}), "3,99,0,12,");
}

TEST(TokenFolder, TablesThatAreDamagedAreRefused) {
  TemporaryFolder folder;
  auto refused = [&](const std::vector<uint64_t> &numbers,
                     const std::string &texts) {
    return messageOf([&] {
      TokenTable(folder.write("table", bytesOf(numbers) + texts));
    });
  };
  EXPECT_EQ(refused({2, 0, 1, 3}, "abc"), "");
  for (const auto &numbers : std::vector<std::vector<uint64_t>>{
           {},
           {0},
           {3, 0, 1, 3},
           {~uint64_t{0}, 0, 1, 3},
           {uint64_t{1} << 61, 0, 1, 3},
           {2, 1, 1, 3},
           {2, 0, 2, 1},
           {2, 0, 1, 4},
           {2, 0, 4, 3},
           {2, 0, ~uint64_t{0}, 3}})
    EXPECT_NE(refused(numbers, "abc").find("the table of tokens '"),
              std::string::npos)
        << numbers.size();
}

/// What is said of a folder whose description was changed, without its path.
static std::string
messageOfFolder(const std::function<void(Folder &)> &change,
                int64_t vocabulary = 100) {
  Folder folder;
  change(folder);
  std::string message = messageOf([&] {
    TokenDataset data(openTokenFolder(folder.path), 0, 10, vocabulary);
    firstRows(data, 9, 10);
  });
  for (size_t at; (at = message.find(folder.path)) != std::string::npos;)
    message.replace(at, folder.path.size(), "F");
  return message;
}

TEST(TokenFolder, DescriptionsThatAreWrongAreRefused) {
  EXPECT_EQ(messageOfFolder([](Folder &) {}), "");
  using Change = std::function<void(json &)>;
  // A change, and what its message has.
  std::vector<std::pair<Change, std::string>> cases{
      {[](json &d) { d.erase("format"); }, "format"},
      {[](json &d) { d["format"] = "tokens"; }, "expected \"fsdp tokens\""},
      {[](json &d) { d["version"] = 2; }, "this program reads version 1"},
      {[](json &d) { d["dtype"] = "i64"; }, "expected u16 or u32"},
      {[](json &d) { d["dtype"] = "u32"; }, "expected 240"},
      {[](json &d) { d["tokens"] = 101; }, "the shards have 100"},
      {[](json &d) { d["tokens"] = -1; }, "tokens: expected an integer"},
      {[](json &d) { d["shards"] = json::array(); }, "there are none"},
      {[](json &d) { d["shards"] = 3; }, "shards"},
      {[](json &d) { d["shards"][0]["tokens"] = 0; }, "tokens: expected"},
      {[](json &d) { d["shards"][0]["tokens"] = 61; }, "expected 122"},
      {[](json &d) { d["shards"][0]["tokens"] = int64_t{1} << 61; },
       "more tokens than a file has"},
      {[](json &d) { d["shards"][0]["file"] = "../ids-00000.bin"; },
       "expected the name of a file in this folder"},
      {[](json &d) { d["shards"][0]["file"] = "/etc/passwd"; },
       "expected the name of a file in this folder"},
      {[](json &d) { d["shards"][0]["file"] = ""; },
       "expected the name of a file in this folder"},
      {[](json &d) { d["shards"][0]["file"] = "other.bin"; },
       "cannot read the tokens 'F/other.bin': No such file"},
      {[](json &d) { d["shards"][0]["bytes"] = 121; }, "expected 120"},
      {[](json &d) { d["shards"][1]["mask"]["bytes"] = 39; }, "expected 40"},
      {[](json &d) { d["shards"][1]["mask"]["labels"] = 41; },
       "more labels than tokens"},
      {[](json &d) { d["documents"] = 0; }, "documents: expected"},
      {[](json &d) { d["documents"] = 101; }, "more documents than tokens"},
      {[](json &d) { d["documents"] = 4; }, "expected 32"},
      {[](json &d) { d["document_starts"]["file"] = "ids-00000.bin"; },
       "'ids-00000.bin' has 120 bytes, and tokens.json says 40"},
      {[](json &d) { d.erase("document_starts"); }, "document_starts"},
      {[](json &d) { d["largest_id"] = "many"; }, "largest_id"},
      {[](json &d) { d["table"]["bytes"] = 8; }, "tokens.json says 8"},
  };
  for (const auto &[change, expected] : cases) {
    const Change &apply = change;
    std::string message = messageOfFolder([&](Folder &folder) {
      apply(folder.description);
      folder.describe();
    });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
    EXPECT_NE(message.find("F"), std::string::npos) << message;
  }
  EXPECT_EQ(cases.size(), 26u);
}

TEST(TokenFolder, FilesThatAreWrongAreRefused) {
  std::vector<std::pair<std::function<void(Folder &)>, std::string>> cases{
      {[](Folder &f) { f.write("tokens.json", ""); }, "F/tokens.json"},
      {[](Folder &f) { f.write("tokens.json", "[]"); }, "F/tokens.json"},
      {[](Folder &f) { f.write("tokens.json", "{\"format\": "); }, "line 1"},
      {[](Folder &f) { std::filesystem::remove(f.path + "/tokens.json"); },
       "cannot read the description of a token folder 'F/tokens.json'"},
      {[](Folder &f) { f.write("ids-00000.bin", "short"); },
       "was changed: 'ids-00000.bin' has 5 bytes, and tokens.json says 120; "
       "write the folder anew with tools/fsdp-tokenize"},
      {[](Folder &f) { f.write("documents.bin", std::string(40, '\1')); },
       "was changed: its first document begins at token"},
      {[](Folder &f) {
         f.write("documents.bin", bytesOf<uint64_t>({0, 25, 60, 61, 100}));
       },
       "was changed: its last document begins at token 100 of 100"},
      {[](Folder &f) { std::filesystem::remove(f.path + "/mask-00001.bin"); },
       "cannot read the tokens 'F/mask-00001.bin'"},
      {[](Folder &f) {
         std::filesystem::remove(f.path + "/table.bin");
         mkdir((f.path + "/table.bin").c_str(), 0777);
       },
       "Is a directory"},
      // An id that the description does not tell of is found when it is read.
      {[](Folder &f) {
         f.write("ids-00001.bin", bytesOf(counting<uint16_t>(70, 40)));
       },
       "which is not in the model's vocabulary, 0 to 99"}};
  for (const auto &[change, expected] : cases)
    EXPECT_NE(messageOfFolder(change).find(expected), std::string::npos)
        << messageOfFolder(change);
  EXPECT_EQ(messageOfFolder([](Folder &) {}, 99),
            "the token folder 'F' is not of the model's tokenizer: it has id "
            "99, and the model's vocabulary is 0 to 98; tokenize with the "
            "model's tokenizer");
}

TEST(TokenFolder, WindowsThatDoNotFitAreRefused) {
  Folder folder;
  auto message = [&](double fraction, int64_t sequence) {
    return messageOf([&] {
      TokenDataset(openTokenFolder(folder.path), fraction, sequence, 100);
    });
  };
  EXPECT_EQ(message(0, 99), "");
  EXPECT_EQ(message(0, 100), "the token folder '" + folder.path +
                                 "' has too few tokens: 100, 100 of them for "
                                 "training up to the last document that is "
                                 "held out whole, and a window needs 101; take "
                                 "more text, or lower validation.fraction");
  EXPECT_NE(message(0.9, 50).find("100, 25 of them for training"),
            std::string::npos);
}

TEST(TokenFolder, MasksWithoutALabelAreRefused) {
  Folder folder;
  folder.write("ids-00000.bin", bytesOf(counting<uint16_t>(0, 60)));
  folder.write("mask-00000.bin", std::string(60, '\0'));
  json mask = folder.description["shards"][1]["mask"];
  mask["file"] = "mask-00000.bin";
  mask["bytes"] = 60;
  mask["labels"] = 0;
  folder.description["shards"][0]["mask"] = mask;
  folder.describe();
  EXPECT_EQ(messageOf([&] {
              TokenDataset(openTokenFolder(folder.path), 0.4, 10, 100);
            }),
            "the token folder '" + folder.path +
                "' marks none of the 60 tokens to train on as a label");
}

//===----------------------------------------------------------------------===//
// Documents
//===----------------------------------------------------------------------===//

/// Where the document of token `at` begins in a folder.
static int64_t startIn(const std::vector<int64_t> &documents, int64_t at) {
  int64_t start = 0;
  for (int64_t document : documents)
    start = document <= at ? document : start;
  return start;
}

TEST(Documents, StartsAreThoseOfTheRow) {
  Folder folder;
  TokenDataset data(openTokenFolder(folder.path), 0, 48, 100);
  OwnedBatch batch(1, 24);
  std::vector<int32_t> starts(48);
  batch.view.starts = starts.data();
  for (int64_t step = 0; step < 40; ++step)
    for (int64_t column : {0, 1}) {
      data.sampleTraining(4, step, {{0, 1}, {column, 2}}, batch.view);
      // Starts are of the whole row, of which the rank has a half.
      int64_t first = batch.tokens[0] - 24 * column;
      for (int64_t i = 0; i < 48; ++i)
        ASSERT_EQ(starts[i],
                  std::max<int64_t>(
                      startIn({0, 25, 60, 61, 90}, first + i) - first, 0));
    }
}

TEST(Documents, TheirFirstTokensAreNoLabels) {
  Folder folder;
  TokenDataset together(openTokenFolder(folder.path), 0.4, 10, 100);
  TokenDataset data(openTokenFolder(folder.path), 0.4, 10, 100);
  data.separateDocuments();
  // 25 and 61 are labels, 60 is none in the mask, 90 is one.
  EXPECT_EQ(together.countLabels(1, 60) - data.countLabels(1, 60), 1);
  EXPECT_EQ(together.countLabels(61, 100) - data.countLabels(61, 100), 2);
  EXPECT_EQ(together.countLabels(25, 26), 1);
  EXPECT_EQ(data.countLabels(25, 26), 0);
  OwnedBatch batch(2, 10);
  std::vector<int32_t> starts(20, -1);
  batch.view.starts = starts.data();
  int64_t predictions = 0;
  for (int64_t round = 0; round < data.heldOutRounds({}, batch.view); ++round) {
    int64_t found = data.fillHeldOut(round, {}, batch.view);
    EXPECT_EQ(found, data.heldOutPredictions(round, {}, batch.view));
    predictions += found;
    for (int64_t i = 0; i < 20; ++i) {
      int64_t first = 60 + round * 20 + i / 10 * 10, at = first + i % 10;
      // The last token is only predicted; its place and those after are
      // padding.
      int64_t padding = std::clamp<int64_t>(99 - first, 0, 10);
      ASSERT_EQ(starts[i],
                i % 10 < padding
                    ? std::max<int64_t>(startIn({60, 61, 90}, at) - first, 0)
                    : padding);
      bool isLabel = at + 1 < 100 && (at + 1) % 4 != 0 && at + 1 != 61 &&
                     at + 1 != 90;
      ASSERT_EQ(batch.targets[i], isLabel ? at + 1 : kIgnoredTarget) << at;
    }
  }
  EXPECT_EQ(predictions, data.countLabels(61, 100));
}

TEST(Documents, EmptyOnesAreCountedOnce) {
  TemporaryFolder folder;
  Megatron files;
  // Documents at 0, 5, 5 and 12: the second is empty.
  files.firsts = {0, 1, 2, 3, 4};
  files.documents = 5;
  TokenDataset data(openMegatron(files.write(folder)), 0, 8, 32);
  data.separateDocuments();
  EXPECT_EQ(data.documents(), 4);
  EXPECT_EQ(data.countLabels(1, 32), 29);
  OwnedBatch batch(1, 31);
  std::vector<int32_t> starts(31);
  batch.view.starts = starts.data();
  data.sampleTraining(1, 0, {}, batch.view);
  EXPECT_EQ(starts[4], 0);
  EXPECT_EQ(starts[5], 5);
  EXPECT_EQ(starts[30], 12);
}

//===----------------------------------------------------------------------===//
// Epochs
//===----------------------------------------------------------------------===//

TEST(WindowOrder, AnEpochHasEveryWindowOnce) {
  Folder folder;
  TokenDataset data(openTokenFolder(folder.path), 0, 10, 100);
  data.setOrder(WindowOrder::Shuffled);
  // 9 windows of 10 in 100 tokens, each followed by another one.
  std::vector<std::vector<int32_t>> epochs;
  for (int64_t epoch = 0; epoch < 20; ++epoch) {
    std::vector<int32_t> firsts;
    OwnedBatch batch(1, 10);
    for (int64_t step = 9 * epoch; step < 9 * (epoch + 1); ++step) {
      data.sampleTraining(5, step, {}, batch.view);
      firsts.push_back(batch.tokens[0]);
    }
    epochs.push_back(firsts);
    std::sort(firsts.begin(), firsts.end());
    for (size_t i = 1; i < firsts.size(); ++i)
      ASSERT_EQ(firsts[i], firsts[i - 1] + 10) << epoch;
  }
  std::sort(epochs.begin(), epochs.end());
  EXPECT_EQ(std::unique(epochs.begin(), epochs.end()), epochs.end());
}

TEST(WindowOrder, EveryMeshSeesTheSame) {
  Folder folder;
  TokenDataset data(openTokenFolder(folder.path), 0, 8, 100);
  for (WindowOrder order : {WindowOrder::Random, WindowOrder::Shuffled}) {
    data.setOrder(order);
    for (int64_t step = 0; step < 30; ++step) {
      OwnedBatch whole(6, 8);
      data.sampleTraining(2, step, {}, whole.view);
      for (int64_t rows : {1, 2, 3})
        for (int64_t columns : {1, 2, 4}) {
          OwnedBatch part(6 / rows, 8 / columns);
          for (int64_t row = 0; row < rows; ++row)
            for (int64_t column = 0; column < columns; ++column) {
              data.sampleTraining(2, step, {{row, rows}, {column, columns}},
                                  part.view);
              for (int64_t i = 0; i < part.view.rows; ++i)
                for (int64_t j = 0; j < part.view.sequence; ++j)
                  ASSERT_EQ(
                      part.tokens[i * part.view.sequence + j],
                      whole.tokens[(row * part.view.rows + i) * 8 +
                                   column * part.view.sequence + j]);
            }
        }
    }
  }
}
