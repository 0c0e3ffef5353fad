//===- IdsDataset.cpp - Token ids -----------------------------------------===//
#include "fsdp/Data/Dataset.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Ids
//===----------------------------------------------------------------------===//

/// Calls `act` with the ids as an array of their type.
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

/// Whether a file that begins so is one of text: lines of UTF-8. In ids some
/// byte is soon a control character or in the wrong place.
static bool isText(std::string_view start) {
  constexpr size_t kLeast = 32;
  if (start.size() < kLeast)
    return false;
  // The last character may be cut.
  while (!start.empty() && (start.back() & 0xc0) == 0x80)
    start.remove_suffix(1);
  if (!start.empty() && (start.back() & 0x80) != 0)
    start.remove_suffix(1);
  while (!start.empty()) {
    size_t end = std::min(start.find_first_of("\t\n\f\r"), start.size());
    if (!isPlainLine(start.substr(0, end)))
      return false;
    start.remove_prefix(std::min(end + 1, start.size()));
  }
  return true;
}

/// Whether a header of gzip is there, of RFC 1952: deflate, flags of which
/// three are 0, how hard it was compressed, and a known system.
static bool isGzip(std::string_view start) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(start[i]); };
  return start.substr(0, 3) == "\x1f\x8b\x08" && byte(3) < 0x20 &&
         (byte(8) == 0 || byte(8) == 2 || byte(8) == 4) &&
         (byte(9) <= 13 || byte(9) == 255);
}

/// What begins as a file of a well-known format is no bare ids, even if all of
/// its numbers are in the vocabulary. Empty: nothing that is known.
static std::string formatOf(const DataFile &file) {
  constexpr int64_t kStart = 1 << 16;
  std::string first = file.read(0, std::min(file.size(), kStart));
  std::string_view start = first;
  if (start.size() < 10)
    return "";
  auto begins = [&](std::string_view magic) {
    return start.substr(0, magic.size()) == magic;
  };
  if (begins("\x93NUMPY"))
    return "a file of NumPy; ids.tofile() writes bare ids";
  constexpr int64_t kMostZipEnd = 22 + 65535; // its end record and comment
  int64_t end = std::min(file.size(), kMostZipEnd);
  if (begins("PK\x03\x04") &&
      file.read(file.size() - end, end).find("PK\x05\x06") != std::string::npos)
    return "a zip archive; unpack it, or write bare ids with ids.tofile()";
  if (isGzip(start))
    return "compressed by gzip; gunzip unpacks them";
  if (begins("\x28\xb5\x2f\xfd"))
    return "compressed by zstd; unzstd unpacks them";
  uint64_t header = 0;
  std::memcpy(&header, start.data(), sizeof header);
  if (header >= 2 && header <= static_cast<uint64_t>(file.size()) - 8 &&
      start.substr(8, 2) == "{\"")
    return "a safetensors file; ids.tofile() writes bare ids";
  int32_t number = 0;
  std::memcpy(&number, start.data(), sizeof number);
  constexpr int32_t kLlmcGpt2 = 20240520, kLlmcLlama3 = 20240801;
  if (number == kLlmcGpt2 || number == kLlmcLlama3)
    return "a file of llm.c, whose first 1024 bytes are no ids; set "
           "training.dataset = llmc";
  if (isText(start))
    return "a text; tokenize it (docs/data.md shows how), or set "
           "training.dataset = bytes";
  return "";
}

static const std::string &pathOfIds(const std::string &path) {
  if (path.empty())
    throw Error("training.dataset_path is not set; name the file of token ids");
  return path;
}

namespace {
/// Looks at all ids, as numbers of `source.type`.
class IdsCheck {
public:
  IdsCheck(const IdsFile &source, int64_t width, int64_t vocabulary)
      : source(source), width(width),
        vocabulary(vocabulary > 0 ? vocabulary : kMostIds),
        mostInUpperHalf(vocabulary > 0 ? (vocabulary - 1) >> 8 * width : 0) {}

  /// Throws if one of them is not in the vocabulary, or if all are halves of
  /// wider ones.
  void look(const DataFile &file);

private:
  static constexpr int64_t kMostIds = int64_t{1} << 31;

  template <typename T> void lookAt(const T *ids, int64_t count, int64_t first);
  [[noreturn]] void failOutside(uint32_t id, int64_t at) const;
  [[noreturn]] void failHalves() const;

  const IdsFile &source;
  int64_t width, vocabulary;
  /// Of an id of twice the width.
  int64_t mostInUpperHalf;
  /// Of the ids so far: whether those at odd positions are all upper halves,
  /// and one of the others is none.
  bool areUpperHalves = true, isLowerHalf = false;
};
} // namespace

void IdsCheck::failOutside(uint32_t id, int64_t at) const {
  // "-1" where the type has a sign.
  std::string text = source.type == "i32"
                         ? std::to_string(static_cast<int32_t>(id))
                         : std::to_string(id);
  throw Error("the ids '" + source.path + "' are not the model's: id " + text +
              " at position " + std::to_string(at) + " (byte " +
              std::to_string(at * width) + ") is not in its vocabulary, 0 to " +
              std::to_string(vocabulary - 1) +
              "; is training.ids_dtype = " + source.type +
              " the type of the file, and its tokenizer the model's?");
}

