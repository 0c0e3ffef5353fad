//===- TokenFilesTest.cpp - Files of Megatron-LM and llm.c ----------------===//
#include "TokenFiles.h"
#include <functional>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

//===----------------------------------------------------------------------===//
// Megatron
//===----------------------------------------------------------------------===//

TEST(MegatronTokens, AreReadByEitherName) {
  TemporaryFolder folder;
  std::string prefix = Megatron().write(folder);
  for (const char *end : {"", ".idx", ".bin"}) {
    TokenDataset data(openMegatron(prefix + end), 0.5, 4, 32);
    EXPECT_EQ(data.documents(), 3);
    // Documents begin at 0, 5 and 12.
    EXPECT_EQ(data.trainTokens(), 12);
    EXPECT_EQ(data.firstIds(3), (std::vector<int32_t>{12, 13, 14}));
    for (int32_t id : firstRows(data, 20, 4))
      EXPECT_LT(id, 12);
  }
  Megatron wide;
  wide.type = 4;
  wide.offsets = {0, 20, 20, 48};
  wide.more = std::string(4, '\1'); // modes
  wide.ids = bytesOf(counting<int32_t>(70000, 32));
  wide.write(folder);
  EXPECT_EQ(TokenDataset(openMegatron(prefix), 0, 4, 80000).firstIds(2),
            (std::vector<int32_t>{70000, 70001}));
}

TEST(MegatronTokens, AreKnownAgain) {
  TemporaryFolder folder;
  Megatron files;
  auto digest = [&] { return openMegatron(files.write(folder)).digest; };
  uint64_t before = digest();
  EXPECT_EQ(digest(), before);
  files.ids[40] ^= 1;
  EXPECT_NE(digest(), before);
  files.ids[40] ^= 1;
  files.firsts[1] = 1;
  EXPECT_NE(digest(), before);
}

TEST(MegatronTokens, ThatAreWrongAreRefused) {
  using Change = std::function<void(Megatron &)>;
  constexpr uint64_t kMany = uint64_t{1} << 62;
  std::vector<std::pair<Change, std::string>> cases{
      {[](Megatron &m) { m.magic[0] = 'X'; }, "it does not begin with MMIDIDX"},
      {[](Megatron &m) { m.version = 2; }, "is of version 2"},
      {[](Megatron &m) { m.type = 6; }, "type 6 (f64)"},
      {[](Megatron &m) { m.type = 0; }, "type 0,"},
      {[](Megatron &m) { m.type = 255; }, "type 255,"},
      {[](Megatron &m) { m.type = 5; }, "type 5 (i64)"},
      {[](Megatron &m) { m.type = 4; }, "has sequence 1 at byte 10"},
      {[](Megatron &m) { m.sequences = 0; }, "it has 0 sequences"},
      {[](Megatron &m) { m.sequences = 5; }, "its 5 sequences take"},
      {[](Megatron &m) { m.sequences = 3; }, "its 3 sequences take"},
      {[=](Megatron &m) { m.sequences = kMany; }, "sequences"},
      {[=](Megatron &m) { m.sequences = ~uint64_t{0}; }, "sequences"},
      {[=](Megatron &m) { m.documents = kMany; }, "for its documents"},
      {[=](Megatron &m) { m.documents = ~uint64_t{0}; }, "for its documents"},
      {[](Megatron &m) { m.documents = 0; }, "an array of 0"},
      {[](Megatron &m) { m.documents = 1; }, "an array of 1"},
      {[](Megatron &m) { m.documents = 3; }, "bytes, and its 4 sequences"},
      {[](Megatron &m) { m.lengths[2] = -7; }, "a length of -7"},
      {[](Megatron &m) { m.lengths[0] = 6; }, "has sequence 1 at byte 10"},
      {[](Megatron &m) { m.lengths[3] = 21; }, "tells of 33 tokens"},
      {[](Megatron &m) { m.lengths[3] = 0x7fffffff; }, "are they of one pair"},
      {[](Megatron &m) { m.lengths = {0, 0, 0, 0}; m.offsets = {0, 0, 0, 0}; },
       "has no tokens"},
      {[](Megatron &m) { m.offsets[1] = -10; }, "has sequence 1 at byte -10"},
      {[](Megatron &m) { m.offsets[3] = 26; }, "has sequence 3 at byte 26"},
      {[](Megatron &m) { m.firsts[0] = 1; }, "has document 0 at sequence 1"},
      {[](Megatron &m) { m.firsts[2] = 1; }, "has document 2 at sequence 1"},
      {[](Megatron &m) { m.firsts[2] = 5; }, "has document 2 at sequence 5"},
      {[](Megatron &m) { m.firsts[3] = 3; }, "has document 3 at sequence 3"},
      {[](Megatron &m) { m.more = "abc"; }, "bytes, and its 4 sequences"},
      {[](Megatron &m) { m.ids.pop_back(); }, "has 63 bytes"},
      {[](Megatron &m) { m.ids.clear(); }, "has 0 bytes"},
  };
  for (const auto &[change, expected] : cases) {
    TemporaryFolder folder;
    Megatron files;
    change(files);
    std::string message = messageOf([&] { openMegatron(files.write(folder)); });
    EXPECT_NE(message.find(expected), std::string::npos)
        << expected << ": " << message;
  }
  EXPECT_EQ(cases.size(), 31u);
  // Cut short anywhere.
  Megatron files;
  std::string index = files.index();
  for (size_t size = 0; size < index.size(); ++size) {
    TemporaryFolder folder;
    std::string prefix = files.write(folder);
    folder.write("m.idx", index.substr(0, size));
    EXPECT_NE(messageOf([&] { openMegatron(prefix); }), "") << size;
  }
}

