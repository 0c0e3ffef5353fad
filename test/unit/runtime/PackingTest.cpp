//===- PackingTest.cpp - Rows that are made of documents ------------------===//
#include "TokenFiles.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <random>
#include <set>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

class StartsInMemory final : public DocumentStarts {
public:
  explicit StartsInMemory(std::vector<int64_t> from) : starts(from) {}
  int64_t count() const override { return int64_t(starts.size()); }
  int64_t at(int64_t document) const override {
    return starts[size_t(document)];
  }

  std::vector<int64_t> starts;
};

/// Documents of some lengths, of the ids 0, 1, 2, …
struct Corpus {
  explicit Corpus(std::vector<int64_t> lengths) : lengths(lengths) {
    for (int64_t length : lengths) {
      starts.push_back(tokens);
      tokens += length;
    }
  }

  TokenSource source() const {
    folder.write("ids", bytesOf(counting<uint16_t>(0, tokens)));
    TokenSource from;
    from.name = "the corpus";
    TokenShard shard;
    shard.ids = std::make_unique<DataFile>(folder.path + "/ids", "the ids");
    shard.tokens = shard.labels = tokens;
    if (!mask.empty()) {
      folder.write("mask", mask);
      shard.mask =
          std::make_unique<DataFile>(folder.path + "/mask", "the mask");
      shard.labels = std::count(mask.begin(), mask.end(), '\1');
    }
    from.shards.push_back(std::move(shard));
    auto memory = std::make_unique<StartsInMemory>(starts);
    used = memory.get();
    from.documents = std::move(memory);
    return from;
  }
  TokenDataset open(int64_t sequence, Packing packing,
                    double fraction = 0) const {
    return TokenDataset(source(), fraction, sequence, 0, packing);
  }
  /// Pairs of a token and the one after it in its document, both below `end`
  /// and from `begin` on.
  std::set<std::pair<int32_t, int32_t>> pairs(int64_t begin,
                                              int64_t end) const {
    std::set<std::pair<int32_t, int32_t>> all;
    for (size_t d = 0; d < lengths.size(); ++d)
      for (int64_t i = starts[d]; i + 1 < starts[d] + lengths[d]; ++i)
        if (i >= begin && i + 1 < end)
          all.insert({int32_t(i), int32_t(i + 1)});
    return all;
  }

  TemporaryFolder folder;
  std::vector<int64_t> lengths, starts;
  int64_t tokens = 0;
  std::string mask;
  mutable StartsInMemory *used = nullptr;
};

/// A row with where its documents begin.
struct Row {
  explicit Row(int64_t rows, int64_t sequence)
      : batch(rows, sequence), starts(size_t(rows * sequence), -1) {
    batch.view.starts = starts.data();
  }
  OwnedBatch batch;
  std::vector<int32_t> starts;
};

} // namespace

static std::vector<int64_t> drawLengths(unsigned seed, int count,
                                        int64_t most) {
  std::mt19937 random(seed);
  std::vector<int64_t> lengths;
  for (int i = 0; i < count; ++i)
    lengths.push_back(int64_t(random() % uint32_t(most + 1)));
  return lengths;
}

/// The rows of an epoch, one after another, in a batch of one.
template <typename F>
static void forEpoch(const TokenDataset &data, int64_t epoch, int64_t sequence,
                     F &&act) {
  int64_t rows = data.packedShape()->rows;
  for (int64_t step = rows * epoch; step < rows * (epoch + 1); ++step) {
    Row row(1, sequence);
    data.sampleTraining(5, step, {}, row.batch.view);
    act(row);
  }
}

//===----------------------------------------------------------------------===//
// Packed rows
//===----------------------------------------------------------------------===//

