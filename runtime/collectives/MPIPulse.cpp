//===- MPIPulse.cpp - Beats as messages -----------------------------------===//
#include "MPIPulse.h"
#include <algorithm>
#include <chrono>
#include <deque>
#include <mpi.h>
#include <thread>

using namespace fsdp::rt;

/// So long a rank that lives may take to answer: it does so when it beats.
static constexpr std::chrono::seconds kAnswerTime{5};

namespace {

/// A beat is a count and the words of its rank.
class MPIPulse final : public Pulse {
public:
  MPIPulse(const World &world, const LastCollectives &progress)
      : world(world), progress(progress), next(nextOf(world)),
        previous(previousOf(world)), sent(1 + progress.channels()),
        received(sent.size()) {
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    lastBeat.reserve(progress.channels()); // a beat allocates nothing
    listen();
    listenToAsking();
  }
  ~MPIPulse() override {
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized)
      MPI_Comm_free(&comm);
  }

  void beat() override {
    answer();
    int isSent = 0;
    MPI_Test(&sending, &isSent, MPI_STATUS_IGNORE);
    // A stopped rank takes no messages: they must not pile up.
    if (!isSent)
      return;
    send(sent[0] + 1);
  }
  bool heard() override {
    bool any = hasEnded;
    for (int isHere = 1; isHere && !hasEnded;) {
      MPI_Test(&receiving, &isHere, MPI_STATUS_IGNORE);
      if (isHere)
        take();
      any |= isHere;
    }
    return any;
  }
  void end() override;
  std::optional<std::vector<ProgressWords>> ask(int silent) override;

private:
  enum Tag { Beat, Asking, Answer };

  void send(uint64_t count) {
    sent[0] = count;
    progress.copyOwnWords(sent.data() + 1);
    MPI_Isend(sent.data(), int(sent.size()), MPI_UINT64_T, next, Beat, comm,
              &sending);
  }
  void listen() {
    MPI_Irecv(received.data(), int(received.size()), MPI_UINT64_T, previous,
              Beat, comm, &receiving);
  }
  void listenToAsking() {
    MPI_Irecv(nullptr, 0, MPI_UINT64_T, MPI_ANY_SOURCE, Asking, comm, &asking);
  }

  /// A message is here: waits for the next, unless it was the last.
  void take() {
    hasEnded = received[0] == kEnded;
    lastBeat.assign(received.begin() + 1, received.end());
    if (!hasEnded)
      listen();
  }

  void answer();
  void sendAway(int rank, Tag tag, ProgressWords words);

  const World world;
  const LastCollectives &progress;
  const int next, previous;
  MPI_Comm comm = MPI_COMM_NULL;
  MPI_Request sending = MPI_REQUEST_NULL, receiving = MPI_REQUEST_NULL,
              asking = MPI_REQUEST_NULL;
  std::vector<uint64_t> sent, received;
  ProgressWords lastBeat; // of the rank before
  bool hasEnded = false;
  /// The lowest rank that has asked: it speaks for the job.
  int speaker = world.size;
  std::deque<ProgressWords> away;     // sent, perhaps not taken yet
  std::vector<ProgressWords> answers; // MPI may still write into them
};

} // namespace

void MPIPulse::end() {
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  send(kEnded);
  // Every message is taken before the communicator goes.
  while (!hasEnded) {
    MPI_Wait(&receiving, MPI_STATUS_IGNORE);
    take();
  }
  MPI_Wait(&sending, MPI_STATUS_IGNORE);
  MPI_Cancel(&asking);
  MPI_Wait(&asking, MPI_STATUS_IGNORE);
}

void MPIPulse::sendAway(int rank, Tag tag, ProgressWords words) {
  const ProgressWords &kept = away.emplace_back(std::move(words));
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Isend(kept.data(), int(kept.size()), MPI_UINT64_T, rank, tag, comm,
            &request);
  MPI_Request_free(&request);
}

void MPIPulse::answer() {
  for (int isHere = 1; isHere;) {
    MPI_Status status;
    MPI_Test(&asking, &isHere, &status);
    if (!isHere)
      return;
    speaker = std::min(speaker, status.MPI_SOURCE);
    sendAway(status.MPI_SOURCE, Answer, progress.ownWords());
    listenToAsking();
  }
}

std::optional<std::vector<ProgressWords>> MPIPulse::ask(int silent) {
  using Clock = std::chrono::steady_clock;
  auto until = Clock::now() + kAnswerTime, nextBeat = Clock::now();
  answers.resize(size_t(world.size), ProgressWords(progress.channels()));
  std::vector<MPI_Request> requests(size_t(world.size), MPI_REQUEST_NULL);
  for (int rank = 0; rank < world.size; ++rank) {
    if (rank == world.rank || rank == silent)
      continue;
    sendAway(rank, Asking, {});
    MPI_Irecv(answers[size_t(rank)].data(), int(progress.channels()),
              MPI_UINT64_T, rank, Answer, comm, &requests[size_t(rank)]);
  }
  int isComplete = 0;
  for (bool defers = false; !isComplete && Clock::now() < until;) {
    if (Clock::now() >= nextBeat) {
      beat();
      nextBeat += kBeatTime;
    }
    answer();
    if (!defers && speaker < world.rank) {
      defers = true;
      until = Clock::now() + kSpeechTime;
    }
    if (!defers)
      MPI_Testall(world.size, requests.data(), &isComplete,
                  MPI_STATUSES_IGNORE);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  if (speaker < world.rank)
    return std::nullopt;
  std::vector<ProgressWords> all;
  for (int rank = 0; rank < world.size; ++rank) {
    MPI_Request &request = requests[size_t(rank)];
    int isHere = rank != silent;
    if (isHere)
      MPI_Test(&request, &isHere, MPI_STATUS_IGNORE);
    all.push_back(rank == world.rank ? progress.ownWords()
                  : isHere           ? answers[size_t(rank)]
                  : rank == previous ? lastBeat
                                     : ProgressWords());
  }
  return all;
}

std::unique_ptr<Pulse>
fsdp::rt::createMPIPulse(const World &world, const LastCollectives &progress) {
  return std::make_unique<MPIPulse>(world, progress);
}
