//===- Safetensors.cpp - Tensors in a file --------------------------------===//
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>
#include <limits>
#include <tuple>

using namespace fsdp;
using namespace fsdp::rt;
using nlohmann::json;
using nlohmann::ordered_json;

namespace {

/// The format's order of types; tensors are stored by descending place in it.
constexpr DType kOrder[] = {DType::I8,  DType::F16, DType::BF16, DType::I32,
                            DType::F32, DType::F64, DType::I64};

constexpr uint64_t kMaxHeader = 100000000;

int placeOf(DType type) {
  return static_cast<int>(
      std::find(std::begin(kOrder), std::end(kOrder), type) - kOrder);
}

/// Of a TensorView or a TensorSource.
template <typename Tensor> uint64_t bytesOf(const Tensor &tensor) {
  return static_cast<uint64_t>(elementCount(tensor.shape) *
                               sizeOf(tensor.dtype));
}

} // namespace

std::optional<DType> rt::dtypeNamed(std::string_view name) {
  for (DType type : kOrder)
    if (name == dtypeName(type))
      return type;
  return std::nullopt;
}

std::string
rt::beginSafetensors(std::vector<TensorSource> &tensors,
                     const std::map<std::string, std::string> &metadata) {
  std::sort(tensors.begin(), tensors.end(),
            [](const TensorSource &a, const TensorSource &b) {
              int placeA = placeOf(a.dtype), placeB = placeOf(b.dtype);
              return placeA != placeB ? placeA > placeB : a.name < b.name;
            });
  ordered_json header = ordered_json::object();
  if (!metadata.empty())
    header["__metadata__"] = metadata;
  uint64_t offset = 0;
  for (const TensorSource &tensor : tensors) {
    uint64_t end = offset + bytesOf(tensor);
    header[tensor.name] = {{"dtype", dtypeName(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t length = text.size();
  return std::string(reinterpret_cast<const char *>(&length), sizeof length) +
         text;
}

void rt::writeSafetensors(const std::string &path,
                          std::vector<TensorSource> tensors,
                          const std::map<std::string, std::string> &metadata) {
  std::string begin = beginSafetensors(tensors, metadata);
  AtomicFile file(path);
  file.write(begin);
  for (const TensorSource &tensor : tensors)
    tensor.write([&](std::string_view bytes) { file.write(bytes); });
  file.commit();
}

void rt::writeSafetensors(const std::string &path,
                          std::vector<TensorView> tensors,
                          const std::map<std::string, std::string> &metadata) {
  std::vector<TensorSource> sources;
  for (TensorView &tensor : tensors) {
    std::string_view bytes(reinterpret_cast<const char *>(tensor.data),
                           bytesOf(tensor));
    sources.push_back({std::move(tensor.name), tensor.dtype,
                       std::move(tensor.shape),
                       [bytes](const auto &write) { write(bytes); }});
  }
  writeSafetensors(path, std::move(sources), metadata);
}

namespace {

/// Reads the header of one file; every message begins with the path.
class HeaderReader {
public:
  HeaderReader(const std::string &path, std::string_view bytes)
      : path(path), bytes(bytes) {}

  std::vector<TensorView>
  read(const std::function<bool(const std::string &)> &isLeftOut,
       std::map<std::string, std::string> &said);

private:
  /// Bytes of a tensor, from the end of the header.
  struct Place {
    uint64_t begin, end;
    std::string name;
  };
  [[noreturn]] void fail(const std::string &what) const {
    throw Error("damaged safetensors file '" + path + "': " + what);
  }
  json parseHeader();
  std::vector<uint64_t> readNumbers(const std::string &name, const json &entry,
                                    const char *key);
  Place readPlace(const std::string &name, const json &entry);
  TensorView readTensor(const json &entry, const Place &place);
  void checkMetadata(const json &metadata) const;
  void checkNoHoles(std::vector<Place> places) const;

  const std::string &path;
  std::string_view bytes;
  const std::byte *data = nullptr; // after the header
  uint64_t dataBytes = 0;
};

} // namespace

json HeaderReader::parseHeader() {
  uint64_t length;
  if (bytes.size() < sizeof length)
    fail("it is too short for a header");
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > kMaxHeader || length > bytes.size() - sizeof length)
    fail("its header is longer than the file");
  const char *begin = bytes.data() + sizeof length;
  json header = parseJson({begin, length}, "damaged safetensors file '" + path +
                                               "': its header");
  if (!header.is_object() || *begin != '{')
    fail("its header is no JSON object");
  data = reinterpret_cast<const std::byte *>(begin + length);
  dataBytes = bytes.size() - sizeof length - length;
  return header;
}

std::vector<uint64_t> HeaderReader::readNumbers(const std::string &name,
                                                const json &entry,
                                                const char *key) {
  const json &list = entry.at(key);
  auto isWhole = [](const json &item) { return item.is_number_unsigned(); };
  if (!list.is_array() || !std::all_of(list.begin(), list.end(), isWhole))
    fail("the " + std::string(key) + " of '" + name +
         "' is no list of whole numbers");
  return list.get<std::vector<uint64_t>>();
}

HeaderReader::Place HeaderReader::readPlace(const std::string &name,
                                            const json &entry) {
  if (name.empty() || !isPlainLine(name))
    fail("a name of a tensor is no line of text");
  std::vector<uint64_t> offsets = readNumbers(name, entry, "data_offsets");
  if (offsets.size() != 2)
    fail("the data_offsets of '" + name + "' must be 2 numbers, not " +
         std::to_string(offsets.size()));
  if (offsets[0] > offsets[1] || offsets[1] > dataBytes)
    fail("'" + name + "' lies outside the file");
  return {offsets[0], offsets[1], name};
}

TensorView HeaderReader::readTensor(const json &entry, const Place &place) {
  TensorView tensor{place.name, DType::F32, {}, data + place.begin};
  auto type = entry.at("dtype").get<std::string>();
  std::optional<DType> known = dtypeNamed(type);
  if (!known)
    fail("'" + tensor.name + "' has the unsupported type " +
         printableLine(type));
  tensor.dtype = *known;
  CheckedSize largest = 1;
  for (uint64_t size : readNumbers(tensor.name, entry, "shape")) {
    tensor.shape.push_back(static_cast<int64_t>(size));
    // Counting no element as one, so that no product on the way overflows.
    largest *= static_cast<int64_t>(std::max<uint64_t>(size, 1));
    if (size > std::numeric_limits<uint32_t>::max() ||
        !largest.fits(kMaxTensorBytes))
      fail("'" + tensor.name + "' has an impossible shape");
  }
  if (bytesOf(tensor) != place.end - place.begin)
    fail("the bytes of '" + tensor.name + "' do not fit its shape and type");
  return tensor;
}

void HeaderReader::checkMetadata(const json &metadata) const {
  if (!metadata.is_object() ||
      !std::all_of(metadata.begin(), metadata.end(),
                   [](const json &item) { return item.is_string(); }))
    fail("its __metadata__ is no table of texts");
}

void HeaderReader::checkNoHoles(std::vector<Place> places) const {
  std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  uint64_t next = 0;
  for (const Place &place : places) {
    if (place.begin != next)
      fail("there is a hole or an overlap before '" + place.name + "'");
    next = place.end;
  }
  if (next != dataBytes)
    fail("there are bytes after the last tensor");
}

std::vector<TensorView>
HeaderReader::read(const std::function<bool(const std::string &)> &isLeftOut,
                   std::map<std::string, std::string> &said) {
  json header = parseHeader();
  std::vector<TensorView> tensors;
  std::vector<Place> places;
  for (auto &[name, entry] : header.items()) {
    if (name == "__metadata__") {
      checkMetadata(entry);
      entry.get_to(said);
      continue;
    }
    try {
      places.push_back(readPlace(name, entry));
      if (!isLeftOut || !isLeftOut(name))
        tensors.push_back(readTensor(entry, places.back()));
    } catch (const json::exception &) {
      fail("the entry of '" + name + "' is malformed");
    }
  }
  checkNoHoles(std::move(places));
  return tensors;
}

SafetensorsFile::SafetensorsFile(
    const std::string &path, FileKind kind,
    const std::function<bool(const std::string &)> &isLeftOut)
    : file(path, "the tensors in", kind),
      views(HeaderReader(path, file.bytes()).read(isLeftOut, said)) {}

std::string_view SafetensorsFile::header() const {
  uint64_t length; // has been checked
  std::memcpy(&length, bytes().data(), sizeof length);
  return bytes().substr(0, sizeof length + length);
}
