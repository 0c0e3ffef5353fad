//===- Pulse.cpp - How beats travel between ranks -------------------------===//
#include "Pulse.h"
#include <chrono>
#include <thread>

using namespace fsdp::rt;

namespace {

class SharedPulse final : public Pulse {
public:
  SharedPulse(const Arena &arena, const World &world,
              const LastCollectives &progress)
      : world(world), progress(progress), mine(lineOf(arena, world.rank).beats),
        theirs(lineOf(arena, previousOf(world)).beats),
        speaker(lineOf(arena, 0).speaker) {}

  void beat() override { mine.fetch_add(1, std::memory_order_relaxed); }
  bool heard() override {
    uint64_t now = theirs.load(std::memory_order_relaxed);
    bool isNew = now != seen || now == kEnded;
    seen = now;
    return isNew;
  }
  void end() override { mine.store(kEnded); }
  std::optional<std::vector<ProgressWords>> ask(int) override {
    uint64_t nobody = 0;
    if (!speaker.compare_exchange_strong(nobody, uint64_t(world.rank) + 1)) {
      for (auto waited = kBeatTime; waited < kSpeechTime; waited += kBeatTime) {
        beat();
        std::this_thread::sleep_for(kBeatTime);
      }
      return std::nullopt;
    }
    std::vector<ProgressWords> all;
    for (int rank = 0; rank < world.size; ++rank)
      all.push_back(progress.wordsOf(rank));
    return all;
  }

private:
  /// What a rank has in its control pages; all zero at first.
  struct Line {
    std::atomic<uint64_t> beats;
    /// Of rank 0: the rank that speaks at the end of the job, from 1.
    std::atomic<uint64_t> speaker;
  };
  static Line &lineOf(const Arena &arena, int rank) {
    return *reinterpret_cast<Line *>(arena.control(rank) + Arena::kPulseAt);
  }

  const World world;
  const LastCollectives &progress;
  std::atomic<uint64_t> &mine;
  const std::atomic<uint64_t> &theirs;
  std::atomic<uint64_t> &speaker;
  uint64_t seen = 0;
};

} // namespace

std::unique_ptr<Pulse>
fsdp::rt::createSharedPulse(const Arena &arena, const World &world,
                            const LastCollectives &progress) {
  return std::make_unique<SharedPulse>(arena, world, progress);
}
