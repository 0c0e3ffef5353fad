//===- LastCollectives.cpp - Which collectives a rank is in ---------------===//
#include "LastCollectives.h"
#include "FailureReport.h"
#include <algorithm>

using namespace fsdp::rt;

/// A word from its low bits: whether the channel is inside, the number in the
/// program from 1, the index in the artifact's table, the program.
static constexpr int kNumberAt = 1, kIndexAt = 24, kProgramAt = 48;

static uint32_t bitsOf(uint64_t word, int from, int to) {
  return uint32_t(word >> from & ((uint64_t(1) << (to - from)) - 1));
}

LastCollectives::LastCollectives(const fsdp_artifact &artifact,
                                 const Arena &arena, const World &world,
                                 size_t channels)
    : artifact(artifact), arena(arena), count(channels) {
  std::byte *control = arena.control(world.rank);
  if (control && channels <= Arena::kMaxChannels) {
    mine = reinterpret_cast<Word *>(control + Arena::kProgressAt);
    return;
  }
  own = std::vector<Word>(std::max<size_t>(channels, 1));
  mine = own.data();
}

void LastCollectives::beginProgram(int index) {
  program = index;
  number = 0;
}

uint64_t LastCollectives::next(int index) {
  return uint64_t(program) << kProgramAt | uint64_t(index) << kIndexAt |
         (uint64_t(++number) << kNumberAt & ((uint64_t(1) << kIndexAt) - 1));
}

void LastCollectives::copy(const Word *words, uint64_t *to) const {
  for (size_t i = 0; i < count; ++i)
    to[i] = words[i].load(std::memory_order_relaxed);
}

ProgressWords LastCollectives::read(const Word *words) const {
  ProgressWords result(count);
  copy(words, result.data());
  return result;
}

ProgressWords LastCollectives::wordsOf(int rank) const {
  return read(
      reinterpret_cast<const Word *>(arena.control(rank) + Arena::kProgressAt));
}

std::string LastCollectives::nameOf(uint64_t word) const {
  auto program = int32_t(bitsOf(word, kProgramAt, 64));
  auto index = int32_t(bitsOf(word, kIndexAt, kProgramAt));
  if (program >= artifact.programs || index >= artifact.collectives)
    return "a collective of another program";
  return rt::nameOf(artifact.collective[index],
                    bitsOf(word, kNumberAt, kIndexAt) - 1,
                    artifact.program[program].name);
}

std::string LastCollectives::describe(const ProgressWords &words) const {
  if (words.size() != count)
    return "no answer";
  std::vector<LastCollective> channels;
  for (uint64_t word : words)
    if (word != 0)
      channels.push_back({nameOf(word), (word & kInside) != 0});
  return describeRank(channels);
}

std::string LastCollectives::describe(const std::vector<ProgressWords> &ranks,
                                      int first) const {
  std::vector<std::string> texts;
  for (const ProgressWords &words : ranks)
    texts.push_back(describe(words));
  return "; last collectives: " + foldRanks(texts, first);
}
