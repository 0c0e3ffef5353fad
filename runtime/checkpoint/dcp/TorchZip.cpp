//===- TorchZip.cpp - The archives of torch.save --------------------------===//
#include "TorchZip.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/store/BlockChecksums.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <set>
#include <zlib.h>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

constexpr uint32_t kLocal = 0x04034b50, kDescriptor = 0x08074b50,
                   kCentral = 0x02014b50, kEnd = 0x06054b50,
                   kEnd64 = 0x06064b50, kLocator64 = 0x07064b50;
constexpr size_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22,
                 kEnd64Size = 56, kLocator64Size = 20;
/// What a field of 16 or 32 bits says if the number stands elsewhere.
constexpr uint64_t kIn64Short = 0xffff, kIn64 = 0xffffffff;
constexpr uint16_t kZip64Extra = 1;
constexpr uint16_t kEncrypted = 1, kDescriptorFollows = 8, kUtf8 = 1 << 11;

std::string shown(std::string_view name) {
  return "'" + printableLine(name.substr(0, 80)) + "'";
}

} // namespace

namespace fsdp::checkpoint {

/// Reads what stands at the end of an archive, which says where entries are.
class ZipDirectoryReader {
public:
  ZipDirectoryReader(TorchZip &zip, std::string_view bytes)
      : zip(zip), bytes(bytes) {}

  void read();

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(zip.origin + ": damaged archive of torch.save: " + what);
  }
  uint64_t number(uint64_t at, size_t size) const {
    uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
  }
  bool fits(uint64_t at, uint64_t size, uint64_t end) const {
    return at <= end && size <= end - at;
  }

  uint64_t findEnd() const;
  void readEnd();
  uint64_t readEntry(uint64_t at);
  void readZip64(std::string_view name, uint64_t extra, uint64_t extraSize,
                 std::vector<uint64_t *> fields) const;
  std::string_view locate(std::string_view name, uint64_t local, uint64_t size);
  void checkPlaces();
  void findRoot();

  TorchZip &zip;
  std::string_view bytes;
  uint64_t directory = 0, directoryEnd = 0, count = 0;
  struct Span {
    uint64_t begin, end;
    std::string_view name;
  };
  std::vector<Span> spans; // local headers with their data
};

} // namespace fsdp::checkpoint

uint64_t ZipDirectoryReader::findEnd() const {
  if (bytes.size() < kEndSize)
    fail("its " + std::to_string(bytes.size()) +
         " bytes are fewer than an archive has");
  // A comment of up to 65,535 bytes may follow.
  uint64_t first = bytes.size() - kEndSize;
  for (uint64_t comment = 0; comment <= std::min<uint64_t>(first, 0xffff);
       ++comment) {
    uint64_t at = first - comment;
    if (number(at, 4) == kEnd && number(at + 20, 2) == comment)
      return at;
  }
  fail("it does not end like a zip archive; it is truncated or not one");
}

void ZipDirectoryReader::readEnd() {
  uint64_t end = findEnd();
  uint64_t disks = number(end + 4, 4);
  count = number(end + 10, 2);
  uint64_t size = number(end + 12, 4);
  directory = number(end + 16, 4);
  directoryEnd = end;
  if (count == kIn64Short || size == kIn64 || directory == kIn64) {
    if (end < kLocator64Size + kEnd64Size ||
        number(end - kLocator64Size, 4) != kLocator64)
      fail("the place of its directory is missing");
    uint64_t end64 = number(end - kLocator64Size + 8, 8);
    if (!fits(end64, kEnd64Size, end - kLocator64Size) ||
        number(end64, 4) != kEnd64)
      fail("the place of its directory lies outside");
    disks = number(end64 + 16, 8);
    count = number(end64 + 32, 8);
    size = number(end64 + 40, 8);
    directory = number(end64 + 48, 8);
    directoryEnd = end64;
  }
  if (disks != 0)
    fail("it has parts in other files");
  if (!fits(directory, size, directoryEnd))
    fail("its directory lies outside");
  directoryEnd = directory + size;
  if (count > size / kCentralSize)
    fail("its directory is too short for " + std::to_string(count) +
         " entries");
}

