//===- Library.h - Matmuls and attention by the CPU runtime -----*- C++ -*-===//
//
// The same code as the CPU target's, with the same descriptors: the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_LIBRARY_H
#define FSDP_TEST_FAKECUDA_LIBRARY_H

#include "Memory.h"
#include "runtime/onednn/BlockedAttention.h"
#include "runtime/onednn/Gemm.h"

namespace fsdp::fake {

class Library {
public:
  /// `threads` as of the run to compare with: matmuls depend on it.
  explicit Library(int threads) : threads(threads) {}

  /// Throw unless all operands are memory of the process.
  void check(const Memory &memory, const Process &process, const Gemm &g) const;
  void check(const Memory &memory, const Process &process,
             const Attention &a) const;

  void run(const Gemm &g);
  void run(const Attention &a);

private:
  std::byte *scratch(int64_t bytes);

  const int threads;
  // By the fields of their descriptors.
  using Key = std::vector<double>;
  static Key keyOf(const rt::GemmDesc &d);
  static Key keyOf(const rt::AttentionDesc &d);
  std::map<Key, std::unique_ptr<rt::Gemm>> gemms;
  std::map<Key, std::unique_ptr<rt::BlockedAttention>> attentions;
  std::unique_ptr<std::byte[]> space;
  int64_t spaceBytes = 0;
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_LIBRARY_H