TEST(PackedRows, RowsAreCounted) {
  // Places: 24, 34, 0, 28 and 9, in rows of 10.
  Corpus corpus({25, 35, 1, 29, 10});
  auto shape = [&](Packing packing) {
    return *corpus.open(10, packing).packedShape();
  };
  EXPECT_EQ(shape(Packing::Padded).rows, 7 + 4);
  EXPECT_EQ(shape(Packing::Padded).padding, 110 - 95);
  EXPECT_EQ(shape(Packing::BestFit).rows, 7 + 3);
  EXPECT_EQ(shape(Packing::BestFit).padding, 100 - 95);
  EXPECT_FALSE(corpus.open(10, Packing::Wrapped).packedShape());
}

TEST(PackedRows, AnEpochPredictsEveryTokenOfADocumentOnce) {
  for (unsigned seed = 0; seed < 30; ++seed)
    for (Packing packing : {Packing::Padded, Packing::BestFit}) {
      Corpus corpus(drawLengths(seed, 40, seed % 3 == 0 ? 50 : 12));
      int64_t sequence = 3 + seed % 14;
      TokenDataset data = corpus.open(sequence, packing);
      std::vector<std::vector<int32_t>> epochs;
      for (int64_t epoch = 0; epoch < 2; ++epoch) {
        std::set<std::pair<int32_t, int32_t>> seen;
        std::vector<int32_t> firsts;
        int64_t padding = 0;
        forEpoch(data, epoch, sequence, [&](const Row &row) {
          firsts.push_back(row.batch.tokens[0]);
          int32_t places = 0; // before the padding
          for (int32_t i = 0; i < sequence; ++i) {
            int32_t token = row.batch.tokens[i], target = row.batch.targets[i];
            if (target != kIgnoredTarget) {
              ASSERT_EQ(target, token + 1);
              ASSERT_TRUE(seen.insert({token, target}).second) << token;
              ASSERT_EQ(places, i) << "padding before a document";
              ++places;
              // A place begins its document, or goes on with it.
              ASSERT_TRUE(row.starts[i] == i ||
                          (row.starts[i] == row.starts[i - 1] &&
                           token == row.batch.tokens[i - 1] + 1));
            } else {
              ++padding;
              ASSERT_EQ(token, 0);
              ASSERT_EQ(row.starts[i], places);
            }
          }
        });
        EXPECT_EQ(seen, corpus.pairs(0, corpus.tokens)) << seed;
        EXPECT_EQ(padding, data.packedShape()->padding);
        epochs.push_back(firsts);
      }
      if (epochs[0].size() > 4) {
        EXPECT_NE(epochs[0], epochs[1]);
      }
    }
}

/// Rows by best fit decreasing, each of `rests` into the fullest row it fits.
static int64_t rowsByBestFit(std::vector<int64_t> rests, int64_t sequence) {
  std::sort(rests.rbegin(), rests.rend());
  std::vector<int64_t> rooms;
  for (int64_t rest : rests) {
    auto best = rooms.end();
    for (auto room = rooms.begin(); room != rooms.end(); ++room)
      if (*room >= rest && (best == rooms.end() || *room < *best))
        best = room;
    if (best == rooms.end())
      best = rooms.insert(best, sequence);
    *best -= rest;
  }
  return int64_t(rooms.size());
}

TEST(PackedRows, BestFitIsBestFitDecreasing) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    int64_t sequence = seed % 2 ? 200 : 7 + seed;
    Corpus corpus(drawLengths(seed, 150, sequence + 20));
    std::vector<int64_t> rests;
    int64_t rows = 0;
    for (int64_t length : corpus.lengths) {
      int64_t places = std::max<int64_t>(length - 1, 0);
      rows += places / sequence;
      if (places % sequence)
        rests.push_back(places % sequence);
    }
    EXPECT_EQ(corpus.open(sequence, Packing::BestFit).packedShape()->rows,
              rows + rowsByBestFit(rests, sequence));
  }
}

