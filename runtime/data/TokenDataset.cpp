//===- TokenDataset.cpp - Token ids with documents ------------------------===//
#include "fsdp/Data/TokenDataset.h"
#include "PackedRows.h"
#include "ShuffledDocuments.h"
#include "fsdp/Data/Philox.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

struct TokenDataset::EpochOrder {
  uint64_t seed;
  int64_t epoch;
  ShuffledDocuments documents;
};

/// A document is trained on or held out as a whole: the first start at or after
/// the share of the tokens, if one is, or else the last one before it. Where
/// that leaves less than half of the tokens to train on that were to be, the
/// end of this document is held out.
int64_t TokenDataset::firstHeldOut(int64_t tokens, double fraction) const {
  int64_t share =
      tokens - std::llround(fraction * static_cast<double>(tokens));
  if (!source.documents || share == tokens)
    return share;
  // Empty ones may be at the end.
  int64_t last = std::max<int64_t>(source.documents->firstFrom(tokens) - 1, 0);
  int64_t document = std::min(source.documents->firstFrom(share), last);
  int64_t start =
      std::clamp<int64_t>(source.documents->at(document), 0, tokens);
  return start < share / 2 ? share : start;
}

TokenDataset::TokenDataset(TokenSource from, double fraction, int64_t sequence,
                           int64_t vocabulary, Packing packing)
    : source(std::move(from)), vocabulary(vocabulary) {
  int64_t tokens = 0;
  for (const TokenShard &shard : source.shards) {
    ends.push_back(tokens += shard.tokens);
    isMasked |= shard.mask != nullptr;
  }
  if (vocabulary > 0 && source.largestId.value_or(0) >= vocabulary)
    throw Error(source.name + " is not of the model's tokenizer: it has id " +
                std::to_string(*source.largestId) +
                ", and the model's vocabulary is 0 to " +
                std::to_string(vocabulary - 1) +
                "; tokenize with the model's tokenizer");
  splitAt(tokens, firstHeldOut(tokens, fraction));
  if (packing == Packing::Wrapped)
    checkRoom(sequence);
  else
    pack(sequence, packing);
  if (isMasked && !areSeparate && countLabels(1, trainTokens()) == 0)
    throw Error(source.name + " marks none of the " +
                std::to_string(trainTokens()) +
                " tokens to train on as a label");
}

void TokenDataset::separateDocuments() {
  areSeparate = true;
  Documents train(source.name, *source.documents, 0, trainTokens());
  for (int64_t document = 0; document < train.count(); ++document) {
    TokenSpan tokens = train.at(document);
    if (tokens.count > 1 && countLabels(tokens.first + 1, tokens.end()) > 0)
      return;
  }
  throw Error(source.name + " has no label among the " +
              std::to_string(trainTokens()) +
              " tokens to train on: the first token of a document is none" +
              (isMasked ? ", and the mask marks no other" : "") +
              "; take more text, or lower validation.fraction");
}

TokenDataset::TokenDataset(TokenDataset &&) noexcept = default;
TokenDataset::~TokenDataset() = default;

/// A window and the token after it are to be there.
void TokenDataset::checkRoom(int64_t sequence) const {
  int64_t train = trainTokens();
  if (train < sequence + 1)
    throw Error(source.name + " has too few tokens: " +
                std::to_string(train + heldOutTokens()) + ", " +
                std::to_string(train) + " of them for training" +
                (source.documents && !splitsDocument()
                     ? " up to the last document that is held out whole"
                     : "") +
                ", and a window needs " + std::to_string(sequence + 1) +
                "; take more text, or lower validation.fraction");
}

