//===- Dataset.cpp - Windows of tokens ------------------------------------===//
#include "fsdp/Data/Dataset.h"
#include "Permutation.h"
#include "fsdp/Data/Philox.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

DataFile::DataFile(const std::string &path, const std::string &what)
    : path(path), what(what) {
  auto fail = [&](const std::string &why) {
    if (descriptor >= 0)
      close(descriptor);
    throw Error("cannot read " + what + " '" + path + "': " + why);
  };
  // Non-blocking, or a pipe would be waited for; no matter to a regular file.
  descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status = {};
  if (descriptor < 0 || fstat(descriptor, &status) != 0)
    fail(std::strerror(errno));
  if (S_ISDIR(status.st_mode))
    fail(std::strerror(EISDIR));
  if (!S_ISREG(status.st_mode))
    fail("it is a pipe or a device, but training reads at any position of a "
         "regular file");
  bytes = status.st_size;
}

DataFile::~DataFile() { close(descriptor); }

void DataFile::read(int64_t first, int64_t count, void *to) const {
  auto *next = static_cast<char *>(to);
  for (int64_t end = first + count; first < end;) {
    ssize_t now =
        pread(descriptor, next, static_cast<size_t>(end - first), first);
    if (now < 0 && errno == EINTR)
      continue;
    if (now <= 0)
      throw Error("cannot read " + what + " '" + path + "' at byte " +
                  std::to_string(first) + ": " +
                  (now < 0 ? std::strerror(errno)
                           : "the file was changed while it was in use, it "
                             "had " +
                                 std::to_string(bytes) +
                                 " bytes; leave it as it is until the run is "
                                 "over"));
    next += now;
    first += now;
  }
}

std::string DataFile::read(int64_t first, int64_t count) const {
  std::string text(static_cast<size_t>(count), '\0');
  read(first, count, text.data());
  return text;
}

void DataFile::readPieces(int64_t first, int64_t count,
                          const TakePiece &take) const {
  constexpr int64_t kPieceBytes = int64_t{1} << 20;
  std::vector<char> piece(
      static_cast<size_t>(std::clamp<int64_t>(count, 0, kPieceBytes)));
  for (int64_t end = first + count; first < end;) {
    int64_t now = std::min(end - first, kPieceBytes);
    read(first, now, piece.data());
    take({piece.data(), static_cast<size_t>(now)}, first);
    first += now;
  }
}

uint64_t DataFile::checksum() const {
  RunningChecksum sum;
  readPieces(0, bytes,
             [&](std::string_view piece, int64_t) { sum.add(piece); });
  return sum.value();
}

uint64_t DataFile::sampledChecksum() const {
  constexpr int64_t kPages = 64, kPage = 4096;
  RunningChecksum sum;
  sum.add({reinterpret_cast<const char *>(&bytes), sizeof bytes});
  int64_t last = std::max<int64_t>(bytes - kPage, 0);
  for (int64_t i = 0; i < kPages; ++i) {
    auto first = static_cast<int64_t>(static_cast<__int128>(last) * i /
                                      (kPages - 1));
    sum.add(read(first, std::min(kPage, bytes - first)));
  }
  return sum.value();
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

void Dataset::split(int64_t tokens, double fraction) {
  splitAt(tokens,
          tokens - std::llround(fraction * static_cast<double>(tokens)));
}

void Dataset::splitAt(int64_t tokens, int64_t train) {
  numTokens = tokens;
  numTrain = train;
}

/// A number below `bound`. The high word of a 64 x 64 bit product maps to a
/// range without a division and without a bias that could be seen.
static int64_t below(uint64_t random, int64_t bound) {
  return static_cast<int64_t>(
      static_cast<unsigned __int128>(random) * static_cast<uint64_t>(bound) >>
      64);
}

static std::array<uint32_t, 4> counterOf(int64_t high, int64_t low) {
  return {static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32),
          static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32)};
}

/// Where the window of row `row` of a step begins. A window and the token after
/// it fit at offsets 0 .. numTrain - sequence - 1.
int64_t Dataset::drawnWindow(uint64_t seed, int64_t step, int64_t row,
                             int64_t sequence) const {
  return below(firstWord64(philox(counterOf(step, row),
                                  philoxKey(seed, "training windows"))),
               numTrain - sequence);
}

