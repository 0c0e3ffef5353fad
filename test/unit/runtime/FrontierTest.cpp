//===- FrontierTest.cpp - Labels find what trying everything finds --------===//
#include "fsdp/Schedule/Frontier.h"
#include "fsdp/Support/Json.h"
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <iterator>
#include <map>
#include <random>

using namespace fsdp;
using namespace fsdp::problem;

namespace {

class RandomChain {
public:
  explicit RandomChain(unsigned seed) : random(seed) {}

  int64_t below(int64_t end) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(end));
  }

  /// At most five blocks of at most three options. Few different numbers, so
  /// that many choices are equal.
  BlockChain next() {
    BlockChain chain;
    int64_t most = 2 + below(30);
    chain.classes.resize(1 + below(3));
    for (auto &options : chain.classes)
      for (int64_t count = 1 + below(3); count > 0; --count)
        options.push_back({below(most), below(2 * most),
                           Duration::ofPicoseconds(below(most))});
    int64_t blocks = 1 + below(5);
    for (int64_t i = 0; i < blocks; ++i) {
      chain.classOf.push_back(below(chain.classes.size()));
      chain.beside.push_back(below(most / 2));
    }
    chain.loss = below(2 * most);
    chain.fixed = below(3 * most);
    return chain;
  }

private:
  std::mt19937 random;
};

/// All choices of a chain.
std::vector<std::vector<uint32_t>> allChoices(const BlockChain &chain) {
  std::vector<std::vector<uint32_t>> all = {{}};
  for (uint32_t kind : chain.classOf) {
    std::vector<std::vector<uint32_t>> longer;
    for (const auto &choice : all)
      for (uint32_t i = 0; i < chain.classes[kind].size(); ++i) {
        longer.push_back(choice);
        longer.back().push_back(i);
      }
    all = std::move(longer);
  }
  return all;
}

TEST(Frontier, IsWhatTryingEverythingFinds) {
  RandomChain chains(1);
  for (int number = 0; number < 1000; ++number) {
    BlockChain chain = chains.next();
    std::map<int64_t, Duration> least; // time by bytes
    for (const auto &choice : allChoices(chain)) {
      Duration time = timeOf(chain, choice);
      auto at = least.try_emplace(peakOf(chain, choice), time).first;
      if (time < at->second)
        at->second = time;
    }
    std::vector<std::pair<int64_t, int64_t>> expected, found;
    for (auto [bytes, time] : least)
      if (expected.empty() || time.picoseconds() < expected.back().second)
        expected.emplace_back(bytes, time.picoseconds());
    Frontier frontier(chain, /*threads=*/1 + number % 3);
    for (const Frontier::Point &point : frontier.points())
      found.emplace_back(point.bytes, point.time.picoseconds());
    ASSERT_EQ(found, expected) << "chain " << number;
    EXPECT_FALSE(frontier.choose(expected.front().first - 1));
    for (auto [bytes, time] : expected) {
      auto choice = frontier.choose(bytes);
      ASSERT_TRUE(choice);
      EXPECT_LE(peakOf(chain, *choice), bytes) << "chain " << number;
      EXPECT_EQ(timeOf(chain, *choice).picoseconds(), time);
    }
  }
}

TEST(Frontier, BreaksTiesByLongRuns) {
  // In 8 bytes two of four blocks can keep theirs, as 0110, 0101 or 1100 too.
  BlockChain chain;
  chain.classes = {{{4, 4, Duration()}, {0, 4, Duration::ofPicoseconds(1)}}};
  chain.classOf = {0, 0, 0, 0};
  chain.beside = {0, 0, 0, 0};
  EXPECT_EQ(Frontier(chain).choose(8), (std::vector<uint32_t>{1, 1, 0, 0}));
  EXPECT_EQ(Frontier(chain).choose(16), (std::vector<uint32_t>{0, 0, 0, 0}));
}

TEST(Frontier, KeepsOptionsThatNothingBeats) {
  auto option = [](int64_t keep, int64_t work, int64_t time) {
    return BlockOption{keep, work, Duration::ofPicoseconds(time)};
  };
  EXPECT_EQ(undominated({option(3, 1, 1), option(1, 1, 3), option(3, 1, 2),
                         option(1, 1, 3), option(2, 0, 2)}),
            (std::vector<uint32_t>{0, 1, 4}));
}

/// Llama 3 8B on 8 H100s, as HiGHS solves it (test/golden/frontier.py).
TEST(Frontier, IsWhatHiGHSFinds) {
  std::string path = FSDP_GOLDEN_DIR "/frontier.json";
  std::ifstream file(path);
  std::string text(std::istreambuf_iterator<char>(file), {});
  nlohmann::json golden = parseJson(text, path);
  BlockChain chain;
  chain.classOf = golden["class_of"].get<std::vector<uint32_t>>();
  chain.beside = golden["beside"].get<std::vector<int64_t>>();
  chain.loss = golden["loss"];
  chain.fixed = golden["fixed"];
  for (const nlohmann::json &option : golden["options"]) {
    chain.classes.resize(
        std::max<size_t>(chain.classes.size(), option[0].get<size_t>() + 1));
    chain.classes[option[0].get<size_t>()].push_back(
        {option[1], option[2], Duration::ofPicoseconds(option[3])});
  }
  int64_t fastest = 0;
  for (uint32_t kind : chain.classOf) {
    int64_t least = INT64_MAX;
    for (const BlockOption &option : chain.classes[kind])
      least = std::min(least, option.time.picoseconds());
    fastest += least;
  }
  Frontier frontier(chain);
  ASSERT_GT(golden["least"].size(), 10U);
  for (const nlohmann::json &budget : golden["least"]) {
    double bytes = budget[0].get<double>() * 1024 * 1024 * 1024;
    auto room =
        static_cast<int64_t>(bytes) - golden["persistent"].get<int64_t>();
    auto choice = frontier.choose(room);
    ASSERT_TRUE(choice) << budget;
    EXPECT_LE(peakOf(chain, *choice), room) << budget;
    auto more = timeOf(chain, *choice).picoseconds() - fastest;
    EXPECT_NEAR(static_cast<double>(more) / 1e9, budget[1].get<double>(), 0.1);
  }
}

} // namespace
