//===- ShuffledDocuments.cpp - Documents in another order -----------------===//
#include "ShuffledDocuments.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <limits>

using namespace fsdp;
using namespace fsdp::rt;

ShuffledDocuments::ShuffledDocuments(Documents from, uint64_t key)
    : documents(std::move(from)), order(documents.count(), key) {
  std::vector<uint32_t> lengths;
  lengths.reserve(static_cast<size_t>(documents.count()));
  documents.forEach([&](int64_t document, TokenSpan tokens) {
    if (tokens.count > std::numeric_limits<uint32_t>::max())
      throw Error("document " + std::to_string(document) + " has " +
                  std::to_string(tokens.count) +
                  " tokens, and training.data_order = documents takes "
                  "4,294,967,295 at most; set training.data_order = shuffle");
    lengths.push_back(static_cast<uint32_t>(tokens.count));
  });
  int64_t begin = 0;
  for (int64_t i = 0; i < documents.count(); ++i) {
    if (i % kStride == 0)
      begins.push_back(begin);
    begin += lengths[static_cast<size_t>(order(i))];
  }
}

std::vector<TokenSpan> ShuffledDocuments::find(int64_t first,
                                               int64_t count) const {
  // The last known document that begins at `first` or before it.
  auto known = std::prev(std::upper_bound(begins.begin(), begins.end(), first));
  int64_t place = kStride * (known - begins.begin());
  std::vector<TokenSpan> spans;
  for (int64_t begin = *known; begin < first + count; ++place) {
    if (place == documents.count())
      documents.failAsChanged();
    TokenSpan tokens = documents.at(order(place));
    int64_t from = std::max(first, begin);
    int64_t to = std::min(first + count, begin + tokens.count);
    if (from < to)
      spans.push_back({tokens.first + from - begin, to - from});
    begin += tokens.count;
  }
  return spans;
}