void IdsCheck::failHalves() const {
  std::string bits = std::to_string(8 * width) + " bits";
  std::string most =
      mostInUpperHalf == 0 ? "0" : "at most " + std::to_string(mostInUpperHalf);
  throw Error("the ids '" + source.path + "' are wider than the " + bits +
              " of training.ids_dtype = " + source.type +
              ": every second number of " + bits + " is " + most + "; " +
              (width == 2 ? "set training.ids_dtype = \"u32\""
                          : "write them in 32 bits, as "
                            "ids.astype(\"<u4\").tofile() does"));
}

template <typename T>
void IdsCheck::lookAt(const T *ids, int64_t count, int64_t first) {
  int64_t outside = firstOutside(ids, count, vocabulary);
  if (outside < count)
    failOutside(ids[outside], first + outside);
  // A piece begins at an even position.
  for (int64_t i = 0; areUpperHalves && i < count; ++i)
    if (i % 2 != 0)
      areUpperHalves = int64_t{ids[i]} <= mostInUpperHalf;
    else
      isLowerHalf |= int64_t{ids[i]} > mostInUpperHalf;
}

void IdsCheck::look(const DataFile &file) {
  file.readPieces(0, file.size(), [&](std::string_view piece, int64_t first) {
    withIds(piece, width, [&](const auto *ids) {
      lookAt(ids, static_cast<int64_t>(piece.size()) / width, first / width);
    });
  });
  // Fewer may be so by chance.
  constexpr int64_t kFewest = 32;
  if (areUpperHalves && isLowerHalf && file.size() >= 2 * width * kFewest)
    failHalves();
}

//===----------------------------------------------------------------------===//
// IdsDataset
//===----------------------------------------------------------------------===//

IdsDataset::IdsDataset(const IdsFile &source, double fraction, int64_t sequence,
                       int64_t vocabulary)
    : ids(pathOfIds(source.path), "the ids"),
      width(source.type == "u16" ? 2 : 4) {
  std::string name = "the ids '" + source.path + "'";
  if (std::string format = formatOf(ids); !format.empty())
    throw Error(name + " are " + format);
  if (ids.size() % width != 0)
    throw Error(name + " have " + std::to_string(ids.size()) +
                " bytes, which are no whole number of ids of training."
                "ids_dtype = " +
                source.type);
  int64_t count = ids.size() / width;
  split(count, fraction);
  if (trainTokens() < sequence + 1)
    throw Error(name + " are too few: there are " + std::to_string(count) +
                ", " + std::to_string(trainTokens()) +
                " of them for training, and a window needs " +
                std::to_string(sequence + 1) +
                "; take a longer file, or lower validation.fraction");
  IdsCheck(source, width, vocabulary).look(ids);
  if (source.maskPath.empty())
    return;
  mask = std::make_unique<DataFile>(source.maskPath, "the mask");
  checkMask(source, count);
}

/// The first id of a file is predicted by nothing.
void IdsDataset::checkMask(const IdsFile &source, int64_t count) const {
  std::string name = "the mask '" + source.maskPath + "'";
  if (mask->size() != count)
    throw Error(name + " has " + std::to_string(mask->size()) +
                " bytes, and '" + source.path + "' " + std::to_string(count) +
                " ids; it needs a byte for each");
  mask->readPieces(0, count, [&](std::string_view piece, int64_t first) {
    const auto *flags = reinterpret_cast<const unsigned char *>(piece.data());
    auto size = static_cast<int64_t>(piece.size());
    int64_t other = firstOutside(flags, size, 2);
    if (other < size)
      throw Error(name + " has " + std::to_string(flags[other]) +
                  " at position " + std::to_string(first + other) +
                  "; a byte of it is 1 (a label) or 0 (none)");
  });
  if (countLabels(1, trainTokens()) == 0)
    throw Error(name + " marks none of the " + std::to_string(trainTokens()) +
                " ids to train on as a label; a byte of 1 does");
}

DataIdentity IdsDataset::identity() const {
  DataIdentity identity{ids.size(), trainTokens() * width, ids.checksum(),
                        std::nullopt};
  if (mask)
    identity.maskChecksum = mask->checksum();
  return identity;
}

int64_t IdsDataset::countLabels(int64_t begin, int64_t end) const {
  if (!mask)
    return end - begin;
  // As readWindow() takes them, whatever a byte has become since it was 1.
  int64_t labels = end - begin;
  mask->readPieces(begin, labels, [&](std::string_view piece, int64_t) {
    labels -= std::count(piece.begin(), piece.end(), '\0');
  });
  return labels;
}

void IdsDataset::readWindow(int64_t first, int64_t count, int32_t *tokens,
                            int32_t *targets) const {
  std::string bytes = ids.read(first * width, (count + 1) * width);
  withIds(bytes, width, [&](const auto *window) {
    for (int64_t i = 0; i < count; ++i) {
      tokens[i] = static_cast<int32_t>(window[i]);
      targets[i] = static_cast<int32_t>(window[i + 1]);
    }
  });
  if (!mask)
    return;
  std::string isLabel = mask->read(first + 1, count);
  for (int64_t i = 0; i < count; ++i)
    if (!isLabel[static_cast<size_t>(i)])
      targets[i] = kIgnoredTarget;
}
