//===- MixedDataset.h - Rows of several sources -----------------*- C++ -*-===//
//
// The rows of a training come from several sources by weights. Which source a
// row comes from depends on its number alone, so that it is the same on every
// mesh and after a resumption.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DATA_MIXEDDATASET_H
#define FSDP_DATA_MIXEDDATASET_H

#include "fsdp/Data/TokenDataset.h"
#include <string>
#include <vector>

namespace fsdp::rt {

/// A source and its weight, a decimal number as it was written.
struct MixedSource {
  std::string path, weight;
};

/// Takes "PATH=WEIGHT" apart at its last '='. Throws fsdp::Error unless WEIGHT
/// is a decimal number above 0.
MixedSource parseMixedSource(const std::string &text);

/// Deals rows to sources: of the first n rows, for every n, a source gets its
/// share of n, rounded up or down. The cycle in which shares come out exactly
/// repeats. Each row goes to the source that must have one soonest, of those
/// that are not ahead of their share (Steiner and Yeomans, "Level schedules for
/// mixed-model, just-in-time processes", 1993).
class RowDeal {
public:
  /// Rows of the longest cycle.
  static constexpr int64_t kMostRows = 100000;

  /// Decimal numbers as MixedSource has them. Throws fsdp::Error if their cycle
  /// is too long.
  explicit RowDeal(const std::vector<std::string> &weights);

  struct Place {
    size_t source;
    int64_t number; // of the rows before, those of this source
  };
  Place at(int64_t row) const;

  /// Rows of a cycle, and those of a source among them.
  int64_t cycle() const { return static_cast<int64_t>(places.size()); }
  int64_t share(size_t source) const { return shares[source]; }

private:
  std::vector<int64_t> shares;
  std::vector<Place> places;
};

/// Several sources of token ids. Each has its own rows, epochs and held-out
/// tokens.
class MixedDataset final : public Dataset {
public:
  struct Part {
    std::unique_ptr<TokenDataset> data;
    std::string weight;
  };

  /// Throws fsdp::Error if sources are known to be of different tokenizers.
  explicit MixedDataset(std::vector<Part> parts);

  size_t sources() const { return parts.size(); }
  const TokenDataset &source(size_t index) const { return *parts[index].data; }
  const RowDeal &rows() const { return deal; }

  DataIdentity identity() const override;
  bool hasDocuments() const override;
  std::vector<const TokenStream *> streams() const override;
  int64_t trainTokens() const override;
  int64_t heldOutTokens() const override;

protected:
  RowSource sourceOfRow(int64_t row) const override;

private:
  std::vector<Part> parts;
  RowDeal deal;
};

} // namespace fsdp::rt

#endif // FSDP_DATA_MIXEDDATASET_H
