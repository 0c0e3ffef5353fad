//===- TorchSave.cpp - What torch.save writes -----------------------------===//
#include "TorchSave.h"
#include "Pickle.h"
#include "PickleWriter.h"
#include "TorchZip.h"
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

using Kind = PickleValue::Kind;

namespace {

/// A type by its names in PyTorch: of the tensor and of what it lies in.
struct TorchType {
  DType type;
  const char *name;
  const char *storage;
};

constexpr TorchType kTypes[] = {
    {DType::F32, "float32", "FloatStorage"},
    {DType::BF16, "bfloat16", "BFloat16Storage"},
    {DType::F16, "float16", "HalfStorage"},
    {DType::F64, "float64", "DoubleStorage"},
    {DType::I8, "int8", "CharStorage"},
    {DType::I32, "int32", "IntStorage"},
    {DType::I64, "int64", "LongStorage"},
};

/// All that PyTorch writes for tensors and for what optimizers and schedules
/// keep.
const std::vector<std::string_view> kAllowed = {
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "torch.FloatStorage",
    "torch.BFloat16Storage",
    "torch.HalfStorage",
    "torch.DoubleStorage",
    "torch.CharStorage",
    "torch.IntStorage",
    "torch.LongStorage",
    "collections.OrderedDict",
};

const TorchType &torchType(DType type) {
  return *std::find_if(std::begin(kTypes), std::end(kTypes),
                       [&](const TorchType &t) { return t.type == type; });
}

/// Reads the tensor out of the pickle of an archive.
class TensorPickle {
public:
  TensorPickle(const TorchZip &zip, const PickleValue &root,
               const std::string &origin)
      : zip(zip), root(root), origin(origin) {}

  TorchTensor read();

private:
  [[noreturn]] void fail(const std::string &what) const {
    throw Error(origin + ": unreadable tensor of torch.save: " + what);
  }
  std::vector<int64_t> numbers(const PickleValue &value, const char *what);
  const PickleValue &rebuild();
  void readStorage(const PickleValue &value);
  void checkStrides(const std::vector<int64_t> &strides);

  const TorchZip &zip;
  const PickleValue &root;
  const std::string &origin;
  TorchTensor tensor = {};
  const ZipEntry *storage = nullptr; // its bytes
};

} // namespace

std::vector<int64_t> TensorPickle::numbers(const PickleValue &value,
                                           const char *what) {
  if (value.kind == Kind::Tuple && value.items.size() > kMaxTorchDims)
    fail(std::string("its ") + what + " has more than " +
         std::to_string(kMaxTorchDims) + " dimensions");
  std::vector<int64_t> result;
  if (value.kind == Kind::Tuple)
    for (const PickleValue *item : value.items)
      if (item->kind == Kind::Int && item->integer >= 0)
        result.push_back(item->integer);
  if (value.kind != Kind::Tuple || result.size() != value.items.size())
    fail(std::string("its ") + what + " is no list of sizes");
  return result;
}

/// The arguments that the tensor is made of.
const PickleValue &TensorPickle::rebuild() {
  const PickleValue *object = &root;
  // A parameter is its tensor and what autograd wants to know.
  if (object->isObjectOf("torch._utils._rebuild_parameter") &&
      !object->items[1]->items.empty())
    object = object->items[1]->items[0];
  if (!object->isObjectOf("torch._utils._rebuild_tensor_v2") ||
      object->items[1]->items.size() < 4)
    fail("it is no dense tensor");
  return *object->items[1];
}

/// ("storage", type, key, device, elements), as a persistent id.
void TensorPickle::readStorage(const PickleValue &value) {
  const PickleValue *id =
      value.kind == Kind::Persistent ? value.items[0] : nullptr;
  if (!id || id->kind != Kind::Tuple || id->items.size() < 5 ||
      id->items[0]->kind != Kind::Text || id->items[0]->text != "storage" ||
      id->items[1]->kind != Kind::Global || id->items[2]->kind != Kind::Text ||
      id->items[4]->kind != Kind::Int)
    fail("it does not say where its bytes lie");
  std::string_view name = id->items[1]->text;
  const auto *type =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto &t) {
        return name == "torch." + std::string(t.storage);
      });
  if (type == std::end(kTypes))
    fail("its bytes are of no type");
  tensor.dtype = type->type;
  std::string key = "data/" + std::string(id->items[2]->text.substr(0, 80));
  const ZipEntry *entry = zip.find(key);
  if (!entry)
    fail("there is no entry '" + key + "'");
  CheckedSize bytes = CheckedSize(id->items[4]->integer) * sizeOf(tensor.dtype);
  if (!bytes.fits(kMaxTensorBytes) ||
      static_cast<uint64_t>(bytes.get()) != entry->data.size())
    fail("'" + key + "' has " + std::to_string(entry->data.size()) +
         " bytes, and not those of " + std::to_string(id->items[4]->integer) +
         " elements of " + type->name);
  storage = entry;
}

void TensorPickle::checkStrides(const std::vector<int64_t> &strides) {
  if (strides.size() != tensor.shape.size())
    fail("it has not one stride per dimension");
  int64_t next = 1;
  for (size_t d = strides.size(); d-- > 0;) {
    if (tensor.shape[d] > 1 && strides[d] != next)
      fail("it is not contiguous in row-major order; save it as "
           "tensor.contiguous()");
    next *= std::max<int64_t>(tensor.shape[d], 1);
  }
}

