//===- unigram.cpp - An artifact written by hand --------------------------===//
//
// The smallest model that fsdp-run can train: 256 logits, the same at every
// position, and gradient descent. Every rank trains its own copy; no
// collective, no library. The environment makes it misbehave for tests:
// UNIGRAM_KILL and UNIGRAM_NAN hold a step, UNIGRAM_RANK the rank they mean,
// and UNIGRAM_MKDIR a folder that training makes.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Runtime/Artifact.h"
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <sys/stat.h>

using namespace fsdp::rt;

namespace {

constexpr int kRows = 2, kSequence = 16, kClasses = 256;
constexpr int kPlaces = kRows * kSequence;

/// Offsets in the arena, as in the manifest.
enum : uint64_t {
  kWeight = 0,
  kTokens = 1024,
  kTargets = 1152,
  kLr = 1280,
  kStep = 1344,
  kLoss = 1408,
  kNorm = 1472,
  kLogits = 1536,
  kArena = 1536 + kPlaces * kClasses * 4
};

template <typename T> T *range(Context &c, uint64_t offset) {
  return reinterpret_cast<T *>(at(c, offset));
}

/// Mean loss over the targets that count; fills the gradient if there is one.
float lossOf(Context &c, float *gradient) {
  const float *weight = range<float>(c, kWeight);
  const int32_t *targets = range<int32_t>(c, kTargets);
  double total = 0, loss = 0;
  for (int i = 0; i < kClasses; ++i)
    total += std::exp(weight[i]);
  int count = 0;
  for (int i = 0; i < kPlaces; ++i)
    count += targets[i] >= 0;
  for (int i = 0; gradient && i < kClasses; ++i)
    gradient[i] = static_cast<float>(std::exp(weight[i]) / total);
  for (int i = 0; i < kPlaces; ++i) {
    if (targets[i] < 0)
      continue;
    loss += std::log(total) - weight[targets[i]];
    if (gradient)
      gradient[targets[i]] -= 1.0f / static_cast<float>(count);
  }
  return static_cast<float>(loss / count);
}

bool isDue(const char *variable, int32_t step) {
  const char *due = std::getenv(variable);
  const char *which = std::getenv("UNIGRAM_RANK");
  const char *rank = std::getenv("RANK");
  if (!rank)
    rank = std::getenv("OMPI_COMM_WORLD_RANK");
  return due && std::atoi(due) == step &&
         (!which || !rank || std::atoi(which) == std::atoi(rank));
}

void train(Context &c) {
  float gradient[kClasses], *weight = range<float>(c, kWeight);
  int32_t step = *range<int32_t>(c, kStep);
  float loss = lossOf(c, gradient);
  double squares = 0;
  for (int i = 0; i < kClasses; ++i) {
    squares += gradient[i] * gradient[i];
    weight[i] -= *range<float>(c, kLr) * gradient[i];
  }
  if (const char *folder = std::getenv("UNIGRAM_MKDIR"))
    mkdir(folder, 0777);
  if (isDue("UNIGRAM_KILL", step))
    std::raise(SIGKILL);
  *range<float>(c, kLoss) = isDue("UNIGRAM_NAN", step) ? NAN : loss;
  *range<float>(c, kNorm) = static_cast<float>(std::sqrt(squares));
}

void evaluate(Context &c) {
  *range<float>(c, kLoss) = lossOf(c, nullptr);
  float *logits = range<float>(c, kLogits);
  for (int i = 0; i < kPlaces * kClasses; ++i)
    logits[i] = range<float>(c, kWeight)[i % kClasses];
}

const fsdp_program programs[] = {{"train", train}, {"evaluate", evaluate}};

const char *const manifest =
#include "manifest.inc"
    ;

} // namespace

extern "C" const fsdp_artifact *fsdp_get_artifact(void) {
  static fsdp_artifact artifact;
  artifact.abi = FSDP_ARTIFACT_ABI;
  artifact.manifest = manifest;
  artifact.arena_bytes = kArena;
  artifact.programs = 2;
  artifact.program = programs;
  return &artifact;
}
