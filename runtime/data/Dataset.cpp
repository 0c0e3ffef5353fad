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
// Batches
//===----------------------------------------------------------------------===//

/// Where the piece that a rank has of row `row` of its batch goes.
static RowPiece pieceOf(const DataShard &shard, const Batch &batch,
                        int64_t row) {
  int64_t sequence = batch.sequence * shard.columns.count;
  return {sequence,
          shard.columns.index * batch.sequence,
          batch.sequence,
          batch.tokens + row * batch.sequence,
          batch.targets + row * batch.sequence,
          batch.starts ? batch.starts + row * sequence : nullptr};
}

void fsdp::rt::padRow(const RowPiece &piece, int64_t begin) {
  int64_t first = std::clamp<int64_t>(begin - piece.begin, 0, piece.count);
  std::fill(piece.tokens + first, piece.tokens + piece.count, 0);
  std::fill(piece.targets + first, piece.targets + piece.count, kIgnoredTarget);
  if (piece.starts)
    std::fill(piece.starts + begin, piece.starts + piece.sequence,
              static_cast<int32_t>(begin));
}

//===----------------------------------------------------------------------===//
// Training
//===----------------------------------------------------------------------===//

void TokenStream::split(int64_t tokens, double fraction) {
  splitAt(tokens,
          tokens - std::llround(fraction * static_cast<double>(tokens)));
}

void TokenStream::splitAt(int64_t tokens, int64_t train) {
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

/// Where the window of a row begins. A window and the token after it fit at
/// offsets 0 .. numTrain - sequence - 1.
int64_t TokenStream::drawnWindow(const TrainingRow &row,
                                 int64_t sequence) const {
  return below(randomWord(row.seed, "training windows", row.step, row.inStep),
               numTrain - sequence);
}

ShuffledRow fsdp::rt::shuffledRow(uint64_t seed, int64_t number,
                                  int64_t count) {
  int64_t epoch = number / count;
  Permutation order(count, randomWord(seed, "order of windows", epoch));
  return {order(number % count), epoch};
}

TokenStream::ShuffledWindow
TokenStream::shuffledWindow(const TrainingRow &row, int64_t sequence) const {
  int64_t windows = (numTrain - 1) / sequence;
  auto [window, epoch] = shuffledRow(row.seed, row.number, windows);
  // What is left over is another piece in each epoch.
  int64_t rest = numTrain - windows * sequence; // at least 1
  int64_t start = below(randomWord(row.seed, "epoch start", epoch), rest);
  return {start + window * sequence, epoch};
}

void TokenStream::readTrainingRow(const TrainingRow &row,
                                  const RowPiece &piece) const {
  int64_t first = row.order == WindowOrder::Random
                      ? drawnWindow(row, piece.sequence)
                      : shuffledWindow(row, piece.sequence).first;
  readWindow(first + piece.begin, piece.count, piece.tokens, piece.targets);
  if (piece.starts)
    readStarts(first, piece.sequence, piece.starts);
}

void Dataset::sampleTraining(uint64_t seed, int64_t step,
                             const DataShard &shard, const Batch &batch) const {
  int64_t rows = shard.rows.count * batch.rows; // of a step
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t inStep = shard.rows.index * batch.rows + row;
    auto [stream, number] = sourceOfRow(step * rows + inStep);
    stream->readTrainingRow({order, seed, step, inStep, number},
                            pieceOf(shard, batch, row));
  }
}

void TokenStream::readStarts(int64_t, int64_t count, int32_t *starts) const {
  std::fill_n(starts, count, 0);
}

//===----------------------------------------------------------------------===//
// Evaluation
//===----------------------------------------------------------------------===//

bool Dataset::hasHeldOut() const {
  std::vector<const TokenStream *> all = streams();
  return std::any_of(all.begin(), all.end(), [](const TokenStream *stream) {
    return stream->heldOutTokens() > 1;
  });
}

int64_t TokenStream::heldOutLabels() const {
  return heldOutTokens() < 2 ? 0 : countLabels(numTrain + 1, numTokens);
}

int64_t TokenStream::heldOutRows(int64_t sequence) const {
  return (std::max<int64_t>(heldOutTokens() - 1, 0) + sequence - 1) / sequence;
}

int64_t TokenStream::labelsOfHeldOutRows(int64_t first, int64_t end,
                                         int64_t sequence) const {
  // What is predicted is the token after each place.
  return countLabels(numTrain + 1 + first * sequence,
                     std::min(numTrain + 1 + end * sequence, numTokens));
}

void TokenStream::readHeldOutRow(int64_t number, const RowPiece &piece) const {
  int64_t first = numTrain + number * piece.sequence;
  // The last token is only predicted.
  int64_t inRow = std::min(numTokens - 1 - first, piece.sequence);
  int64_t inPiece = std::clamp<int64_t>(inRow - piece.begin, 0, piece.count);
  if (inPiece > 0)
    readWindow(first + piece.begin, inPiece, piece.tokens, piece.targets);
  if (piece.starts)
    readStarts(first, inRow, piece.starts);
  padRow(piece, inRow);
}

int64_t TokenStream::heldOutRounds(const DataShard &shard,
                                   const Batch &batch) const {
  int64_t perRound = shard.rows.count * batch.rows;
  return (heldOutRows(batch.sequence * shard.columns.count) + perRound - 1) /
         perRound;
}

int64_t TokenStream::heldOutPredictions(int64_t round, const DataShard &shard,
                                        const Batch &batch) const {
  int64_t sequence = batch.sequence * shard.columns.count;
  int64_t perRound = shard.rows.count * batch.rows,
          rows = heldOutRows(sequence);
  int64_t first = std::min(round * perRound, rows);
  int64_t end = std::min(first + perRound, rows);
  return first < end ? labelsOfHeldOutRows(first, end, sequence) : 0;
}

int64_t TokenStream::fillHeldOut(int64_t round, const DataShard &shard,
                                 const Batch &batch) const {
  int64_t rows = heldOutRows(batch.sequence * shard.columns.count);
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t number =
        (round * shard.rows.count + shard.rows.index) * batch.rows + row;
    RowPiece piece = pieceOf(shard, batch, row);
    if (number < rows)
      readHeldOutRow(number, piece);
    else
      padRow(piece, 0);
  }
  int64_t places = batch.rows * batch.sequence;
  return places -
         std::count(batch.targets, batch.targets + places, kIgnoredTarget);
}