TorchTensor TensorPickle::read() {
  const PickleValue &arguments = rebuild();
  readStorage(*arguments.items[0]);
  const PickleValue &first = *arguments.items[1];
  tensor.shape = numbers(*arguments.items[2], "shape");
  CheckedSize largest = sizeOf(tensor.dtype), bytes = largest;
  for (int64_t size : tensor.shape) {
    largest *= std::max<int64_t>(size, 1);
    bytes *= size;
  }
  if (!largest.fits(kMaxTensorBytes))
    fail("it has an impossible shape");
  checkStrides(numbers(*arguments.items[3], "strides"));
  CheckedSize begin = CheckedSize(first.integer) * sizeOf(tensor.dtype);
  if (first.kind != Kind::Int || !begin.fits(kMaxTensorBytes) ||
      static_cast<uint64_t>(begin.get() + bytes.get()) > storage->data.size())
    fail("it lies outside of its bytes");
  tensor.data =
      reinterpret_cast<const std::byte *>(storage->data.data()) + begin.get();
  if (static_cast<uint64_t>(bytes.get()) == storage->data.size() &&
      storage->crc != 0)
    tensor.crc32 = storage->crc;
  return tensor;
}

namespace {

/// An archive with its pickle.
struct Archive {
  Archive(std::string_view bytes, const std::string &origin)
      : zip(bytes, origin), pickle(data(zip, origin), origin, kAllowed) {}

  static std::string_view data(const TorchZip &zip, const std::string &origin) {
    const ZipEntry *order = zip.find("byteorder");
    if (order && order->data != "little")
      throw Error(origin + ": this archive of torch.save was written with the "
                           "highest byte first");
    const ZipEntry *entry = zip.find("data.pkl");
    if (!entry)
      throw Error(origin + ": damaged archive of torch.save: there is no "
                           "entry 'data.pkl'");
    return entry->data;
  }

  TorchZip zip;
  Pickle pickle;
};

} // namespace

std::optional<DType> checkpoint::dtypeOfTorch(std::string_view name) {
  for (const TorchType &type : kTypes)
    if (name == type.name)
      return type.type;
  return std::nullopt;
}

const char *checkpoint::torchNameOf(DType type) { return torchType(type).name; }

TorchTensor checkpoint::readTorchTensor(std::string_view archive,
                                        const std::string &origin) {
  Archive contents(archive, origin);
  return TensorPickle(contents.zip, contents.pickle.root(), origin).read();
}

static std::optional<int64_t> wholeNumber(double value) {
  constexpr double kMost = 0x1p53; // beyond, a double leaves numbers out
  if (std::abs(value) <= kMost && std::trunc(value) == value)
    return static_cast<int64_t>(value);
  return std::nullopt;
}

std::optional<int64_t> checkpoint::readTorchInteger(std::string_view archive,
                                                    const std::string &origin) {
  Archive contents(archive, origin);
  const PickleValue &root = contents.pickle.root();
  if (root.kind == Kind::Int)
    return root.integer;
  if (root.kind != Kind::Object)
    return std::nullopt;
  TorchTensor tensor = TensorPickle(contents.zip, root, origin).read();
  if (elementCount(tensor.shape) != 1)
    return std::nullopt;
  auto read = [&](auto value) {
    std::memcpy(&value, tensor.data, sizeof value);
    return value;
  };
  switch (tensor.dtype) {
  case DType::I32:
    return read(int32_t());
  case DType::I64:
    return read(int64_t());
  case DType::F32: // as AdamW of PyTorch counts
    return wholeNumber(read(float()));
  case DType::F64:
    return wholeNumber(read(double()));
  default:
    return std::nullopt;
  }
}

static ZipSource textEntry(const char *name, std::string_view text) {
  return {name, text.size(), [text](const auto &write) { write(text); }};
}

static std::string tensorPickle(DType dtype,
                                const std::vector<int64_t> &shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;)
    strides[d - 1] = strides[d] * std::max<int64_t>(shape[d], 1);
  PickleWriter out;
  out.global("torch._utils", "_rebuild_tensor_v2").mark();
  out.mark().text("storage").global("torch", torchType(dtype).storage);
  out.text("0").text("cpu").integer(elementCount(shape)).tuple().persistent();
  out.integer(0).integers(shape).integers(strides).boolean(false);
  out.global("collections", "OrderedDict").emptyTuple().reduce();
  return out.tuple().reduce().finish();
}

uint64_t checkpoint::writeTorchTensor(
    DType dtype, const std::vector<int64_t> &shape,
    const std::function<void(const WriteBytes &)> &data,
    const WriteBytes &write) {
  std::string pickle = tensorPickle(dtype, shape);
  auto bytes = static_cast<uint64_t>(elementCount(shape) * sizeOf(dtype));
  return writeTorchZip({textEntry("data.pkl", pickle),
                        textEntry("byteorder", "little"),
                        {"data/0", bytes, data},
                        textEntry("version", "3\n")},
                       write);
}

uint64_t checkpoint::writeTorchObject(std::string_view pickle,
                                      const WriteBytes &write) {
  return writeTorchZip({textEntry("data.pkl", pickle),
                        textEntry("byteorder", "little"),
                        textEntry("version", "3\n")},
                       write);
}