TEST(PackedRows, MasksHold) {
  Corpus corpus({6, 9, 4});
  for (int64_t i = 0; i < corpus.tokens; ++i)
    corpus.mask += i % 3 == 0 ? '\0' : '\1';
  TokenDataset data = corpus.open(8, Packing::BestFit);
  std::set<int32_t> targets;
  forEpoch(data, 0, 8, [&](const Row &row) {
    for (int32_t target : row.batch.targets)
      if (target != kIgnoredTarget)
        EXPECT_TRUE(targets.insert(target).second);
  });
  // Labels are 1, 2, 4, 5, 7, 8 and so on, but not the first ones, 0, 6, 15.
  EXPECT_EQ(targets,
            (std::set<int32_t>{1, 2, 4, 5, 7, 8, 10, 11, 13, 14, 16, 17}));
  EXPECT_EQ(data.countLabels(1, corpus.tokens), int64_t(targets.size()));
}

//===----------------------------------------------------------------------===//
// Pieces
//===----------------------------------------------------------------------===//

/// What each rank of a mesh gets is its piece of the whole.
static void expectEqualOnEveryMesh(const TokenDataset &data, bool isHeldOut) {
  for (int64_t number = 0; number < 6; ++number) {
    Row whole(6, 8);
    auto fill = [&](const DataShard &shard, const Batch &batch) {
      if (isHeldOut)
        data.fillHeldOut(number, shard, batch);
      else
        data.sampleTraining(2, number, shard, batch);
    };
    fill({}, whole.batch.view);
    for (int64_t rows : {1, 2, 3})
      for (int64_t columns : {1, 2, 4})
        for (int64_t rank = 0; rank < rows * columns; ++rank) {
          int64_t row = rank / columns, column = rank % columns;
          Row part(6 / rows, 8 / columns);
          part.starts.assign(size_t(6 / rows * 8), -1);
          part.batch.view.starts = part.starts.data();
          fill({{row, rows}, {column, columns}}, part.batch.view);
          for (int64_t i = 0; i < 6 / rows; ++i) {
            int64_t inWhole = row * (6 / rows) + i;
            for (int64_t j = 0; j < 8 / columns; ++j) {
              auto at = size_t(inWhole * 8 + column * (8 / columns) + j);
              auto here = size_t(i * (8 / columns) + j);
              ASSERT_EQ(part.batch.tokens[here], whole.batch.tokens[at]);
              ASSERT_EQ(part.batch.targets[here], whole.batch.targets[at]);
            }
            for (int64_t j = 0; j < 8; ++j)
              ASSERT_EQ(part.starts[size_t(i * 8 + j)],
                        whole.starts[size_t(inWhole * 8 + j)]);
          }
        }
  }
}

TEST(PackedRows, EveryMeshSeesTheSame) {
  Corpus corpus(drawLengths(3, 40, 30));
  for (Packing packing : {Packing::Padded, Packing::BestFit}) {
    TokenDataset data = corpus.open(8, packing, 0.4);
    expectEqualOnEveryMesh(data, false);
    expectEqualOnEveryMesh(data, true);
  }
  TokenDataset data = corpus.open(8, Packing::Wrapped, 0.4);
  data.separateDocuments();
  expectEqualOnEveryMesh(data, true);
  for (WindowOrder order :
       {WindowOrder::Random, WindowOrder::Shuffled, WindowOrder::Documents}) {
    data.setOrder(order);
    expectEqualOnEveryMesh(data, false);
  }
}

//===----------------------------------------------------------------------===//
// What is held out
//===----------------------------------------------------------------------===//