/// The fields that were too large, in their order, after tag 1.
void ZipDirectoryReader::readZip64(std::string_view name, uint64_t extra,
                                   uint64_t extraSize,
                                   std::vector<uint64_t *> fields) const {
  uint64_t end = extra + extraSize;
  while (fits(extra, 4, end)) {
    uint64_t tag = number(extra, 2), size = number(extra + 2, 2);
    extra += 4;
    if (!fits(extra, size, end))
      break;
    if (tag == kZip64Extra && size >= fields.size() * 8) {
      for (size_t i = 0; i < fields.size(); ++i)
        *fields[i] = number(extra + i * 8, 8);
      return;
    }
    extra += size;
  }
  fail("the size of " + shown(name) + " is missing");
}

/// The data of an entry, which its own header stands before.
std::string_view ZipDirectoryReader::locate(std::string_view name,
                                            uint64_t local, uint64_t size) {
  if (!fits(local, kLocalSize, directory) || number(local, 4) != kLocal)
    fail("there is no header where " + shown(name) + " should be");
  uint64_t nameSize = number(local + 26, 2), extraSize = number(local + 28, 2);
  uint64_t begin = local + kLocalSize + nameSize + extraSize;
  if (!fits(begin, size, directory))
    fail(shown(name) + " lies outside");
  if (bytes.substr(local + kLocalSize, nameSize) != name)
    fail("the header of " + shown(name) + " is that of another entry");
  spans.push_back({local, begin + size, name});
  return bytes.substr(begin, size);
}

uint64_t ZipDirectoryReader::readEntry(uint64_t at) {
  if (!fits(at, kCentralSize, directoryEnd) || number(at, 4) != kCentral)
    fail("its directory is damaged");
  uint64_t flags = number(at + 8, 2), method = number(at + 10, 2);
  auto crc = static_cast<uint32_t>(number(at + 16, 4));
  uint64_t packed = number(at + 20, 4), size = number(at + 24, 4);
  uint64_t nameSize = number(at + 28, 2), extraSize = number(at + 30, 2),
           commentSize = number(at + 32, 2), local = number(at + 42, 4);
  uint64_t next = at + kCentralSize + nameSize + extraSize + commentSize;
  if (next > directoryEnd)
    fail("its directory is damaged");
  std::string_view name = bytes.substr(at + kCentralSize, nameSize);
  std::vector<uint64_t *> large;
  for (uint64_t *field : {&size, &packed, &local})
    if (*field == kIn64)
      large.push_back(field);
  if (!large.empty())
    readZip64(name, at + kCentralSize + nameSize, extraSize, large);
  if (flags & kEncrypted)
    fail(shown(name) + " is encrypted");
  if (method != 0 || packed != size)
    fail(shown(name) + " is compressed; torch.save stores entries as they are");
  zip.all.push_back({name, locate(name, local, size), crc});
  return next;
}

void ZipDirectoryReader::checkPlaces() {
  std::sort(spans.begin(), spans.end(),
            [](const Span &a, const Span &b) { return a.begin < b.begin; });
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].begin < spans[i - 1].end)
      fail(shown(spans[i].name) + " overlaps " + shown(spans[i - 1].name));
}

void ZipDirectoryReader::findRoot() {
  std::set<std::string_view> seen;
  for (const ZipEntry &entry : zip.all) {
    std::string_view root = entry.name.substr(0, entry.name.find('/') + 1);
    if (root.empty() || (!zip.root.empty() && root != zip.root))
      fail(shown(entry.name) + " does not lie in the folder of the others");
    if (!seen.insert(entry.name).second)
      fail(shown(entry.name) + " is there twice");
    zip.root = root;
  }
}

void ZipDirectoryReader::read() {
  readEnd();
  uint64_t at = directory;
  for (uint64_t i = 0; i < count; ++i)
    at = readEntry(at);
  checkPlaces();
  findRoot();
}

TorchZip::TorchZip(std::string_view bytes, std::string origin)
    : origin(std::move(origin)) {
  ZipDirectoryReader(*this, bytes).read();
}

const ZipEntry *TorchZip::find(std::string_view name) const {
  for (const ZipEntry &entry : all)
    if (entry.name.substr(root.size()) == name)
      return &entry;
  return nullptr;
}

void TorchZip::checkCrc(const ZipEntry &entry) const {
  if (entry.crc != 0 && crc32Of(entry.data) != entry.crc)
    throw Error(origin + ": damaged archive of torch.save: " +
                shown(entry.name) + " has another checksum than was written");
}

