//===- ByteDataset.cpp - Text as bytes ------------------------------------===//
#include "fsdp/Runtime/Dataset.h"
#include "fsdp/Runtime/Philox.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

[[noreturn]] static void failToRead(const std::string &path,
                                    const std::string &why) {
  throw Error("cannot read the text '" + path + "': " + why);
}

/// Maps a whole file for reading; null if it is empty.
static const char *mapFile(const std::string &path, size_t &size) {
  // Non-blocking, or a pipe would be waited for; no matter to a regular file.
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0)
    failToRead(path, std::strerror(errno));
  struct stat status = {};
  bool isKnown = fstat(file, &status) == 0;
  size = static_cast<size_t>(status.st_size);
  void *data = MAP_FAILED;
  if (isKnown && S_ISREG(status.st_mode) && size != 0)
    data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  int error = errno;
  close(file);
  if (isKnown && S_ISDIR(status.st_mode))
    failToRead(path, std::strerror(EISDIR));
  if (isKnown && !S_ISREG(status.st_mode))
    failToRead(path, "it is a pipe or a device, and training reads at any "
                     "place of a regular file");
  if (!isKnown || (size != 0 && data == MAP_FAILED))
    failToRead(path, std::strerror(error));
  return size == 0 ? nullptr : static_cast<const char *>(data);
}

ByteDataset::ByteDataset(const std::string &path, double fraction,
                         int64_t sequence) {
  if (path.empty())
    throw Error("training.dataset_path is not set: which text?");
  const char *mapped = mapFile(path, size);
  data = {mapped, [size = size](const char *bytes) {
            if (bytes)
              munmap(const_cast<char *>(bytes), size);
          }};
  auto heldOut =
      static_cast<size_t>(std::llround(fraction * static_cast<double>(size)));
  trainSize = size - heldOut;
  if (trainSize < static_cast<size_t>(sequence) + 1)
    throw Error("the text '" + path + "' is too short: it has " +
                std::to_string(size) + " bytes, " + std::to_string(trainSize) +
                " of them for training, and a window needs " +
                std::to_string(sequence + 1));
}

/// A byte is a number from 0 to 255, whatever the sign of char.
static int32_t tokenOf(char byte) { return static_cast<unsigned char>(byte); }

void ByteDataset::sampleTraining(uint64_t seed, int64_t step,
                                 const DataShard &shard,
                                 const Batch &batch) const {
  uint64_t key = philoxKey(seed, "training windows");
  // A window and the byte after it fit at offsets 0 .. trainSize - sequence
  // - 1.
  int64_t sequence = batch.sequence * shard.columns.count;
  uint64_t offsets = trainSize - static_cast<size_t>(sequence);
  for (int64_t row = 0; row < batch.rows; ++row) {
    auto sequenceNumber =
        static_cast<uint64_t>(shard.rows.index * batch.rows + row);
    uint64_t random = firstWord64(
        philox({static_cast<uint32_t>(step), static_cast<uint32_t>(step >> 32),
                static_cast<uint32_t>(sequenceNumber),
                static_cast<uint32_t>(sequenceNumber >> 32)},
               key));
    // The high word of a 64 x 64 bit product maps to a range without a
    // division and without a bias that could be seen.
    auto offset = static_cast<size_t>(
        static_cast<unsigned __int128>(random) * offsets >> 64);
    const char *window =
        data.get() + offset + shard.columns.index * batch.sequence;
    for (int64_t i = 0; i < batch.sequence; ++i) {
      batch.tokens[row * batch.sequence + i] = tokenOf(window[i]);
      batch.targets[row * batch.sequence + i] = tokenOf(window[i + 1]);
    }
  }
}

/// Places of the global batch.
static int64_t placesOf(const DataShard &shard, const Batch &batch) {
  return shard.count() * batch.rows * batch.sequence;
}

int64_t ByteDataset::heldOutRounds(const DataShard &shard,
                                   const Batch &batch) const {
  auto bytes = static_cast<int64_t>(size - trainSize);
  int64_t perRound = placesOf(shard, batch);
  return bytes < 2 ? 0 : (bytes - 1 + perRound - 1) / perRound;
}

int64_t ByteDataset::heldOutPredictions(int64_t round, const DataShard &shard,
                                        const Batch &batch) const {
  auto predictions = static_cast<int64_t>(size - trainSize) - 1;
  int64_t perRound = placesOf(shard, batch);
  return std::clamp<int64_t>(predictions - round * perRound, 0, perRound);
}

int64_t ByteDataset::fillHeldOut(int64_t round, const DataShard &shard,
                                 const Batch &batch) const {
  std::string_view text = heldOutText();
  int64_t predictions = 0;
  for (int64_t row = 0; row < batch.rows; ++row) {
    int64_t window =
        (round * shard.rows.count + shard.rows.index) * batch.rows + row;
    int64_t piece = window * shard.columns.count + shard.columns.index;
    for (int64_t i = 0; i < batch.sequence; ++i) {
      // The byte at `at` is read, the one after it is predicted.
      auto at = static_cast<size_t>(piece * batch.sequence + i);
      bool inside = at + 1 < text.size();
      int64_t place = row * batch.sequence + i;
      batch.tokens[place] = inside ? tokenOf(text[at]) : 0;
      batch.targets[place] = inside ? tokenOf(text[at + 1]) : kIgnoredTarget;
      predictions += inside;
    }
  }
  return predictions;
}