TEST(PackedRows, HeldOutDocumentsArePredictedOnce) {
  for (unsigned seed = 0; seed < 10; ++seed)
    for (Packing packing : {Packing::Padded, Packing::BestFit}) {
      Corpus corpus(drawLengths(seed, 30, 25));
      TokenDataset data = corpus.open(10, packing, 0.3);
      std::set<std::pair<int32_t, int32_t>> seen;
      Row row(2, 10);
      int64_t rounds = data.heldOutRounds({}, row.batch.view), labels = 0;
      for (int64_t round = 0; round < rounds; ++round) {
        int64_t found = data.fillHeldOut(round, {}, row.batch.view);
        EXPECT_EQ(found, data.heldOutPredictions(round, {}, row.batch.view));
        labels += found;
        for (size_t i = 0; i < 20; ++i)
          if (row.batch.targets[i] != kIgnoredTarget) {
            EXPECT_TRUE(seen.insert({row.batch.tokens[i], row.batch.targets[i]})
                            .second);
          }
      }
      EXPECT_EQ(seen, corpus.pairs(data.trainTokens(), corpus.tokens));
      EXPECT_EQ(labels, data.heldOutLabels());
      EXPECT_EQ(data.heldOutPredictions(rounds, {}, row.batch.view), 0);
    }
}

TEST(PackedRows, EmptyDocumentsAtTheEndHoldOutNothing) {
  Corpus corpus({20, 40, 30, 0, 0});
  TokenDataset data = corpus.open(8, Packing::Padded, 0.1);
  EXPECT_EQ(data.trainTokens(), 60);
  EXPECT_EQ(data.heldOutLabels(), 29);
}

TEST(PackedRows, ADocumentIsDividedWhereItsEndIsHeldOut) {
  Corpus corpus({100});
  TokenDataset data = corpus.open(16, Packing::Padded, 0.2);
  ASSERT_EQ(data.trainTokens(), 80);
  EXPECT_EQ(data.packedShape()->rows, 5);
  EXPECT_EQ(data.packedShape()->padding, 5 * 16 - 79);
  EXPECT_EQ(data.heldOutLabels(), 19);
  Row row(2, 16);
  EXPECT_EQ(data.heldOutRounds({}, row.batch.view), 1);
  EXPECT_EQ(data.fillHeldOut(0, {}, row.batch.view), 19);
  EXPECT_EQ(row.batch.tokens[0], 80);
}

//===----------------------------------------------------------------------===//
// Documents in another order
//===----------------------------------------------------------------------===//

/// The tokens of an epoch in the order that its windows are of: the last target
/// of one is the first token of the next.
static std::vector<int32_t> joinWindows(const TokenDataset &data, int64_t epoch,
                                        int64_t sequence) {
  int64_t windows = (data.trainTokens() - 1) / sequence;
  std::map<int32_t, OwnedBatch> byFirst;
  std::set<int32_t> lasts;
  for (int64_t step = windows * epoch; step < windows * (epoch + 1); ++step) {
    OwnedBatch batch(1, sequence);
    data.sampleTraining(9, step, {}, batch.view);
    lasts.insert(batch.targets.back());
    byFirst.emplace(batch.tokens[0], batch);
  }
  std::vector<int32_t> tokens;
  auto next = std::find_if(byFirst.begin(), byFirst.end(), [&](auto &window) {
    return !lasts.count(window.first);
  });
  while (next != byFirst.end()) {
    const OwnedBatch &batch = next->second;
    tokens.insert(tokens.end(), batch.tokens.begin(), batch.tokens.end());
    next = byFirst.find(batch.targets.back());
  }
  EXPECT_EQ(int64_t(tokens.size()), windows * sequence);
  return tokens;
}

TEST(DocumentOrder, AnEpochHasItsDocumentsOnce) {
  for (unsigned seed = 0; seed < 12; ++seed) {
    Corpus corpus(drawLengths(seed, seed < 6 ? 10 : 200, 14));
    TokenDataset data = corpus.open(6, Packing::Wrapped, 0.1);
    data.setOrder(WindowOrder::Documents);
    std::set<std::vector<int32_t>> orders;
    for (int64_t epoch : {0, 1, 2, 1}) {
      std::vector<int32_t> tokens = joinWindows(data, epoch, 6), begun;
      EXPECT_EQ(std::set<int32_t>(tokens.begin(), tokens.end()).size(),
                tokens.size());
      for (size_t i = 1; i < tokens.size(); ++i) {
        auto isStart = [&](int64_t token) {
          return std::count(corpus.starts.begin(), corpus.starts.end(), token) >
                 0;
        };
        ASSERT_LT(tokens[i], data.trainTokens());
        bool isNext = tokens[i] == tokens[i - 1] + 1;
        // A document is left at its end, for the beginning of another.
        bool isEnd = isStart(tokens[i - 1] + 1) ||
                     tokens[i - 1] + 1 == data.trainTokens();
        ASSERT_TRUE(isNext || (isEnd && isStart(tokens[i])));
        if (isStart(tokens[i]))
          begun.push_back(tokens[i]);
      }
      EXPECT_FALSE(std::is_sorted(begun.begin(), begun.end()));
      orders.insert(begun);
    }
    EXPECT_EQ(orders.size(), 3u) << "epoch 1 came twice";
  }
}