void TokenDataset::pack(int64_t sequence, Packing packing) {
  if (!source.documents)
    throw Error("training.packing makes rows of whole documents, and " +
                source.name +
                " does not say where they begin; tokenize the text with "
                "tools/fsdp-tokenize, or leave it out");
  separateDocuments();
  auto rowsOf = [&](int64_t begin, int64_t end) {
    return std::make_unique<PackedRows>(
        Documents(source.name, *source.documents, begin, end), sequence,
        packing);
  };
  trainRows = rowsOf(0, trainTokens());
  heldOutPacked = rowsOf(trainTokens(), trainTokens() + heldOutTokens());
}

void TokenDataset::checkDocuments() const {
  if (source.documents)
    Documents(source.name, *source.documents, 0,
              trainTokens() + heldOutTokens())
        .forEach([](int64_t, TokenSpan) {});
}

std::optional<TokenDataset::PackedShape> TokenDataset::packedShape() const {
  if (!trainRows)
    return std::nullopt;
  return PackedShape{trainRows->count(), trainRows->padding()};
}

bool TokenDataset::splitsDocument() const {
  int64_t next =
      documents() > 0 ? source.documents->firstFrom(trainTokens()) : 0;
  return heldOutTokens() > 0 && documents() > 0 &&
         (next == documents() || source.documents->at(next) != trainTokens());
}

int64_t TokenDataset::documents() const {
  return source.documents ? source.documents->count() : 0;
}

