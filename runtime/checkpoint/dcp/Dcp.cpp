//===- Dcp.cpp - Opening checkpoints of torch.distributed.checkpoint ------===//
#include "Dcp.h"
#include "DcpMetadata.h"
#include "DcpNames.h"
#include "TorchSave.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/MappedFile.h"
#include "runtime/checkpoint/store/Contents.h"
#include <algorithm>
#include <map>
#include <sys/stat.h>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

class DcpStore : public TensorStore {
public:
  explicit DcpStore(const std::string &path);

private:
  std::string_view archive(const DcpItem &item, const DcpBox &box);
  std::string where(const DcpItem &item, const DcpBox &box) const {
    return origin + "/" + box.file + ": '" + item.name + "'";
  }
  void addTensor(const DcpItem &item, OurName name, rt::DType dtype);
  std::optional<int64_t> readCount(const DcpItem &item, std::string &why);
  void readStep(const DcpItem &item);
  void readUpdates(const DcpItem &item);
  void setState();

  std::map<std::string, MappedFile> files;
  Contents contents; // for the check that boxes cover their tensors
  std::optional<int64_t> step, updates;
  std::string updatesOf; // the item that said the updates
};

} // namespace

DcpStore::DcpStore(const std::string &path) {
  origin = path;
  halvesOfFormat = false; // tensors with these names are torchtitan's
  std::string metadata = path + "/" + kDcpMetadata;
  std::vector<DcpItem> items = readDcpMetadata(
      MappedFile(metadata, "the checkpoint", FileKind::Regular).bytes(),
      metadata);
  std::string prefix = modelPrefix(items);
  for (const DcpItem &item : items) {
    if (item.name == kDcpStep) {
      readStep(item);
      continue;
    }
    if (isUpdateCount(item.name)) {
      readUpdates(item);
      continue;
    }
    std::optional<OurName> name = ourNameOf(item.name, prefix);
    std::optional<rt::DType> dtype = dtypeOfTorch(item.dtype);
    if (name && dtype)
      addTensor(item, *name, *dtype);
    else
      others.push_back({item.name, item.dtype.empty()
                                       ? "an object of Python"
                                       : "a tensor of " + item.dtype});
  }
  checkCovering(contents, metadata);
  setState();
  std::sort(all.begin(), all.end(),
            [](const StoredTensor &a, const StoredTensor &b) {
              return a.name < b.name;
            });
}

std::string_view DcpStore::archive(const DcpItem &item, const DcpBox &box) {
  const MappedFile &file = files
                               .try_emplace(box.file, origin + "/" + box.file,
                                            "the tensors in", FileKind::Regular)
                               .first->second;
  uint64_t size = file.bytes().size();
  if (box.offset > size || box.length > size - box.offset)
    throw Error(where(item, box) + " lies at " + std::to_string(box.offset) +
                " with " + std::to_string(box.length) +
                " bytes, and the file has " + std::to_string(size) +
                "; it is truncated");
  return file.bytes().substr(box.offset, box.length);
}

void DcpStore::addTensor(const DcpItem &item, OurName name, rt::DType dtype) {
  StoredTensor tensor;
  tensor.name = name.name;
  tensor.role = name.role;
  tensor.dtype = dtype;
  tensor.shape = item.shape;
  IndexedTensor indexed{name.role, dtype, item.shape, {}};
  for (const DcpBox &box : item.boxes) {
    // Ranks that have nothing of a tensor say so.
    if (box.elements() == 0 && rt::elementCount(item.shape) > 0)
      continue;
    TorchTensor stored = readTorchTensor(archive(item, box), where(item, box));
    if (stored.dtype != dtype || stored.shape != box.sizes)
      throw Error(where(item, box) +
                  " has another type or shape there than .metadata says");
    tensor.chunks.push_back(
        {box, stored.data, origin + "/" + box.file, {}, stored.crc32});
    indexed.chunks.push_back({box, box.file, "", {}});
  }
  if (!contents.tensors.emplace(name.name, std::move(indexed)).second)
    throw Error(origin + ": two tensors are '" + name.name +
                "', one of them as '" + item.name + "'");
  all.push_back(std::move(tensor));
}

/// Unset: the item is no count, and `why` says why not.
std::optional<int64_t> DcpStore::readCount(const DcpItem &item,
                                           std::string &why) {
  why = "no whole number";
  try {
    const DcpBox &box = item.boxes.at(0);
    std::optional<int64_t> count =
        readTorchInteger(archive(item, box), where(item, box));
    if (count && *count >= 0)
      return count;
  } catch (const std::exception &error) {
    why = error.what();
  }
  return std::nullopt;
}

/// Weights are of use without it: what cannot be read as a number is left out.
void DcpStore::readStep(const DcpItem &item) {
  std::string why;
  step = readCount(item, why);
  if (!step)
    others.push_back({item.name, why});
}

/// AdamW of PyTorch counts for each parameter by itself, ours for all.
void DcpStore::readUpdates(const DcpItem &item) {
  std::string why;
  std::optional<int64_t> count = readCount(item, why);
  if (!count) {
    others.push_back({item.name, why});
    noOptimizer = "'" + item.name + "' cannot be read: " + why;
  } else if (!updates) {
    updates = count;
    updatesOf = item.name;
  } else if (*count != *updates) {
    noOptimizer = "'" + updatesOf + "' is " + std::to_string(*updates) +
                  " and '" + item.name + "' " + std::to_string(*count) +
                  ", and here the updates of all parameters are as many";
  }
}

void DcpStore::setState() {
  if (!step)
    return;
  run.emplace().step = *step;
  run->stepsAlone = true;
  if (updates && *updates > *step)
    noOptimizer = "'" + updatesOf + "' is " + std::to_string(*updates) +
                  ", after the " + std::to_string(*step) + " steps of '" +
                  kDcpStep + "'";
  else if (updates)
    run->optimizerStart = *step - *updates;
}

bool checkpoint::isDcp(const std::string &path) {
  struct stat status;
  return stat((path + "/" + kDcpMetadata).c_str(), &status) == 0;
}

std::unique_ptr<TensorStore> checkpoint::openDcp(const std::string &path) {
  return std::make_unique<DcpStore>(path);
}
