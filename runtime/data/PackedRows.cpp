//===- PackedRows.cpp - Rows of whole documents ---------------------------===//
#include "PackedRows.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <limits>
#include <numeric>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Best fit
//===----------------------------------------------------------------------===//

namespace {

/// Rows that have room left, found by how much.
class OpenRows {
public:
  explicit OpenRows(int64_t sequence)
      : heads(static_cast<size_t>(sequence + 1), kNone),
        words(static_cast<size_t>(sequence / 64 + 1), 0) {}

  /// Takes out a row with the least room of at least `wanted`; its number and
  /// room. Without one it is a new, empty row.
  std::pair<uint32_t, int64_t> take(int64_t wanted);
  void put(uint32_t row, int64_t room);
  uint32_t count() const { return static_cast<uint32_t>(next.size()); }

private:
  static constexpr uint32_t kNone = std::numeric_limits<uint32_t>::max();

  int64_t leastRoom(int64_t wanted) const;

  std::vector<uint32_t> heads; // a row of each room
  std::vector<uint32_t> next;  // after each row, one of the same room
  std::vector<uint64_t> words; // a bit for each room that rows have
};

} // namespace

/// The least room of at least `wanted` that a row has; -1: none has.
int64_t OpenRows::leastRoom(int64_t wanted) const {
  auto word = static_cast<size_t>(wanted / 64);
  uint64_t bits = words[word] >> wanted % 64 << wanted % 64;
  while (bits == 0 && ++word < words.size())
    bits = words[word];
  return bits == 0 ? -1
                   : static_cast<int64_t>(word) * 64 + __builtin_ctzll(bits);
}

std::pair<uint32_t, int64_t> OpenRows::take(int64_t wanted) {
  int64_t room = leastRoom(wanted);
  if (room < 0) {
    next.push_back(kNone);
    return {count() - 1, static_cast<int64_t>(heads.size()) - 1};
  }
  uint32_t &head = heads[static_cast<size_t>(room)];
  uint32_t row = head;
  head = next[row];
  if (head == kNone)
    words[static_cast<size_t>(room / 64)] &= ~(uint64_t{1} << room % 64);
  return {row, room};
}

void OpenRows::put(uint32_t row, int64_t room) {
  if (room == 0)
    return;
  uint32_t &head = heads[static_cast<size_t>(room)];
  next[row] = head;
  head = row;
  words[static_cast<size_t>(room / 64)] |= uint64_t{1} << room % 64;
}

/// The numbers of `keys` in the order of these, below `bound`; equal ones stay
/// in order. Sets `firsts` to where each key's begin, and their number.
static std::vector<uint32_t> sortedByKey(const std::vector<uint32_t> &keys,
                                         size_t bound,
                                         std::vector<uint32_t> &firsts) {
  firsts.assign(bound + 1, 0);
  for (uint32_t key : keys)
    ++firsts[key + 1];
  std::partial_sum(firsts.begin(), firsts.end(), firsts.begin());
  std::vector<uint32_t> sorted(keys.size()),
      next(firsts.begin(), firsts.end() - 1);
  for (size_t i = 0; i < keys.size(); ++i)
    sorted[next[keys[i]]++] = static_cast<uint32_t>(i);
  return sorted;
}

/// `places` are those of each of `rests`.
void PackedRows::packBestFit(const std::vector<uint32_t> &places) {
  std::vector<uint32_t> rowOf(rests.size());
  OpenRows open(sequence);
  {
    std::vector<uint32_t> ignored;
    std::vector<uint32_t> byPlaces =
        sortedByKey(places, static_cast<size_t>(sequence), ignored);
    std::reverse(byPlaces.begin(), byPlaces.end());
    for (uint32_t i : byPlaces) {
      auto [row, room] = open.take(places[i]);
      rowOf[i] = row;
      open.put(row, room - places[i]);
    }
  }
  std::vector<uint32_t> byRow = sortedByKey(rowOf, open.count(), firstOfRow);
  for (uint32_t &i : byRow)
    i = rests[i];
  rests = std::move(byRow);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

PackedRows::PackedRows(Documents from, int64_t sequence, Packing packing)
    : documents(std::move(from)), sequence(sequence) {
  if (documents.count() > std::numeric_limits<uint32_t>::max())
    throw Error("training.packing takes 4,294,967,295 documents at most, not " +
                std::to_string(documents.count()));
  std::vector<uint32_t> restPlaces;
  documents.forEach([&](int64_t document, TokenSpan tokens) {
    int64_t here = std::max<int64_t>(tokens.count - 1, 0);
    places += here;
    if (here >= sequence) {
      longOnes.push_back({tokens.first, fullRows});
      fullRows += here / sequence;
    }
    if (int64_t rest = here % sequence; rest > 0) {
      rests.push_back(static_cast<uint32_t>(document));
      if (packing == Packing::BestFit)
        restPlaces.push_back(static_cast<uint32_t>(rest));
    }
  });
  if (packing == Packing::BestFit)
    packBestFit(restPlaces);
}

int64_t PackedRows::packedRows() const {
  return static_cast<int64_t>(firstOfRow.empty() ? rests.size()
                                                 : firstOfRow.size() - 1);
}

/// What of a document is not in rows of its own.
TokenSpan PackedRows::restOf(int64_t document) const {
  TokenSpan tokens = documents.at(document);
  int64_t inRows = (tokens.count - 1) / sequence * sequence;
  return {tokens.first + inRows, tokens.count - 1 - inRows};
}

std::vector<TokenSpan> PackedRows::row(int64_t number) const {
  if (number < fullRows) {
    auto after = std::upper_bound(
        longOnes.begin(), longOnes.end(), number,
        [](int64_t row, const LongDocument &one) { return row < one.row; });
    const LongDocument &one = *std::prev(after);
    return {{one.first + (number - one.row) * sequence, sequence}};
  }
  auto packed = static_cast<size_t>(number - fullRows);
  size_t first = firstOfRow.empty() ? packed : firstOfRow[packed];
  size_t end = firstOfRow.empty() ? packed + 1 : firstOfRow[packed + 1];
  std::vector<TokenSpan> spans;
  int64_t room = sequence;
  for (size_t i = first; i < end; ++i) {
    spans.push_back(restOf(rests[i]));
    room -= spans.back().count;
    if (spans.back().count < 1 || room < 0)
      documents.failAsChanged();
  }
  return spans;
}
