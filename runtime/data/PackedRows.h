//===- PackedRows.h - Rows of whole documents -------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_DATA_PACKEDROWS_H
#define FSDP_RUNTIME_DATA_PACKEDROWS_H

#include "Documents.h"
#include <vector>

namespace fsdp::rt {

/// Rows that are made of whole documents. A document of n + 1 tokens has n
/// places: at each a token is read and the one after it is predicted. A
/// document of more places than a row has fills rows, and its rest is packed
/// as a shorter document is. Places of a row without a document are padding.
///
/// Packing::BestFit packs by best fit decreasing (Johnson, "Near-optimal bin
/// packing algorithms", 1973; for training: Ding et al., "Fewer truncations
/// improve language modeling", 2024). Takes 8 bytes of memory per document, and
/// 16 while it packs.
class PackedRows {
public:
  /// Throws fsdp::Error if starts are in no order.
  PackedRows(Documents documents, int64_t sequence, Packing packing);

  int64_t count() const { return fullRows + packedRows(); }
  /// Places without a document, of all rows.
  int64_t padding() const { return count() * sequence - places; }
  /// The tokens that are read in a row, in order; at most `sequence`.
  std::vector<TokenSpan> row(int64_t number) const;

private:
  /// A document that fills rows, and the first of these.
  struct LongDocument {
    int64_t first, row;
  };

  int64_t packedRows() const;
  TokenSpan restOf(int64_t document) const;
  void packBestFit(const std::vector<uint32_t> &places);

  Documents documents;
  int64_t sequence;
  int64_t places = 0, fullRows = 0;
  std::vector<LongDocument> longOnes;
  /// Documents with a rest, row by row.
  std::vector<uint32_t> rests;
  /// Where each row begins in `rests`, and their number; empty: a row has one.
  std::vector<uint32_t> firstOfRow;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_PACKEDROWS_H
