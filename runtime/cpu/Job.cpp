//===- Job.cpp - Joining a job and helpers over all ranks -----------------===//
//
// Ranks that fsdp-run has started share memory; those of another launcher meet
// by MPI.
//
//===----------------------------------------------------------------------===//
#include "runtime/core/Job.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include "runtime/rendezvous/Board.h"
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mpi.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace {
struct State {
  bool joined = false, mpi = false, ownsMPI = false;
  std::unique_ptr<Board> board; // of ranks that fsdp-run has started
  World world;
  std::string messageFile;      // of MPI; removed while MPI runs
  std::vector<double> gathered; // room of allReduceSum
};
} // namespace

static State &state() {
  static State s;
  return s;
}

/// This rank's number among those of its machine.
static int placeOnNode() {
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL,
                      &node);
  int place = 0;
  MPI_Comm_rank(node, &place);
  MPI_Comm_free(&node);
  return place;
}

/// Open MPI keeps the memory through which ranks of one machine send messages
/// in files, which stay for ever when a job is killed. All ranks have mapped
/// them when MPI has started; from then on they need no name. Returns the name
/// of this rank's file: its place among the ranks of the machine is the last
/// part. Empty if there is none.
static std::string removeMessageFiles(int place) {
  std::string suffix = "." + std::to_string(place), mine;
  MPI_Barrier(MPI_COMM_WORLD);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    size_t begin = line.find('/');
    if (begin == std::string::npos ||
        line.find("/vader_segment.", begin) == std::string::npos)
      continue;
    // Another rank may have been first.
    if (size_t note = line.rfind(" (deleted)"); note != std::string::npos)
      line.erase(note);
    std::filesystem::path file = line.substr(begin);
    if (file.extension() == suffix)
      mine = file.string();
    unlink(file.c_str());
  }
  return mine;
}

/// MPI complains at its end if its file is gone: leaves an empty one.
static void restoreMessageFile(const std::string &file) {
  int made = open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600);
  if (made >= 0)
    close(made);
}

/// Where all ranks are on this machine, Open MPI needs no network, at which it
/// would listen. Settings that are in the environment already win.
static void keepToThisMachine() {
  auto place = detectLaunch();
  if (!place || place->localSize != place->size)
    return;
  setenv("OMPI_MCA_pml", "ob1", /*overwrite=*/0);
  setenv("OMPI_MCA_btl", "self,vader", /*overwrite=*/0);
}