namespace {

/// Numbers of a header, one after another.
class Header {
public:
  Header &add(uint64_t value, size_t size) {
    text.append(reinterpret_cast<const char *>(&value), size);
    return *this;
  }
  Header &add(std::string_view bytes) {
    text.append(bytes);
    return *this;
  }
  const std::string &str() const { return text; }

private:
  std::string text;
};

/// An entry once its data are written.
struct Written {
  std::string name;
  uint64_t size, local;
  uint32_t crc;
};

/// Writes entries with descriptors after their data, as PyTorch does, since a
/// checksum is known when the data are through.
class ZipWriter {
public:
  explicit ZipWriter(const std::function<void(std::string_view)> &write)
      : write(write) {}

  void addEntry(const ZipSource &source);
  uint64_t finish();

private:
  void put(std::string_view bytes) {
    write(bytes);
    at += bytes.size();
  }

  const std::function<void(std::string_view)> &write;
  uint64_t at = 0;
  std::vector<Written> entries;
};

constexpr uint64_t kAlignment = 64;

} // namespace

void ZipWriter::addEntry(const ZipSource &source) {
  Written entry{"archive/" + source.name, source.size, at, 0};
  bool large = source.size >= kIn64;
  Header extra;
  if (large)
    extra.add(kZip64Extra, 2).add(16, 2).add(0, 8).add(0, 8);
  // PyTorch's own tag and filling.
  uint64_t begin = at + kLocalSize + entry.name.size() + extra.str().size() + 4;
  uint64_t padding = (kAlignment - begin % kAlignment) % kAlignment;
  extra.add("FB").add(padding, 2).add(std::string(padding, 'Z'));
  Header header;
  header.add(kLocal, 4)
      .add(large ? 45 : 0, 2)
      .add(kDescriptorFollows | kUtf8, 2);
  header.add(0, 2).add(0, 4).add(0, 4); // stored, no date, the checksum follows
  header.add(large ? kIn64 : 0, 4).add(large ? kIn64 : 0, 4);
  header.add(entry.name.size(), 2).add(extra.str().size(), 2);
  header.add(entry.name).add(extra.str());
  put(header.str());
  source.write([&](std::string_view bytes) {
    entry.crc = crc32Of(bytes, entry.crc);
    put(bytes);
  });
  size_t width = large ? 8 : 4;
  Header descriptor;
  descriptor.add(kDescriptor, 4).add(entry.crc, 4);
  put(descriptor.add(source.size, width).add(source.size, width).str());
  entries.push_back(std::move(entry));
}

uint64_t ZipWriter::finish() {
  uint64_t directory = at;
  for (const Written &entry : entries) {
    Header extra;
    bool large = entry.size >= kIn64, far = entry.local >= kIn64;
    if (large || far)
      extra.add(kZip64Extra, 2).add((large ? 16 : 0) + (far ? 8 : 0), 2);
    if (large)
      extra.add(entry.size, 8).add(entry.size, 8);
    if (far)
      extra.add(entry.local, 8);
    Header header;
    header.add(kCentral, 4).add(0, 2).add(large || far ? 45 : 0, 2);
    header.add(kDescriptorFollows | kUtf8, 2).add(0, 2).add(0, 4);
    header.add(entry.crc, 4);
    header.add(large ? kIn64 : entry.size, 4)
        .add(large ? kIn64 : entry.size, 4);
    header.add(entry.name.size(), 2).add(extra.str().size(), 2);
    header.add(0, 8).add(0, 2); // no comment, first disk, no attributes
    header.add(far ? kIn64 : entry.local, 4).add(entry.name).add(extra.str());
    put(header.str());
  }
  uint64_t end64 = at, size = at - directory, count = entries.size();
  Header end;
  end.add(kEnd64, 4).add(kEnd64Size - 12, 8).add(45, 2).add(45, 2).add(0, 8);
  end.add(count, 8).add(count, 8).add(size, 8).add(directory, 8);
  end.add(kLocator64, 4).add(0, 4).add(end64, 8).add(1, 4);
  end.add(kEnd, 4).add(0, 4).add(count, 2).add(count, 2);
  end.add(std::min(size, kIn64), 4)
      .add(std::min(directory, kIn64), 4)
      .add(0, 2);
  put(end.str());
  return at;
}

uint64_t
checkpoint::writeTorchZip(const std::vector<ZipSource> &entries,
                          const std::function<void(std::string_view)> &write) {
  ZipWriter writer(write);
  for (const ZipSource &source : entries)
    writer.addEntry(source);
  return writer.finish();
}
