//===- DcpMetadata.cpp - What a checkpoint of PyTorch consists of ---------===//
#include "DcpMetadata.h"
#include "Pickle.h"
#include "PickleWriter.h"
#include "TorchSave.h"
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

using namespace fsdp;
using namespace fsdp::checkpoint;

using Kind = PickleValue::Kind;

namespace {

constexpr char kModule[] = "torch.distributed.checkpoint.metadata";
constexpr char kFilesystem[] = "torch.distributed.checkpoint.filesystem";

/// All that PyTorch writes into a .metadata.
const std::vector<std::string_view> kAllowed = {
    "torch.distributed.checkpoint.metadata.Metadata",
    "torch.distributed.checkpoint.metadata.TensorStorageMetadata",
    "torch.distributed.checkpoint.metadata.BytesStorageMetadata",
    "torch.distributed.checkpoint.metadata.TensorProperties",
    "torch.distributed.checkpoint.metadata.ChunkStorageMetadata",
    "torch.distributed.checkpoint.metadata.MetadataIndex",
    "torch.distributed.checkpoint.metadata.StorageMeta",
    "torch.distributed.checkpoint.metadata._MEM_FORMAT_ENCODING",
    "torch.distributed.checkpoint.filesystem._StorageInfo",
    "torch.Size",
    "torch.serialization._get_layout",
    "torch.float64",
    "torch.float32",
    "torch.float16",
    "torch.bfloat16",
    "torch.float8_e4m3fn",
    "torch.float8_e4m3fnuz",
    "torch.float8_e5m2",
    "torch.float8_e5m2fnuz",
    "torch.float8_e8m0fnu",
    "torch.complex64",
    "torch.complex128",
    "torch.int64",
    "torch.int32",
    "torch.int16",
    "torch.int8",
    "torch.uint64",
    "torch.uint32",
    "torch.uint16",
    "torch.uint8",
    "torch.bool",
    "collections.OrderedDict",
    "pathlib.PosixPath",
    "pathlib._local.PosixPath",
    "builtins.getattr", // how Python 3.11 names an enumerator
};

/// A box by the name of its tensor and its offsets.
using BoxKey = std::pair<std::string, std::vector<int64_t>>;

class MetadataReader {
public:
  MetadataReader(std::string_view bytes, const std::string &origin)
      : origin(origin), pickle(bytes, origin, kAllowed) {}

  std::vector<DcpItem> read();

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(origin +
                ": damaged metadata of torch.distributed.checkpoint: " + what);
  }
  const PickleValue &field(const PickleValue &object, const char *key,
                           const std::string &of) const;
  const PickleValue &dictionary(const char *key) const;
  std::string text(const PickleValue &value, const std::string &what) const;
  uint64_t size(const PickleValue &value, const std::string &what) const;
  std::vector<int64_t> sizes(const PickleValue &value,
                             const std::string &what) const;

  void readPlaces();
  void checkPlaces() const;
  DcpBox readPlace(const PickleValue &info, const std::string &of) const;
  DcpItem readItem(const std::string &name, const PickleValue &value) const;
  void readTensor(DcpItem &item, const PickleValue &value) const;
  void findPlace(const std::string &name, DcpBox &box) const;

  const std::string &origin;
  Pickle pickle;
  std::map<BoxKey, DcpBox> places;
};

} // namespace

const PickleValue &MetadataReader::field(const PickleValue &object,
                                         const char *key,
                                         const std::string &of) const {
  const PickleValue *value =
      object.kind == Kind::Object ? object.find(key) : nullptr;
  if (!value)
    fail(of + " has no " + key);
  return *value;
}

const PickleValue &MetadataReader::dictionary(const char *key) const {
  const PickleValue &value = field(pickle.root(), key, "it");
  if (value.kind != Kind::Dict)
    fail(std::string("its ") + key + " is no dictionary");
  return value;
}

std::string MetadataReader::text(const PickleValue &value,
                                 const std::string &what) const {
  if (value.kind != Kind::Text)
    fail(what + " is no text");
  return std::string(value.text);
}

uint64_t MetadataReader::size(const PickleValue &value,
                              const std::string &what) const {
  if (value.kind != Kind::Int || value.integer < 0)
    fail(what + " is no size");
  return static_cast<uint64_t>(value.integer);
}

/// torch.Size, a call with one tuple.
std::vector<int64_t> MetadataReader::sizes(const PickleValue &value,
                                           const std::string &what) const {
  const PickleValue *list = &value;
  if (value.isObjectOf("torch.Size") && value.items[1]->items.size() == 1)
    list = value.items[1]->items[0];
  if (list->kind != Kind::Tuple && list->kind != Kind::List)
    fail(what + " is no list of sizes");
  // One list may be that of many tensors and boxes, and each would copy it.
  if (list->items.size() > kMaxTorchDims)
    fail(what + " has " + std::to_string(list->items.size()) +
         " dimensions; a tensor of PyTorch has at most " +
         std::to_string(kMaxTorchDims));
  std::vector<int64_t> result;
  for (const PickleValue *item : list->items)
    result.push_back(static_cast<int64_t>(size(*item, what)));
  return result;
}