/// A launcher that speaks MPI leaves one of these. Without it MPI would start
/// a daemon for a single process, which takes longer than a training step.
static bool isLaunched() {
  for (const char *name :
       {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE"})
    if (std::getenv(name))
      return true;
  return false;
}

/// Joins the ranks that fsdp-run has started together with this one.
static void joinLocalJob(State &s, const char *descriptor) {
  auto place = detectLaunch();
  if (!place)
    throw Error(std::string("environment: ") + kBoardVariable +
                " is set but RANK is not; fsdp-run sets both");
  s.world = {place->rank, place->size};
  s.board =
      std::make_unique<Board>(std::atoi(descriptor), place->rank, place->size);
  // Of no use to what this process starts.
  unsetenv(kBoardVariable);
  s.joined = true;
}

World fsdp::rt::joinWorld() {
  State &s = state();
  if (s.joined)
    return s.world;
  if (const char *descriptor = std::getenv(kBoardVariable)) {
    joinLocalJob(s, descriptor);
    return s.world;
  }
  int initialized = 0;
  MPI_Initialized(&initialized);
  s.mpi = initialized || isLaunched();
  if (s.mpi && !initialized) {
    keepToThisMachine();
    int provided = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
    s.ownsMPI = true;
    if (provided < MPI_THREAD_MULTIPLE) {
      std::fprintf(stderr, "fsdp: this MPI library does not support "
                           "MPI_THREAD_MULTIPLE, which streams need\n");
      MPI_Abort(MPI_COMM_WORLD, 1);
    }
    s.messageFile = removeMessageFiles(placeOnNode());
  }
  if (s.mpi) {
    MPI_Comm_rank(MPI_COMM_WORLD, &s.world.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.world.size);
  }
  s.joined = true;
  return s.world;
}

void fsdp::rt::leaveWorld() {
  State &s = state();
  int finalized = 0;
  if (s.ownsMPI)
    MPI_Finalized(&finalized);
  if (s.ownsMPI && !finalized) {
    if (!s.messageFile.empty())
      restoreMessageFile(s.messageFile);
    MPI_Finalize();
  }
  s = State();
}

void fsdp::rt::abortWorld(const std::string &problem, int exitCode) {
  job::abortFor(state().world.rank, problem, exitCode);
}

void job::abortFor(int rank, const std::string &problem, int exitCode) {
  std::string message = printable(problem);
  std::fflush(stdout);
  if (state().world.size > 1)
    std::fprintf(stderr, "fsdp: rank %d: %s\n",
                 rank < 0 ? state().world.rank : rank, message.c_str());
  else
    std::fprintf(stderr, "fsdp: %s\n", message.c_str());
  std::fflush(stderr);
  removeFilesOnSignal();
  if (state().mpi)
    MPI_Abort(MPI_COMM_WORLD, exitCode);
  // Other threads may be in the middle of a collective: no destructors.
  _exit(exitCode);
}

void fsdp::rt::barrier() {
  if (state().board)
    state().board->barrier();
  else if (state().mpi)
    MPI_Barrier(MPI_COMM_WORLD);
}

/// MPI counts are 32 bits; larger transfers go in pieces of this many bytes.
static constexpr int64_t kMaxCount = int64_t(1) << 30;

void fsdp::rt::broadcast(void *data, int64_t bytes, int root) {
  if (state().board)
    return state().board->broadcast(data, bytes, root);
  if (!state().mpi)
    return;
  auto *p = static_cast<std::byte *>(data);
  for (int64_t done = 0; done < bytes; done += kMaxCount)
    MPI_Bcast(p + done, int(std::min(kMaxCount, bytes - done)), MPI_BYTE, root,
              MPI_COMM_WORLD);
}

void fsdp::rt::allReduceSum(double *values, int count) {
  State &s = state();
  if (s.world.size == 1)
    return;
  // Kept between calls: a training step sums its loss and allocates nothing.
  std::vector<double> &all = s.gathered;
  all.resize(size_t(count) * size_t(s.world.size));
  job::allGather(values, count * int64_t(sizeof(double)), all.data());
  for (int i = 0; i < count; ++i) {
    double sum = 0;
    for (int r = 0; r < s.world.size; ++r)
      sum += all[size_t(r) * size_t(count) + size_t(i)];
    values[i] = sum;
  }
}

void fsdp::rt::gather(const void *mine, int64_t bytes, void *all, int root) {
  State &s = state();
  if (s.board)
    return s.board->gather(mine, bytes, all, root);
  auto *to = static_cast<std::byte *>(all);
  auto *from = static_cast<const std::byte *>(mine);
  if (s.world.rank == root && bytes > 0)
    std::memcpy(to + s.world.rank * bytes, from, size_t(bytes));
  for (int64_t done = 0; done < bytes && s.world.size > 1; done += kMaxCount) {
    int count = int(std::min(kMaxCount, bytes - done));
    if (s.world.rank != root) {
      MPI_Send(from + done, count, MPI_BYTE, root, 0, MPI_COMM_WORLD);
      continue;
    }
    for (int r = 0; r < s.world.size; ++r)
      if (r != root)
        MPI_Recv(to + r * bytes + done, count, MPI_BYTE, r, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  }
}

bool job::usesMPI() { return state().mpi; }

bool job::everyone(bool mine) {
  int good = mine;
  if (state().board) {
    double bad = mine ? 0 : 1;
    allReduceSum(&bad, 1);
    return bad == 0;
  }
  if (state().mpi)
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return good;
}

void job::allGather(const void *mine, int64_t bytes, void *all) {
  if (state().board)
    state().board->allGather(mine, bytes, all);
  else if (state().mpi)
    MPI_Allgather(mine, int(bytes), MPI_BYTE, all, int(bytes), MPI_BYTE,
                  MPI_COMM_WORLD);
  else
    std::memcpy(all, mine, size_t(bytes));
}

std::vector<char> job::ranksOfThisNode() {
  State &s = state();
  std::vector<char> result(size_t(s.world.size), 0);
  result[size_t(s.world.rank)] = 1;
  if (s.board)
    std::fill(result.begin(), result.end(), 1);
  if (!s.mpi)
    return result;
  MPI_Comm node;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, s.world.rank,
                      MPI_INFO_NULL, &node);
  int count = 0;
  MPI_Comm_size(node, &count);
  std::vector<int> ranks(static_cast<size_t>(count));
  MPI_Allgather(&s.world.rank, 1, MPI_INT, ranks.data(), 1, MPI_INT, node);
  for (int r : ranks)
    result[size_t(r)] = 1;
  MPI_Comm_free(&node);
  return result;
}
