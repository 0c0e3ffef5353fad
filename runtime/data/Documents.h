//===- Documents.h - Documents of a stretch of tokens -----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_DATA_DOCUMENTS_H
#define FSDP_RUNTIME_DATA_DOCUMENTS_H

#include "fsdp/Data/TokenDataset.h"
#include <functional>

namespace fsdp::rt {

/// Tokens that follow one another in a source.
struct TokenSpan {
  int64_t first, count;
  int64_t end() const { return first + count; }
};

/// The documents of the tokens [begin, end). The first and the last may reach
/// beyond these, and count with the tokens that are inside.
class Documents {
public:
  /// `source` is what messages call them: "the token folder 'tokens'".
  Documents(const std::string &source, const DocumentStarts &starts,
            int64_t begin, int64_t end);

  int64_t count() const { return last - firstOne; }
  /// Throws fsdp::Error if starts are in no order.
  TokenSpan at(int64_t document) const;
  /// Calls `act` with the number and the tokens of each, in order. Throws as
  /// at().
  void
  forEach(const std::function<void(int64_t document, TokenSpan)> &act) const;

  /// Throws fsdp::Error: the starts are not those of the beginning.
  [[noreturn]] void failAsChanged() const;

private:
  TokenSpan between(int64_t document, int64_t start, int64_t next) const;

  std::string source;
  const DocumentStarts &starts;
  int64_t begin, stop;
  int64_t firstOne, last; // of all documents
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_DATA_DOCUMENTS_H
