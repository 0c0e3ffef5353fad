//===- ShuffledDocuments.h - Documents in another order ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_DATA_SHUFFLEDDOCUMENTS_H
#define FSDP_RUNTIME_DATA_SHUFFLEDDOCUMENTS_H

#include "Documents.h"
#include "Permutation.h"
#include <vector>

namespace fsdp::rt {

/// The tokens of documents that come in another order, one after another. To
/// make it takes 4 bytes of memory per document, which are given back.
class ShuffledDocuments {
public:
  /// Throws fsdp::Error if starts are in no order.
  ShuffledDocuments(Documents documents, uint64_t key);

  /// Where `count` tokens from `first` on of this order are.
  std::vector<TokenSpan> find(int64_t first, int64_t count) const;

private:
  /// Documents between two of which it is known where they begin.
  static constexpr int64_t kStride = 32;

  Documents documents;
  Permutation order;
  std::vector<int64_t> begins; // of every kStride-th document
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_SHUFFLEDDOCUMENTS_H
