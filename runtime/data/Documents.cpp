//===- Documents.cpp - Documents of a stretch of tokens -------------------===//
#include "Documents.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

void Documents::failAsChanged() const {
  throw Error(source + " was changed while it was in use: its documents begin "
                       "elsewhere; leave it as it is until the run is over");
}

int64_t DocumentStarts::firstFrom(int64_t token) const {
  int64_t low = 0, high = count();
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (at(middle) < token)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

Documents::Documents(const std::string &source, const DocumentStarts &starts,
                     int64_t begin, int64_t end)
    : source(source), starts(starts), begin(begin), stop(end),
      firstOne(std::max<int64_t>(starts.firstFrom(begin + 1) - 1, 0)),
      last(std::max(starts.firstFrom(end), firstOne + 1)) {}

TokenSpan Documents::between(int64_t document, int64_t start,
                             int64_t next) const {
  if (next < start)
    throw Error(source + " was changed: document " +
                std::to_string(firstOne + document) +
                ", counted from 0, begins at token " + std::to_string(start) +
                ", and the next one at token " + std::to_string(next) +
                "; write it anew with tools/fsdp-tokenize");
  // Every token is of one.
  int64_t first = document == 0 ? begin : std::clamp(start, begin, stop);
  return {first, std::clamp(next, first, stop) - first};
}

TokenSpan Documents::at(int64_t document) const {
  int64_t both[2] = {0, stop};
  int64_t here = firstOne + document;
  starts.read(here, here + 1 < starts.count() ? 2 : 1, both);
  return between(document, both[0], both[1]);
}

void Documents::forEach(
    const std::function<void(int64_t document, TokenSpan)> &act) const {
  constexpr int64_t kBlock = 4096;
  std::vector<int64_t> block;
  for (int64_t first = firstOne; first < last; first += kBlock) {
    int64_t here = std::min(kBlock, last - first);
    int64_t beside = std::min(here + 1, starts.count() - first);
    block.assign(static_cast<size_t>(here + 1), stop);
    starts.read(first, beside, block.data());
    for (int64_t i = 0; i < here; ++i)
      act(first + i - firstOne,
          between(first + i - firstOne, block[static_cast<size_t>(i)],
                  block[static_cast<size_t>(i + 1)]));
  }
}