TEST(DocumentOrder, SeedsHaveTheirOwn) {
  Corpus corpus(drawLengths(1, 60, 9));
  TokenDataset data = corpus.open(11, Packing::Wrapped);
  data.setOrder(WindowOrder::Documents);
  std::vector<OwnedBatch> batches;
  for (uint64_t seed : {1, 2, 1}) {
    batches.emplace_back(8, 11);
    data.sampleTraining(seed, 0, {}, batches.back().view);
  }
  EXPECT_EQ(batches[0].tokens, batches[2].tokens);
  // Other documents follow one another, too.
  auto pairsOf = [](const OwnedBatch &batch) {
    std::set<std::pair<int32_t, int32_t>> pairs;
    for (size_t i = 0; i < batch.tokens.size(); ++i)
      if (batch.targets[i] != batch.tokens[i] + 1)
        pairs.insert({batch.tokens[i], batch.targets[i]});
    return pairs;
  };
  std::set<std::pair<int32_t, int32_t>> both, first = pairsOf(batches[0]),
                                              second = pairsOf(batches[1]);
  std::set_intersection(first.begin(), first.end(), second.begin(),
                        second.end(), std::inserter(both, both.begin()));
  EXPECT_LT(both.size() * 2, first.size());
}

TEST(DocumentOrder, MasksHold) {
  Corpus corpus(drawLengths(2, 60, 9));
  for (int64_t i = 0; i < corpus.tokens; ++i)
    corpus.mask += i % 3 == 0 ? '\0' : '\1';
  TokenDataset data = corpus.open(11, Packing::Wrapped);
  data.setOrder(WindowOrder::Documents);
  OwnedBatch batch(4, 11);
  data.sampleTraining(1, 0, {}, batch.view);
  int64_t labels = 0;
  for (size_t i = 0; i < 44; ++i) {
    if (batch.targets[i] != kIgnoredTarget) {
      ++labels;
      EXPECT_NE(batch.targets[i] % 3, 0);
    }
    if (i % 11 != 10) {
      EXPECT_EQ(batch.targets[i] == kIgnoredTarget,
                batch.tokens[i + 1] % 3 == 0);
    }
  }
  EXPECT_GT(labels, 20);
}

TEST(DocumentOrder, TokensBeforeTheFirstStartAreOfTheFirst) {
  Corpus corpus({20, 20, 20});
  corpus.starts = {7, 20, 40};
  TokenDataset data = corpus.open(59, Packing::Wrapped);
  data.setOrder(WindowOrder::Documents);
  std::vector<int32_t> row = firstRows(data, 1, 59);
  EXPECT_EQ(std::set<int32_t>(row.begin(), row.end()).size(), 59u);
}

