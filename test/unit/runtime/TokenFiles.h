//===- TokenFiles.h - Files of tokens for tests -----------------*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_RUNTIME_TOKENFILES_H
#define FSDP_TEST_UNIT_RUNTIME_TOKENFILES_H

#include "TemporaryFolder.h"
#include "fsdp/Data/TokenDataset.h"

namespace fsdp::test {

/// Numbers as a file has them.
template <typename T> std::string bytesOf(const std::vector<T> &numbers) {
  return {reinterpret_cast<const char *>(numbers.data()),
          numbers.size() * sizeof(T)};
}

/// 0, 1, 2, …, so that an id tells where it stands.
template <typename T> std::vector<T> counting(int64_t from, int64_t count) {
  std::vector<T> ids;
  for (int64_t i = 0; i < count; ++i)
    ids.push_back(static_cast<T>(from + i));
  return ids;
}

/// A batch with its own memory.
struct OwnedBatch {
  OwnedBatch(int64_t rows, int64_t sequence)
      : tokens(rows * sequence), targets(rows * sequence),
        view{rows, sequence, tokens.data(), targets.data()} {}
  std::vector<int32_t> tokens, targets;
  rt::Batch view;
};

/// What a training of one row sees in its first steps.
inline std::vector<int32_t> firstRows(const rt::Dataset &data, int64_t steps,
                                      int64_t sequence) {
  std::vector<int32_t> all;
  OwnedBatch batch(1, sequence);
  for (int64_t step = 0; step < steps; ++step) {
    data.sampleTraining(1, step, {}, batch.view);
    all.insert(all.end(), batch.tokens.begin(), batch.tokens.end());
  }
  return all;
}

/// Sequences of 5, 0, 7 and 20 ids, in three documents.
struct Megatron {
  std::string magic{"MMIDIDX\0\0", 9};
  uint64_t version = 1;
  uint8_t type = 8;
  uint64_t sequences = 4, documents = 4;
  std::vector<int32_t> lengths{5, 0, 7, 20};
  std::vector<int64_t> offsets{0, 10, 10, 24};
  std::vector<int64_t> firsts{0, 2, 3, 4};
  std::string more, ids = bytesOf(counting<uint16_t>(0, 32));

  std::string index() const {
    return magic + bytesOf<uint64_t>({version}) + static_cast<char>(type) +
           bytesOf<uint64_t>({sequences, documents}) + bytesOf(lengths) +
           bytesOf(offsets) + bytesOf(firsts) + more;
  }
  std::string write(const TemporaryFolder &folder) const {
    folder.write("m.bin", ids);
    folder.write("m.idx", index());
    return folder.path + "/m";
  }
};

} // namespace fsdp::test

#endif // FSDP_TEST_UNIT_RUNTIME_TOKENFILES_H