DcpBox MetadataReader::readPlace(const PickleValue &info,
                                 const std::string &of) const {
  DcpBox box;
  box.file = text(field(info, "relative_path", of), "the file of " + of);
  box.offset = size(field(info, "offset", of), "the offset of " + of);
  box.length = size(field(info, "length", of), "the length of " + of);
  if (box.file.empty() || box.file[0] == '.' ||
      box.file.find('/') != std::string::npos ||
      box.file.find('\0') != std::string::npos)
    fail("the file of " + of + " is no name in this directory");
  const PickleValue *transforms = info.find("transform_descriptors");
  if (transforms && transforms->kind != Kind::None &&
      !transforms->items.empty())
    fail(of + " is compressed or otherwise transformed; save it without "
              "extensions");
  return box;
}

void MetadataReader::readPlaces() {
  const PickleValue &storage = dictionary("storage_data");
  for (size_t i = 0; i + 1 < storage.items.size(); i += 2) {
    const PickleValue &index = *storage.items[i];
    std::string name =
        text(field(index, "fqn", "an index"), "the name of an index");
    const PickleValue *offset = index.find("offset");
    std::vector<int64_t> at;
    if (offset && offset->kind != Kind::None)
      at = sizes(*offset, "the offset of '" + name + "'");
    DcpBox box = readPlace(*storage.items[i + 1], "'" + name + "'");
    if (!places.emplace(BoxKey(name, at), box).second)
      fail("a box of '" + name + "' is stored twice");
  }
}

/// Archives of their own: one that many boxes name would be read many times.
void MetadataReader::checkPlaces() const {
  using Place = std::pair<const BoxKey, DcpBox>;
  std::vector<const Place *> inOrder;
  for (const Place &place : places)
    if (place.second.length > 0)
      inOrder.push_back(&place);
  std::sort(inOrder.begin(), inOrder.end(), [](const auto *a, const auto *b) {
    return std::tie(a->second.file, a->second.offset) <
           std::tie(b->second.file, b->second.offset);
  });
  for (size_t i = 1; i < inOrder.size(); ++i) {
    const DcpBox &before = inOrder[i - 1]->second, &box = inOrder[i]->second;
    if (box.file == before.file && box.offset - before.offset < before.length)
      fail("a box of '" + inOrder[i - 1]->first.first + "' and one of '" +
           inOrder[i]->first.first + "' lie in the same bytes of '" + box.file +
           "'");
  }
}

void MetadataReader::findPlace(const std::string &name, DcpBox &box) const {
  auto place = places.find({name, box.offsets});
  if (place == places.end())
    fail("it does not say where a box of '" + name + "' lies");
  box.file = place->second.file;
  box.offset = place->second.offset;
  box.length = place->second.length;
}

void MetadataReader::readTensor(DcpItem &item, const PickleValue &value) const {
  std::string of = "'" + item.name + "'";
  const PickleValue &properties = field(value, "properties", of);
  // A tuple, whose first entry is the type.
  const PickleValue *state =
      properties.kind == Kind::Object ? properties.state : nullptr;
  if (!state || state->kind != Kind::Tuple || state->items.empty() ||
      state->items[0]->kind != Kind::Global)
    fail(of + " has no type");
  item.dtype = state->items[0]->text.substr(std::string("torch.").size());
  item.shape = sizes(field(value, "size", of), "the shape of " + of);
  CheckedSize bytes = 16; // of the widest type
  for (int64_t size : item.shape)
    bytes *= std::max<int64_t>(size, 1);
  if (!bytes.fits(kMaxTensorBytes))
    fail(of + " has an impossible shape");
  const PickleValue &chunks = field(value, "chunks", of);
  if (chunks.kind != Kind::List)
    fail("the chunks of " + of + " are no list");
  // One box may be there a million times by memo.
  std::set<std::pair<bool, std::vector<int64_t>>> seen;
  for (const PickleValue *chunk : chunks.items) {
    DcpBox box;
    box.offsets = sizes(field(*chunk, "offsets", of), "a box of " + of);
    box.sizes = sizes(field(*chunk, "sizes", of), "a box of " + of);
    if (!isInside(box, item.shape))
      fail("a box of " + of + " lies outside of the tensor");
    // Ranks that have nothing of a tensor may all say so.
    bool isEmpty = box.elements() == 0;
    bool isNew = seen.emplace(isEmpty, box.offsets).second;
    if (!isNew && !isEmpty)
      fail("two boxes of " + of + " begin at the same place");
    if (!isNew)
      continue;
    findPlace(item.name, box);
    item.boxes.push_back(std::move(box));
  }
}

