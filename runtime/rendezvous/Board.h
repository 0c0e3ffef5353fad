//===- Board.h - Memory where the ranks of a local job meet -----*- C++ -*-===//
//
// Ranks that fsdp-run starts on one machine exchange what they have to agree
// on, outside the step path, through memory that they inherit. Nothing listens,
// and nobody else can reach it.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_RENDEZVOUS_BOARD_H
#define FSDP_RUNTIME_RENDEZVOUS_BOARD_H

#include "Gate.h"
#include <cstddef>

namespace fsdp::rt {

/// Set for ranks of a local job on CPUs: the descriptor of their board.
constexpr const char *kBoardVariable = "FSDP_BOARD";

class Board {
public:
  /// A file without a name that holds the board of so many ranks; programs that
  /// this process starts do not inherit it by themselves. Throws fsdp::Error.
  static int create(int ranks);

  /// Takes the descriptor over. Throws fsdp::Error if that is no board of so
  /// many ranks.
  Board(int descriptor, int rank, int ranks);
  ~Board();
  Board(const Board &) = delete;
  Board &operator=(const Board &) = delete;

  // Collective over the ranks; one thread of each at a time. Nothing here
  // allocates memory. A rank that never comes is its launcher's matter.

  void barrier();
  /// `all` gets the `bytes` of each rank in order.
  void allGather(const void *mine, int64_t bytes, void *all);
  /// The same, but for one rank; `all` may be null elsewhere.
  void gather(const void *mine, int64_t bytes, void *all, int root);
  void broadcast(void *data, int64_t bytes, int root);

private:
  struct Place;

  template <typename Take>
  void exchange(const std::byte *mine, size_t count, const Take &take);
  void collect(const void *mine, int64_t bytes, void *all, bool takes);

  int rank, ranks;
  Place *places = nullptr;
  uint32_t round = 0;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RENDEZVOUS_BOARD_H
