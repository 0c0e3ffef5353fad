//===- BoardTest.cpp - Where the ranks of a local job meet ----------------===//
//
// Each rank is a process of its own with a board of its own over one memory.
//
//===----------------------------------------------------------------------===//
#include "runtime/rendezvous/Board.h"
#include "TemporaryFolder.h"
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

/// Whether `act` is true on every rank.
static bool onAll(int ranks, const std::function<bool(Board &, int)> &act) {
  int descriptor = Board::create(ranks);
  std::vector<pid_t> children;
  for (int rank = 0; rank < ranks; ++rank) {
    pid_t child = fork();
    if (child == 0) {
      Board board(descriptor, rank, ranks);
      _exit(act(board, rank) ? 0 : 1);
    }
    children.push_back(child);
  }
  close(descriptor);
  bool good = true;
  for (pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    good &= status == 0;
  }
  return good;
}

/// What a rank has in the place `i` of a round.
static unsigned char valueOf(int rank, size_t i, int round) {
  return static_cast<unsigned char>(rank * 31 + static_cast<int>(i) * 7 +
                                    round);
}

// Sizes around what fits into one round, many times after each other: nobody
// reads what belongs to another round.
TEST(Board, EveryRankGetsTheBytesOfAll) {
  constexpr int ranks = 3;
  EXPECT_TRUE(onAll(ranks, [](Board &board, int rank) {
    int round = 0;
    for (size_t bytes : {0, 1, 8, 32735, 32736, 32737, 200000, 8, 8, 8, 8}) {
      std::vector<unsigned char> mine(bytes), all(ranks * bytes);
      ++round;
      for (size_t i = 0; i < bytes; ++i)
        mine[i] = valueOf(rank, i, round);
      board.allGather(mine.data(), static_cast<int64_t>(bytes), all.data());
      for (int r = 0; r < ranks; ++r)
        for (size_t i = 0; i < bytes; ++i)
          if (all[static_cast<size_t>(r) * bytes + i] != valueOf(r, i, round))
            return false;
    }
    return true;
  }));
}

TEST(Board, OneRankGivesOrGets) {
  constexpr int ranks = 4, root = 2;
  EXPECT_TRUE(onAll(ranks, [=](Board &board, int rank) {
    std::vector<int> values(20000, rank);
    board.broadcast(values.data(), 80000, root);
    if (values != std::vector<int>(20000, root))
      return false;
    board.barrier();
    int all[ranks] = {-1, -1, -1, -1};
    board.gather(&rank, sizeof rank, rank == root ? all : nullptr, root);
    for (int r = 0; r < ranks; ++r)
      if (all[r] != (rank == root ? r : -1))
        return false;
    return true;
  }));
}

TEST(Board, RefusesWhatIsNone) {
  int pipes[2];
  ASSERT_EQ(pipe(pipes), 0);
  for (int descriptor : {pipes[0], 999})
    EXPECT_EQ(messageOf([&] { Board(descriptor, 0, 2); }),
              "environment: FSDP_BOARD = " + std::to_string(descriptor) +
                  " is no memory of 2 ranks; only fsdp-run sets it");
  int other = Board::create(3);
  EXPECT_NE(messageOf([&] { Board(other, 0, 2); }), "");
  for (int descriptor : {pipes[0], pipes[1], other})
    close(descriptor);
}

TEST(Board, SaysThatFilesMayNotBeSoLarge) {
  std::string message;
  pid_t child = fork();
  if (child == 0) {
    rlimit limit{1 << 10, 1 << 10};
    setrlimit(RLIMIT_FSIZE, &limit);
    message = messageOf([] { Board::create(2); });
    _exit(message == "a file may have 1 KiB at most, but 2 ranks share memory "
                     "of 128 KiB, which counts as one; raise the limit (ulimit "
                     "-f unlimited)"
              ? 0
              : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
}