/// Where window `number` of all epochs begins.
int64_t Dataset::shuffledWindow(uint64_t seed, int64_t number,
                                int64_t sequence) const {
  int64_t windows = (numTrain - 1) / sequence;
  int64_t epoch = number / windows;
  // What is left over is another piece in each epoch.
  int64_t rest = numTrain - windows * sequence; // at least 1
  int64_t start = below(
      firstWord64(philox(counterOf(epoch, 0), philoxKey(seed, "epoch start"))),
      rest);
  Permutation windowsOfEpoch(
      windows, firstWord64(philox(counterOf(epoch, 0),
                                  philoxKey(seed, "order of windows"))));
  return start + windowsOfEpoch(number % windows) * sequence;
}

void Dataset::sampleTraining(uint64_t seed, int64_t step,
                             const DataShard &shard, const Batch &batch) const {
  int64_t sequence = batch.sequence * shard.columns.count;
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t inStep = shard.rows.index * batch.rows + row;
    auto [data, number] =
        sourceOfRow(step * shard.rows.count * batch.rows + inStep);
    int64_t first = order == WindowOrder::Random
                        ? data->drawnWindow(seed, step, inStep, sequence)
                        : data->shuffledWindow(seed, number, sequence);
    data->readWindow(first + shard.columns.index * batch.sequence,
                     batch.sequence, batch.tokens + row * batch.sequence,
                     batch.targets + row * batch.sequence);
    if (batch.starts)
      data->readStarts(first, sequence, batch.starts + row * sequence);
  }
}

void Dataset::readStarts(int64_t, int64_t count, int32_t *starts) const {
  std::fill_n(starts, count, 0);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

/// Places of the global batch.
static int64_t placesOf(const DataShard &shard, const Batch &batch) {
  return shard.count() * batch.rows * batch.sequence;
}

int64_t Dataset::heldOutRounds(const DataShard &shard,
                               const Batch &batch) const {
  int64_t perRound = placesOf(shard, batch);
  return heldOutTokens() < 2 ? 0
                             : (heldOutTokens() - 1 + perRound - 1) / perRound;
}

int64_t Dataset::heldOutPredictions(int64_t round, const DataShard &shard,
                                    const Batch &batch) const {
  int64_t most = std::max<int64_t>(heldOutTokens() - 1, 0);
  int64_t perRound = placesOf(shard, batch);
  int64_t begin = std::min(round * perRound, most);
  int64_t end = std::min(begin + perRound, most);
  // What is predicted is the token after each place.
  return countLabels(numTrain + 1 + begin, numTrain + 1 + end);
}

/// Where documents begin in the row of window `window`, whose end may have no
/// tokens.
void Dataset::startHeldOutRow(int64_t window, int64_t sequence,
                              int32_t *starts) const {
  int64_t first = window * sequence;
  int64_t inside = std::clamp<int64_t>(heldOutTokens() - first, 0, sequence);
  if (inside > 0)
    readStarts(numTrain + first, inside, starts);
  std::fill(starts + inside, starts + sequence, 0);
}

int64_t Dataset::fillHeldOut(int64_t round, const DataShard &shard,
                             const Batch &batch) const {
  int64_t predictions = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t window =
        (round * shard.rows.count + shard.rows.index) * batch.rows + row;
    int64_t piece = window * shard.columns.count + shard.columns.index;
    int32_t *tokens = batch.tokens + row * batch.sequence;
    int32_t *targets = batch.targets + row * batch.sequence;
    // The token at `first + i` is read, the one after it is predicted.
    int64_t first = piece * batch.sequence;
    int64_t inside =
        std::clamp<int64_t>(heldOutTokens() - 1 - first, 0, batch.sequence);
    if (inside > 0)
      readWindow(numTrain + first, inside, tokens, targets);
    if (batch.starts)
      startHeldOutRow(window, batch.sequence * shard.columns.count,
                      batch.starts + row * batch.sequence * shard.columns.count);
    std::fill(tokens + inside, tokens + batch.sequence, 0);
    std::fill(targets + inside, targets + batch.sequence, kIgnoredTarget);
    predictions +=
        batch.sequence -
        std::count(targets, targets + batch.sequence, kIgnoredTarget);
  }
  return predictions;
}
