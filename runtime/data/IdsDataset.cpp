//===- IdsDataset.cpp - Token ids -----------------------------------------===//
#include "fsdp/Runtime/Dataset.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cstring>
#include <numeric>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

/// Calls `act` with the ids as an array of their type. A mapped file begins
/// with a page, so its ids are aligned.
template <typename F>
static auto withIds(std::string_view bytes, int64_t width, F &&act) {
  const void *data = bytes.data();
  return width == 2 ? act(static_cast<const uint16_t *>(data))
                    : act(static_cast<const uint32_t *>(data));
}

/// Position of the first id that is not below `vocabulary`, or `count`. An i32
/// below zero is beyond all of them as u32.
template <typename T>
static int64_t firstOutside(const T *ids, int64_t count, int64_t vocabulary) {
  constexpr int64_t kBlock = 1 << 14; // whose maximum takes vector code
  for (int64_t begin = 0; begin < count; begin += kBlock) {
    int64_t end = std::min(begin + kBlock, count);
    T largest = 0;
    for (int64_t i = begin; i < end; ++i)
      largest = std::max(largest, ids[i]);
    if (static_cast<int64_t>(largest) < vocabulary)
      continue;
    return std::find_if(ids + begin, ids + end,
                        [&](T id) { return int64_t{id} >= vocabulary; }) -
           ids;
  }
  return count;
}

/// What begins as a file of a well-known format is no bare ids, even if all of
/// its numbers are in the vocabulary. Empty: nothing that is known.
static std::string formatOf(std::string_view bytes) {
  if (bytes.size() < 10)
    return "";
  auto begins = [&](std::string_view magic) {
    return bytes.substr(0, magic.size()) == magic;
  };
  if (begins("\x93NUMPY"))
    return "a file of NumPy; ids.tofile() writes bare ids";
  constexpr size_t kMostZipEnd = 22 + 65535; // its end record and comment
  if (begins("PK\x03\x04") &&
      bytes.substr(bytes.size() - std::min(bytes.size(), kMostZipEnd))
              .find("PK\x05\x06") != std::string_view::npos)
    return "a zip archive; unpack it, or write bare ids with ids.tofile()";
  uint64_t header = 0;
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header >= 2 && header <= bytes.size() - 8 && bytes.substr(8, 2) == "{\"")
    return "a safetensors file; ids.tofile() writes bare ids";
  int32_t number = 0;
  std::memcpy(&number, bytes.data(), sizeof number);
  constexpr int32_t kLlmcGpt2 = 20240520, kLlmcLlama3 = 20240801;
  if (number == kLlmcGpt2 || number == kLlmcLlama3)
    return "a file of llm.c, whose first 1024 bytes are no ids; tail -c +1025 "
           "takes them off";
  return "";
}

static const std::string &pathOfIds(const std::string &path) {
  if (path.empty())
    throw Error("training.dataset_path is not set: which file of token ids?");
  return path;
}

/// "-1" where the type has a sign.
static std::string idText(std::string_view bytes, const std::string &type,
                          int64_t width, int64_t at) {
  uint32_t id = withIds(bytes, width,
                        [&](const auto *ids) -> uint32_t { return ids[at]; });
  return type == "i32" ? std::to_string(static_cast<int32_t>(id))
                       : std::to_string(id);
}

static void checkIds(std::string_view bytes, const IdsFile &source,
                     int64_t width, int64_t count, int64_t vocabulary) {
  int64_t at = withIds(bytes, width, [&](const auto *ids) {
    return firstOutside(ids, count, vocabulary);
  });
  if (at < count)
    throw Error("the ids '" + source.path + "' are not the model's: id " +
                idText(bytes, source.type, width, at) + " at position " +
                std::to_string(at) + " (byte " + std::to_string(at * width) +
                ") is not in its vocabulary, 0 to " +
                std::to_string(vocabulary - 1) +
                "; is training.ids_dtype = " + source.type +
                " the type of the file, and its tokenizer the model's?");
}

//===----------------------------------------------------------------------===//
// IdsDataset
//===----------------------------------------------------------------------===//

IdsDataset::IdsDataset(const IdsFile &source, double fraction, int64_t sequence,
                       int64_t vocabulary)
    : ids(pathOfIds(source.path), "the ids"),
      width(source.type == "u16" ? 2 : 4) {
  std::string_view bytes = ids.bytes();
  std::string name = "the ids '" + source.path + "'";
  if (std::string format = formatOf(bytes); !format.empty())
    throw Error(name + " are " + format);
  if (bytes.size() % static_cast<size_t>(width) != 0)
    throw Error(name + " have " + std::to_string(bytes.size()) +
                " bytes, which are no whole number of ids of training."
                "ids_dtype = " +
                source.type);
  int64_t count = static_cast<int64_t>(bytes.size()) / width;
  split(count, fraction);
  if (trainTokens() < sequence + 1)
    throw Error(name + " are too few: there are " + std::to_string(count) +
                ", " + std::to_string(trainTokens()) +
                " of them for training, and a window needs " +
                std::to_string(sequence + 1) +
                "; take a longer file, or lower validation.fraction");
  constexpr int64_t kMostIds = int64_t{1} << 31;
  checkIds(bytes, source, width, count, vocabulary > 0 ? vocabulary : kMostIds);
  if (source.maskPath.empty())
    return;
  mask = std::make_unique<DataFile>(source.maskPath, "the mask");
  checkMask(source, count);
}

/// The first id of a file is predicted by nothing.
void IdsDataset::checkMask(const IdsFile &source, int64_t count) const {
  std::string_view bytes = mask->bytes();
  std::string name = "the mask '" + source.maskPath + "'";
  if (static_cast<int64_t>(bytes.size()) != count)
    throw Error(name + " has " + std::to_string(bytes.size()) +
                " bytes, and '" + source.path + "' " + std::to_string(count) +
                " ids; it needs a byte for each");
  const auto *flags = reinterpret_cast<const unsigned char *>(bytes.data());
  int64_t other = firstOutside(flags, count, 2);
  if (other < count)
    throw Error(name + " has " + std::to_string(flags[other]) +
                " at position " + std::to_string(other) +
                "; a byte of it is 1 (a label) or 0 (none)");
  if (countLabels(1, trainTokens()) == 0)
    throw Error(name + " makes none of the " + std::to_string(trainTokens()) +
                " ids to train on a label; a byte of 1 makes one");
}

std::string_view IdsDataset::maskBytes() const {
  return mask ? mask->bytes() : std::string_view();
}

int64_t IdsDataset::countLabels(int64_t begin, int64_t end) const {
  if (!mask)
    return end - begin;
  const char *bytes = mask->bytes().data();
  return std::accumulate(bytes + begin, bytes + end, int64_t{0});
}

void IdsDataset::readWindow(int64_t first, int64_t count, int32_t *tokens,
                            int32_t *targets) const {
  withIds(ids.bytes(), width, [&](const auto *all) {
    const auto *window = all + first;
    for (int64_t i = 0; i < count; ++i) {
      tokens[i] = static_cast<int32_t>(window[i]);
      targets[i] = static_cast<int32_t>(window[i + 1]);
    }
  });
  std::string_view labels = maskBytes();
  if (labels.empty())
    return;
  const char *isLabel = labels.data() + first + 1;
  for (int64_t i = 0; i < count; ++i)
    if (!isLabel[i])
      targets[i] = kIgnoredTarget;
}