TEST(DocumentOrder, FirstTokensAreNoLabelsWhereDocumentsAreApart) {
  Corpus corpus(drawLengths(4, 60, 9));
  TokenDataset data = corpus.open(11, Packing::Wrapped);
  data.separateDocuments();
  data.setOrder(WindowOrder::Documents);
  int64_t firsts = 0;
  for (int64_t step = 0; step < 40; ++step) {
    Row row(1, 11);
    data.sampleTraining(3, step, {}, row.batch.view);
    for (int32_t i = 0; i < 11; ++i) {
      bool begins = row.starts[i] == i;
      if (i > 0 && begins) {
        ++firsts;
        EXPECT_EQ(row.batch.targets[i - 1], kIgnoredTarget);
      } else if (i > 0) {
        EXPECT_EQ(row.starts[i], row.starts[i - 1]);
        EXPECT_EQ(row.batch.targets[i - 1], row.batch.tokens[i]);
        EXPECT_EQ(row.batch.tokens[i], row.batch.tokens[i - 1] + 1);
      }
    }
  }
  EXPECT_GT(firsts, 40);
}

//===----------------------------------------------------------------------===//
// Bad input
//===----------------------------------------------------------------------===//

static std::string failureOf(const std::function<void()> &act) {
  try {
    act();
  } catch (const Error &error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(PackedRows, RefusesWhatIsNoDocuments) {
  Corpus corpus({5, 7, 8});
  corpus.starts = {0, 12, 5};
  EXPECT_EQ(
      failureOf([&] { corpus.open(4, Packing::Padded); }),
      "the corpus was changed: document 1, counted from 0, begins at token "
      "12, and the next one at token 5; write it anew with "
      "tools/fsdp-tokenize");
  TokenDataset wrapped = corpus.open(4, Packing::Wrapped);
  EXPECT_NE(failureOf([&] {
              wrapped.checkDocuments();
            }).find("document 1, counted from 0, begins"),
            std::string::npos);
  TokenSource bare = corpus.source();
  bare.documents = nullptr;
  EXPECT_NE(failureOf([&] {
              TokenDataset(std::move(bare), 0, 4, 0, Packing::BestFit);
            }).find("the corpus does not say where they begin"),
            std::string::npos);
  EXPECT_NE(failureOf([&] {
              Corpus({1, 1, 1, 1}).open(2, Packing::Padded);
            }).find("has no label among the 4 tokens to train on"),
            std::string::npos);
  Corpus firsts({4, 4});
  firsts.mask = std::string("\1\0\0\0\1\0\0\0", 8);
  EXPECT_NE(failureOf([&] {
              firsts.open(2, Packing::Wrapped).separateDocuments();
            }).find("and the mask marks no other"),
            std::string::npos);
  // Rows need not be full.
  EXPECT_EQ(Corpus({3, 2}).open(64, Packing::Padded).packedShape()->rows, 2);
}

TEST(PackedRows, RefusesStartsThatChange) {
  Corpus corpus({5, 7, 8, 30});
  // Documents without a token, and one that is longer than what is left.
  for (const std::vector<int64_t> &later :
       {std::vector<int64_t>{0, 0, 0, 0}, {0, 21, 42, 47}})
    for (Packing packing : {Packing::Padded, Packing::BestFit}) {
      TokenDataset data = corpus.open(24, packing);
      corpus.used->starts = later;
      // A row of its own has room.
      bool hasRoom = later[3] == 47 && packing == Packing::Padded;
      EXPECT_EQ(failureOf([&] {
                  forEpoch(data, 0, 24, [](const Row &) {});
                }).find("was changed while it was in use") == std::string::npos,
                hasRoom);
    }
}

TEST(DocumentOrder, StopsWhereStartsChange) {
  // Where each 32nd document begins is known; the others are all empty now, but
  // for the last.
  Corpus corpus(std::vector<int64_t>(100, 10));
  int64_t refused = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    TokenDataset data = corpus.open(4, Packing::Wrapped);
    data.setOrder(WindowOrder::Documents);
    OwnedBatch batch(8, 4);
    data.sampleTraining(seed, 0, {}, batch.view);
    corpus.used->starts.assign(100, 0);
    std::string failure = failureOf([&] {
      for (int64_t step = 0; step < 20; ++step)
        data.sampleTraining(seed, step, {}, batch.view);
    });
    refused +=
        failure.find("was changed while it was in use") != std::string::npos;
  }
  EXPECT_GT(refused, 0);
}
