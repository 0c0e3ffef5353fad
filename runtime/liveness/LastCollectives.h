//===- LastCollectives.h - Which collectives a rank is in -------*- C++ -*-===//
//
// A word per channel says in which collective of which program it is. Ranks of
// one machine read each other's words in the control pages behind the arenas,
// also those of a rank that is stopped or dead; others ask (Pulse.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LIVENESS_LASTCOLLECTIVES_H
#define FSDP_RUNTIME_LIVENESS_LASTCOLLECTIVES_H

#include "runtime/core/Arena.h"
#include <atomic>
#include <string>
#include <vector>

namespace fsdp::rt {

/// Words of one rank, by channel; 0: no collective so far. None: not known.
using ProgressWords = std::vector<uint64_t>;

class LastCollectives {
public:
  /// Of a rank with so many channels; all have the same number.
  LastCollectives(const fsdp_artifact &artifact, const Arena &arena,
                  const World &world, size_t channels);

  /// The next collectives are those of a run of this program. Where they are
  /// issued, as next().
  void beginProgram(int index);
  /// The word of the program's next collective, `index` in the artifact's
  /// table.
  uint64_t next(int index);

  /// Where a channel's collectives run.
  void enter(size_t channel, uint64_t word) { store(channel, word | kInside); }
  void leave(size_t channel, uint64_t word) { store(channel, word); }

  size_t channels() const { return count; }
  ProgressWords ownWords() const { return read(mine); }
  /// The same into room for channels(); allocates nothing.
  void copyOwnWords(uint64_t *to) const { copy(mine, to); }
  /// Whether the words are in the control pages, and can be read of every rank
  /// that has its arena here.
  bool areShared() const { return own.empty(); }
  ProgressWords wordsOf(int rank) const;

  /// all_gather "layers.0" (number 3 of 'train')
  std::string nameOf(uint64_t word) const;
  /// "; last collectives: rank 1: …; ranks 0, 2: …", with the text of rank
  /// `first` (-1: none) in front.
  std::string describe(const std::vector<ProgressWords> &ranks,
                       int first) const;

private:
  using Word = std::atomic<uint64_t>;
  static constexpr uint64_t kInside = 1;

  void store(size_t channel, uint64_t word) {
    mine[channel].store(word, std::memory_order_relaxed);
  }
  void copy(const Word *words, uint64_t *to) const;
  ProgressWords read(const Word *words) const;
  std::string describe(const ProgressWords &words) const;

  const fsdp_artifact &artifact;
  const Arena &arena;
  const size_t count;
  std::vector<Word> own; // where there are no control pages
  Word *mine;
  int program = 0;
  uint32_t number = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_LASTCOLLECTIVES_H