DcpItem MetadataReader::readItem(const std::string &name,
                                 const PickleValue &value) const {
  DcpItem item;
  item.name = name;
  if (value.isObjectOf(
          "torch.distributed.checkpoint.metadata.TensorStorageMetadata")) {
    readTensor(item, value);
  } else if (value.isObjectOf("torch.distributed.checkpoint.metadata."
                              "BytesStorageMetadata")) {
    findPlace(name, item.boxes.emplace_back());
  } else {
    fail("'" + name + "' is neither a tensor nor bytes");
  }
  return item;
}

std::vector<DcpItem> MetadataReader::read() {
  if (!pickle.root().isObjectOf(
          "torch.distributed.checkpoint.metadata.Metadata"))
    fail("it is a pickle of something else");
  readPlaces();
  checkPlaces();
  std::vector<DcpItem> items;
  std::map<std::string, bool> seen;
  const PickleValue &names = dictionary("state_dict_metadata");
  for (size_t i = 0; i + 1 < names.items.size(); i += 2) {
    std::string name = text(*names.items[i], "a name");
    if (name.empty() || !isPlainLine(name))
      fail("a name is no line of text");
    if (!seen.emplace(name, true).second)
      fail("'" + name + "' is there twice");
    items.push_back(readItem(name, *names.items[i + 1]));
  }
  return items;
}

std::vector<DcpItem> checkpoint::readDcpMetadata(std::string_view bytes,
                                                 const std::string &origin) {
  return MetadataReader(bytes, origin).read();
}

namespace {

/// The state of an object, key by key; `fill` writes keys and values.
template <typename Fill>
void writeObject(PickleWriter &out, const char *module, const char *name,
                 Fill fill) {
  out.newObject(module, name).emptyDict().mark();
  fill();
  out.setItems().build();
}

void writeProperties(PickleWriter &out, const std::string &dtype) {
  out.newObject(kModule, "TensorProperties").mark().global("torch", dtype);
  out.global("torch.serialization", "_get_layout");
  out.text("torch.strided").tupleOfOne().reduce().boolean(false);
  // Contiguous.
  out.global(kModule, "_MEM_FORMAT_ENCODING").integer(0).tupleOfOne().reduce();
  out.boolean(false).tuple().build();
}

void writeItem(PickleWriter &out, const DcpItem &item) {
  out.text(item.name);
  if (item.dtype.empty()) {
    out.newObject(kModule, "BytesStorageMetadata");
    return;
  }
  writeObject(out, kModule, "TensorStorageMetadata", [&] {
    out.text("properties");
    writeProperties(out, item.dtype);
    out.text("size").size(item.shape).text("chunks").emptyList().mark();
    for (const DcpBox &box : item.boxes)
      writeObject(out, kModule, "ChunkStorageMetadata", [&] {
        out.text("offsets").size(box.offsets).text("sizes").size(box.sizes);
      });
    out.appends();
  });
}

void writePlace(PickleWriter &out, const DcpItem &item, size_t index) {
  const DcpBox &box = item.boxes[index];
  bool isTensor = !item.dtype.empty();
  writeObject(out, kModule, "MetadataIndex", [&] {
    out.text("fqn").text(item.name);
    if (isTensor)
      out.text("index")
          .integer(static_cast<int64_t>(index))
          .text("offset")
          .size(box.offsets);
    else
      out.text("index").none();
  });
  writeObject(out, kFilesystem, "_StorageInfo", [&] {
    out.text("relative_path").text(box.file);
    out.text("offset").integer(static_cast<int64_t>(box.offset));
    out.text("length").integer(static_cast<int64_t>(box.length));
  });
}

} // namespace

std::string checkpoint::writeDcpMetadata(const std::vector<DcpItem> &items) {
  PickleWriter out;
  writeObject(out, kModule, "Metadata", [&] {
    out.text("state_dict_metadata").emptyDict().mark();
    for (const DcpItem &item : items)
      writeItem(out, item);
    out.setItems().text("planner_data").emptyDict().mark();
    for (const DcpItem &item : items) {
      out.text(item.name).mark();
      for (const std::string &key : item.path)
        out.text(key);
      out.tuple();
    }
    out.setItems().text("storage_data").emptyDict().mark();
    for (const DcpItem &item : items)
      for (size_t i = 0; i < item.boxes.size(); ++i)
        writePlace(out, item, i);
    out.setItems().text("storage_meta").none().text("version").text("1.0.0");
  });
  return out.finish();
}
