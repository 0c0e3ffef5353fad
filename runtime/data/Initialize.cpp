//===- Initialize.cpp - First values of the persistent ranges -------------===//
#include "fsdp/Data/Initialize.h"
#include "fsdp/Data/Philox.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

static std::array<uint32_t, 4> draw(uint64_t key, uint64_t index,
                                    uint32_t attempt) {
  return philox({static_cast<uint32_t>(index),
                 static_cast<uint32_t>(index >> 32), attempt, 0},
                key);
}

static float normalFromKey(uint64_t key, uint64_t index, double std,
                           double cut) {
  for (uint32_t attempt = 0;; ++attempt) {
    std::array<uint32_t, 4> x = draw(key, index, attempt);
    // Box-Muller.
    double z = std::sqrt(-2 * std::log(openUnit(x[0]))) *
               std::cos(2 * M_PI * openUnit(x[1]));
    if (cut == 0 || std::abs(z) <= cut)
      return static_cast<float>(std * z);
  }
}

static float uniformFromKey(uint64_t key, uint64_t index, double bound) {
  return static_cast<float>(bound * (2 * openUnit(draw(key, index, 0)[0]) - 1));
}

float rt::normalValue(uint64_t seed, const std::string &name, uint64_t index,
                      double std, double cut) {
  return normalFromKey(philoxKey(seed, name), index, std, cut);
}

float rt::uniformValue(uint64_t seed, const std::string &name, uint64_t index,
                       double bound) {
  return uniformFromKey(philoxKey(seed, name), index, bound);
}

namespace {
/// Stored elements of a range, and where they go.
struct Piece {
  const Manifest &manifest;
  const RangeInfo &range;
  int64_t rank, first, count;
  float *data;
  int threads;
};
} // namespace

/// Calls `value(i)` for the index i of each element of the piece in the full
/// tensor and stores the results; what lies beyond the tensor stays.
template <typename Value> static void fillPart(const Piece &p, Value value) {
  forEachRunWithin(p.first, p.count, p.manifest.shardView(p.range, p.rank),
                   p.range.full,
                   [&](int64_t stored, int64_t whole, int64_t count) {
                     float *to = p.data + stored - p.first;
                     for (int64_t i = 0; i < count; ++i)
                       to[i] = value(static_cast<uint64_t>(whole + i));
                   });
}

/// The same on the piece's threads, which share it in parts that each take
/// longer than a thread takes to start.
template <typename Value> static void fillPiece(const Piece &p, Value value) {
  constexpr int64_t kPart = 1 << 14;
  int64_t parts = (p.count + kPart - 1) / kPart;
  parallelFor(static_cast<size_t>(parts), p.threads, [&](size_t i) {
    Piece part = p;
    int64_t skipped = static_cast<int64_t>(i) * kPart;
    part.first += skipped;
    part.count = std::min(kPart, p.count - skipped);
    part.data += skipped;
    fillPart(part, value);
  });
}

/// Shape [positions, pairs, 2]: cosine and sine of position * frequency.
static void fillRotaryTable(const Piece &piece) {
  const RangeInfo &range = piece.range;
  const Initializer &table = *range.init;
  auto pairs = static_cast<int64_t>(table.frequencies.size());
  if (range.full.size() != 3 || range.full[1] != pairs || range.full[2] != 2)
    throw Error("the rotary table '" + range.name + "' has not the shape " +
                "[positions, " + std::to_string(pairs) + " frequencies, 2]");
  fillPiece(piece, [&](uint64_t index) {
    auto pair = static_cast<int64_t>(index / 2);
    double angle = static_cast<double>(table.start + pair / pairs) *
                   table.frequencies[static_cast<size_t>(pair % pairs)];
    return static_cast<float>(
        table.scale * (index % 2 == 0 ? std::cos(angle) : std::sin(angle)));
  });
}

void rt::initializePiece(const Manifest &manifest, const RangeInfo &range,
                         int64_t rank, uint64_t seed, int64_t first,
                         int64_t count, std::byte *data, int threads) {
  std::memset(data, 0, static_cast<size_t>(count * sizeOf(range.dtype)));
  if (!range.init || range.init->kind == Initializer::Kind::Zeros)
    return;
  if (range.dtype != DType::F32)
    throw Error("the range '" + range.name +
                "' has an initial value but is not of type f32");
  Piece piece{manifest, range, rank,
              first,    count, reinterpret_cast<float *>(data),
              threads};
  const Initializer &init = *range.init;
  uint64_t key = philoxKey(seed, range.name);
  switch (init.kind) {
  case Initializer::Kind::Zeros:
    break;
  case Initializer::Kind::Ones:
    fillPiece(piece, [](uint64_t) { return 1.0f; });
    break;
  case Initializer::Kind::Normal:
    fillPiece(piece, [&](uint64_t index) {
      return normalFromKey(key, index, init.std, init.cut);
    });
    break;
  case Initializer::Kind::Uniform:
    fillPiece(piece, [&](uint64_t index) {
      return uniformFromKey(key, index, init.bound);
    });
    break;
  case Initializer::Kind::RotaryTable:
    fillRotaryTable(piece);
    break;
  }
}

void rt::initializeRange(const Manifest &manifest, const RangeInfo &range,
                         int64_t rank, uint64_t seed, std::byte *data) {
  initializePiece(manifest, range, rank, seed, 0, range.elements(), data);
}

void rt::initializeRanges(const Manifest &manifest, int64_t rank, uint64_t seed,
                          std::byte *arena) {
  for (const RangeInfo &range : manifest.ranges)
    initializeRange(manifest, range, rank, seed, arena + range.offset);
}