//===----------------------------------------------------------------------===//
// llm.c
//===----------------------------------------------------------------------===//

static std::string llmcFile(int32_t magic, int32_t version, int32_t count,
                            const std::string &ids) {
  std::vector<int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytesOf(header) + ids;
}

static constexpr int32_t kGpt2 = 20240520, kLlama3 = 20240801;

TEST(LlmcTokens, FilesFollowByName) {
  TemporaryFolder folder;
  folder.write("t_2.bin", llmcFile(kGpt2, 1, 20, bytesOf(counting<uint16_t>(30, 20))));
  folder.write("t_1.bin", llmcFile(kGpt2, 1, 30, bytesOf(counting<uint16_t>(0, 30))));
  folder.write("val.bin", llmcFile(kLlama3, 7, 9, bytesOf(counting<uint32_t>(99990, 9))));
  TokenDataset data(openLlmc(folder.path + "/t_*.bin"), 0.1, 49 - 5, 50);
  EXPECT_EQ(data.documents(), 0);
  EXPECT_EQ(data.trainTokens(), 45);
  std::vector<int32_t> row = firstRows(data, 1, 44);
  for (int32_t i = 0; i < 44; ++i)
    EXPECT_EQ(row[i], i);
  TokenDataset wide(openLlmc(folder.path + "/val.bin"), 0, 8, 100000);
  EXPECT_EQ(wide.firstIds(2), (std::vector<int32_t>{99990, 99991}));
  EXPECT_NE(messageOf([&] {
              firstRows(TokenDataset(openLlmc(folder.path + "/val.bin"), 0, 8,
                                     99995),
                        1, 8);
            }).find("has id 99995 at token 5, which is not in the model's "
                    "vocabulary, 0 to 99994"),
            std::string::npos);
}

TEST(LlmcTokens, ThatAreWrongAreRefused) {
  TemporaryFolder folder;
  std::string ids = bytesOf(counting<uint16_t>(0, 20));
  std::vector<std::pair<std::string, std::string>> cases{
      {"", "it has 0 bytes, and the header takes 1024"},
      {std::string(1023, '\0'), "it has 1023 bytes"},
      {std::string(1024, '\0'), "its first number is 0"},
      {llmcFile(20240522, 1, 20, ids), "its first number is 20240522"},
      {llmcFile(kGpt2, 2, 20, ids), "it is of version 2"},
      {llmcFile(kLlama3, 1, 20, ids), "it is of version 1"},
      {llmcFile(kGpt2, 1, 0, ""), "its header tells of 0 tokens"},
      {llmcFile(kGpt2, 1, -20, ids), "its header tells of -20 tokens"},
      {llmcFile(kGpt2, 1, 21, ids), "its header tells of 21 tokens"},
      {llmcFile(kGpt2, 1, 19, ids), "its header tells of 19 tokens"},
      {llmcFile(kGpt2, 1, 0x7fffffff, ids), "was it copied whole?"},
      {llmcFile(kLlama3, 7, 20, ids), "its header tells of 20 tokens"},
      {ids + std::string(1024, ' '), "bare ids are training.dataset = ids"}};
  for (const auto &[bytes, expected] : cases) {
    std::string path = folder.write("t.bin", bytes);
    std::string message = messageOf([&] { openLlmc(path); });
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  }
  // Cut short anywhere, or with a flipped bit of what the header says.
  std::string good = llmcFile(kGpt2, 1, 20, ids);
  for (size_t size = 0; size < good.size(); size += 9) {
    std::string path = folder.write("t.bin", good.substr(0, size));
    EXPECT_NE(messageOf([&] { openLlmc(path); }), "") << size;
  }
  for (size_t bit = 0; bit < 96; ++bit) {
    std::string damaged = good;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    std::string path = folder.write("t.bin", damaged);
    EXPECT_NE(messageOf([&] { openLlmc(path); }), "") << bit;
  }
  EXPECT_NE(messageOf([&] { openLlmc(folder.path + "/none*"); })
                .find("No such file or directory"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { openLlmc(folder.path); }).find("Is a directory"),
            std::string::npos);
}