DataIdentity TokenDataset::identity() const {
  DataIdentity identity;
  identity.checksum = source.digest;
  int64_t begin = 0;
  for (size_t i = 0; i < source.shards.size(); ++i) {
    const TokenShard &shard = source.shards[i];
    identity.bytes += shard.tokens * shard.width;
    identity.trainBytes +=
        std::clamp<int64_t>(trainTokens() - begin, 0, shard.tokens) *
        shard.width;
    begin = ends[i];
  }
  return identity;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

template <typename F>
void TokenDataset::forShards(int64_t begin, int64_t end, F &&act) const {
  auto next = static_cast<size_t>(
      std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
  for (; begin < end; ++next) {
    const TokenShard &shard = source.shards[next];
    int64_t inShard = begin - (ends[next] - shard.tokens);
    int64_t count = std::min(end, ends[next]) - begin;
    act(shard, inShard, count);
    begin += count;
  }
}

template <typename T>
static void widen(const std::string &bytes, int64_t count, int32_t *ids) {
  for (int64_t i = 0; i < count; ++i) {
    T id;
    std::memcpy(&id, bytes.data() + i * static_cast<int64_t>(sizeof(T)),
                sizeof id);
    ids[i] = static_cast<int32_t>(id);
  }
}

void TokenDataset::readIds(int64_t first, int64_t count, int32_t *ids) const {
  int32_t *next = ids;
  forShards(first, first + count,
            [&](const TokenShard &shard, int64_t at, int64_t here) {
              std::string bytes = shard.ids->read(
                  shard.start + at * shard.width, here * shard.width);
              if (shard.width == 2)
                widen<uint16_t>(bytes, here, next);
              else
                widen<uint32_t>(bytes, here, next);
              next += here;
            });
  // An id of 2^31 or more is negative here.
  auto isForeign = [&](int32_t id) {
    return id < 0 || (vocabulary > 0 && id >= vocabulary);
  };
  int32_t *foreign = std::find_if(ids, ids + count, isForeign);
  if (foreign != ids + count)
    throw Error(source.name + " has id " +
                std::to_string(static_cast<uint32_t>(*foreign)) +
                " at token " + std::to_string(first + (foreign - ids)) +
                ", which is not in the model's vocabulary" +
                (vocabulary > 0 ? ", 0 to " + std::to_string(vocabulary - 1)
                                : "") +
                "; tokenize with the model's tokenizer");
}

void TokenDataset::maskTargets(int64_t first, int64_t count,
                               int32_t *targets) const {
  forShards(first, first + count,
            [&](const TokenShard &shard, int64_t at, int64_t here) {
              if (shard.mask) {
                std::string isLabel = shard.mask->read(at, here);
                for (int64_t i = 0; i < here; ++i)
                  if (!isLabel[static_cast<size_t>(i)])
                    targets[i] = kIgnoredTarget;
              }
              targets += here;
            });
}

void TokenDataset::readWindow(int64_t first, int64_t count, int32_t *tokens,
                              int32_t *targets) const {
  std::vector<int32_t> ids(static_cast<size_t>(count + 1));
  readIds(first, count + 1, ids.data());
  std::copy_n(ids.data(), count, tokens);
  std::copy_n(ids.data() + 1, count, targets);
  if (isMasked)
    maskTargets(first + 1, count, targets);
  if (!areSeparate)
    return;
  for (int64_t document = source.documents->firstFrom(first + 1), at;
       document < documents() &&
       (at = source.documents->at(document)) <= first + count;
       ++document)
    targets[std::max(at, first + 1) - first - 1] = kIgnoredTarget;
}

void TokenDataset::readStarts(int64_t first, int64_t count,
                              int32_t *starts) const {
  std::fill_n(starts, count, 0);
  if (!source.documents)
    return;
  for (int64_t document = source.documents->firstFrom(first + 1), at;
       document < documents() &&
       (at = source.documents->at(document)) < first + count;
       ++document) {
    int64_t start = std::max(at - first, int64_t{0});
    starts[start] = static_cast<int32_t>(start);
  }
  for (int64_t i = 1; i < count; ++i)
    starts[i] = std::max(starts[i], starts[i - 1]);
}

//===----------------------------------------------------------------------===//
// Rows of documents
//===----------------------------------------------------------------------===//

void TokenDataset::readTrainingRow(const TrainingRow &row,
                                   const RowPiece &piece) const {
  if (trainRows)
    readPacked(*trainRows,
               shuffledRow(row.seed, row.number, trainRows->count()).row,
               piece);
  else if (row.order == WindowOrder::Documents)
    readJoined(row, piece);
  else
    TokenStream::readTrainingRow(row, piece);
}

/// Calls `act` with what of the places [first, first + count) of a row is in
/// the piece: the first of these, and how many.
template <typename F>
static void forOverlap(int64_t first, int64_t count, int64_t begin, int64_t end,
                       F &&act) {
  int64_t from = std::max(first, begin), to = std::min(first + count, end);
  if (from < to)
    act(from, to - from);
}

void TokenDataset::readPacked(const PackedRows &rows, int64_t number,
                              const RowPiece &piece) const {
  int64_t place = 0;
  for (TokenSpan span : rows.row(number)) {
    forOverlap(place, span.count, piece.begin, piece.begin + piece.count,
               [&](int64_t from, int64_t count) {
                 int64_t to = from - piece.begin;
                 readWindow(span.first + from - place, count, piece.tokens + to,
                            piece.targets + to);
               });
    if (piece.starts)
      std::fill_n(piece.starts + place, span.count,
                  static_cast<int32_t>(place));
    place += span.count;
  }
  padRow(piece, place);
}

/// A window of the documents in the order of its epoch.
void TokenDataset::readJoined(const TrainingRow &row,
                              const RowPiece &piece) const {
  auto [first, epoch] = shuffledWindow(row, piece.sequence);
  if (!epochOrder || epochOrder->seed != row.seed || epochOrder->epoch != epoch)
    epochOrder.reset(new EpochOrder{
        row.seed,
        epoch,
        {Documents(source.name, *source.documents, 0, trainTokens()),
         randomWord(row.seed, "order of documents", epoch)}});
  // Those of the piece and the one after it, which is predicted.
  std::vector<int32_t> ids(static_cast<size_t>(piece.count + 1)), labels(ids);
  int64_t place = 0;
  for (TokenSpan span : epochOrder->documents.find(first, piece.sequence + 1)) {
    forOverlap(place, span.count, piece.begin, piece.begin + piece.count + 1,
               [&](int64_t from, int64_t count) {
                 int64_t token = span.first + from - place;
                 int64_t to = from - piece.begin;
                 readIds(token, count, ids.data() + to);
                 std::copy_n(ids.data() + to, count, labels.data() + to);
                 maskTargets(token, count, labels.data() + to);
                 if (areSeparate && from == place)
                   labels[static_cast<size_t>(to)] = kIgnoredTarget;
               });
    if (piece.starts)
      std::fill(piece.starts + place,
                piece.starts + std::min(place + span.count, piece.sequence),
                static_cast<int32_t>(place));
    place += span.count;
  }
  std::copy_n(ids.data(), piece.count, piece.tokens);
  std::copy_n(labels.data() + 1, piece.count, piece.targets);
}

int64_t TokenDataset::heldOutRows(int64_t sequence) const {
  return heldOutPacked ? heldOutPacked->count()
                       : TokenStream::heldOutRows(sequence);
}

int64_t TokenDataset::labelsOfHeldOutRows(int64_t first, int64_t end,
                                          int64_t sequence) const {
  if (!heldOutPacked)
    return TokenStream::labelsOfHeldOutRows(first, end, sequence);
  int64_t labels = 0;
  for (int64_t row = first; row < end; ++row)
    for (TokenSpan span : heldOutPacked->row(row))
      labels += countLabels(span.first + 1, span.end() + 1);
  return labels;
}

void TokenDataset::readHeldOutRow(int64_t number, const RowPiece &piece) const {
  if (heldOutPacked)
    readPacked(*heldOutPacked, number, piece);
  else
    TokenStream::readHeldOutRow(number, piece);
}

//===----------------------------------------------------------------------===//
// Labels
//===----------------------------------------------------------------------===//

std::vector<int32_t> TokenDataset::firstIds(int64_t most) const {
  bool areHeldOut = heldOutTokens() > 0;
  std::vector<int32_t> ids(static_cast<size_t>(
      std::min(most, areHeldOut ? heldOutTokens() : trainTokens())));
  readIds(areHeldOut ? trainTokens() : 0, static_cast<int64_t>(ids.size()),
          ids.data());
  return ids;
}

/// Of the tokens [begin, end), those that begin a document and would be labels.
int64_t TokenDataset::labelsThatBegin(int64_t begin, int64_t end) const {
  constexpr int64_t kBlock = 4096;
  std::vector<int64_t> starts(kBlock);
  int64_t labels = 0, before = -1;
  int64_t next = source.documents->firstFrom(begin);
  int64_t last = source.documents->firstFrom(end);
  while (next < last) {
    int64_t count = std::min(kBlock, last - next);
    source.documents->read(next, count, starts.data());
    next += count;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = starts[static_cast<size_t>(i)];
      // An empty document begins where the next one does.
      if (at > before && at >= begin && at < end && isLabel(at))
        ++labels;
      before = std::max(before, at);
    }
  }
  return labels;
}

bool TokenDataset::isLabel(int64_t token) const {
  bool isOne = true;
  if (isMasked)
    forShards(token, token + 1,
              [&](const TokenShard &shard, int64_t at, int64_t) {
                isOne = !shard.mask || shard.mask->read(at, 1)[0] != 0;
              });
  return isOne;
}

int64_t TokenDataset::countLabels(int64_t begin, int64_t end) const {
  int64_t labels = areSeparate ? -labelsThatBegin(begin, end) : 0;
  forShards(begin, end,
            [&](const TokenShard &shard, int64_t at, int64_t here) {
              if (!shard.mask || here == shard.tokens) {
                labels += shard.mask ? shard.labels : here;
                return;
              }
              labels += here;
              shard.mask->readPieces(
                  at, here, [&](std::string_view piece, int64_t) {
                    labels -= std::count(piece.begin(), piece.end(), '\0');
                  });
            });
  return labels;
}
