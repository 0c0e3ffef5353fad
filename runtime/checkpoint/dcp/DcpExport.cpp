//===- DcpExport.cpp - Writing checkpoints that PyTorch loads -------------===//
#include "Dcp.h"
#include "DcpMetadata.h"
#include "DcpNames.h"
#include "PickleWriter.h"
#include "TorchSave.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Signals.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/store/NewFolder.h"
#include <algorithm>
#include <cstdlib>
#include <map>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

/// Bytes of a tensor that are in memory at a time.
constexpr int64_t kPiece = int64_t{1} << 24;

/// Archives begin at such places, so that whoever maps the file finds numbers
/// where their type wants them.
constexpr uint64_t kAlignment = 64;

/// One data file, and the archives in it.
class DistcpFile {
public:
  DistcpFile(const std::string &folder, const std::string &name)
      : name(name), file(folder + "/" + name) {}

  /// `archive` writes the archive that it is given a function for and returns
  /// its size. Returns where it lies, as a box without its place in a tensor.
  template <typename Archive> DcpBox add(Archive archive) {
    uint64_t padding = (kAlignment - at % kAlignment) % kAlignment;
    file.write(std::string(padding, '\0'));
    DcpBox box;
    box.file = name;
    box.offset = at + padding;
    box.length = archive([this](std::string_view bytes) { file.write(bytes); });
    at = box.offset + box.length;
    return box;
  }
  void commit() { file.commit(); }

private:
  std::string name;
  AtomicFile file;
  uint64_t at = 0;
};

using StoredBox = std::pair<const StoredTensor *, const Chunk *>;

class DcpWriter {
public:
  DcpWriter(const TensorStore &store, const std::string &folder)
      : store(store), folder(folder) {}

  void write();

private:
  std::string dataName() {
    return "__" + std::to_string(written++) + "_0.distcp";
  }
  void writeFile(const std::vector<StoredBox> &boxes);
  void writeBox(DistcpFile &file, DcpItem &item, const StoredTensor &tensor,
                const Chunk &chunk);
  void writeRest();
  void addObject(DistcpFile &file, std::vector<std::string> path,
                 PickleWriter value);
  void addGroup(DistcpFile &file, const std::string &parameter);
  void addProgress(DistcpFile &file, const RunState &state);
  const std::string *setting(const char *key) const;
  DcpItem &item(std::vector<std::string> path);

  const TensorStore &store;
  const std::string &folder;
  std::vector<DcpItem> items;
  std::map<std::string, size_t> itemOf; // by the name in the checkpoint
  int64_t written = 0;                  // data files
};

} // namespace

/// The item of this path, made if it is new.
DcpItem &DcpWriter::item(std::vector<std::string> path) {
  std::string name = path[0];
  for (size_t i = 1; i < path.size(); ++i)
    name += "." + path[i];
  auto [known, isNew] = itemOf.emplace(name, items.size());
  if (isNew) {
    items.emplace_back().name = name;
    items.back().path = std::move(path);
  }
  return items[known->second];
}

void DcpWriter::writeBox(DistcpFile &file, DcpItem &item,
                         const StoredTensor &tensor, const Chunk &chunk) {
  TensorReader reader(tensor, {chunk, chunk.sizes}, tensor.dtype);
  int64_t width = rt::sizeOf(tensor.dtype), elements = chunk.elements();
  auto data = [&](const WriteBytes &write) {
    std::string piece;
    for (int64_t first = 0; first < elements; first += kPiece / width) {
      DeferredSignals::throwIfPending();
      int64_t count = std::min(kPiece / width, elements - first);
      piece.resize(static_cast<size_t>(count * width));
      reader.read(first, count, reinterpret_cast<std::byte *>(piece.data()));
      write(piece);
    }
  };
  DcpBox box = file.add([&](const WriteBytes &write) {
    return writeTorchTensor(tensor.dtype, chunk.sizes, data, write);
  });
  static_cast<rt::Box &>(box) = chunk;
  item.boxes.push_back(std::move(box));
}

/// The boxes of one file of the store as one file.
void DcpWriter::writeFile(const std::vector<StoredBox> &boxes) {
  DistcpFile file(folder, dataName());
  for (const auto &[tensor, chunk] : boxes) {
    DcpItem &target = item(dcpPathOf(tensor->name));
    target.dtype = torchNameOf(tensor->dtype);
    target.shape = tensor->shape;
    writeBox(file, target, *tensor, *chunk);
  }
  file.commit();
}

void DcpWriter::addObject(DistcpFile &file, std::vector<std::string> path,
                          PickleWriter value) {
  std::string pickle = value.finish();
  item(std::move(path)).boxes.push_back(file.add([&](const WriteBytes &write) {
    return writeTorchObject(pickle, write);
  }));
}

const std::string *DcpWriter::setting(const char *key) const {
  auto known = store.state()->config.find(key);
  return known == store.state()->config.end() ? nullptr : &known->second;
}

/// What AdamW of PyTorch keeps beside the moments of a parameter. A schedule
/// sets the rate anew in its first step.
void DcpWriter::addGroup(DistcpFile &file, const std::string &parameter) {
  auto add = [&](const char *key, PickleWriter value) {
    addObject(file, {"optimizer", "param_groups." + parameter + "." + key},
              std::move(value));
  };
  auto number = [](const std::string &text) {
    return std::strtod(text.c_str(), nullptr);
  };
  struct Number {
    const char *key, *ours;
  };
  for (Number entry :
       {Number{"lr", "optimizer.lr"}, Number{"initial_lr", "optimizer.lr"},
        Number{"eps", "optimizer.eps"},
        Number{"weight_decay", "optimizer.weight_decay"}})
    if (const std::string *text = setting(entry.ours))
      add(entry.key, PickleWriter().number(number(*text)));
  const std::string *first = setting("optimizer.beta1"),
                    *second = setting("optimizer.beta2");
  if (first && second)
    add("betas", PickleWriter()
                     .mark()
                     .number(number(*first))
                     .number(number(*second))
                     .tuple());
  for (const char *off :
       {"amsgrad", "maximize", "foreach", "capturable", "differentiable"})
    add(off, PickleWriter().boolean(false));
  for (const char *on : {"fused", "decoupled_weight_decay"})
    add(on, PickleWriter().boolean(true));
}

/// Where the run stood, in torchtitan's words.
void DcpWriter::writeRest() {
  const RunState &state = *store.state();
  DistcpFile file(folder, dataName());
  for (const StoredTensor &tensor : store.tensors()) {
    std::vector<std::string> path = dcpPathOf(tensor.name);
    std::string_view moment = range_name::kFirstMomentSuffix;
    if (path.size() == 1 || !endsWith(tensor.name, moment))
      continue;
    std::string parameter =
        tensor.name.substr(0, tensor.name.size() - moment.size());
    // Updates that AdamW has made, as its bias correction counts them.
    auto steps = static_cast<float>(state.step - state.skippedSteps -
                                    state.optimizerStart);
    DcpItem &target = item({"optimizer", "state." + parameter + ".step"});
    target.dtype = torchNameOf(rt::DType::F32);
    target.boxes.push_back(file.add([&](const WriteBytes &write) {
      auto data = [&](const WriteBytes &bytes) {
        bytes({reinterpret_cast<const char *>(&steps), sizeof steps});
      };
      return writeTorchTensor(rt::DType::F32, {}, data, write);
    }));
    if (!state.stepsAlone)
      addGroup(file, parameter);
  }
  addObject(file, {"train_state", "step"}, PickleWriter().integer(state.step));
  if (!state.stepsAlone)
    addProgress(file, state);
  file.commit();
}

/// What a run knows beside its steps.
void DcpWriter::addProgress(DistcpFile &file, const RunState &state) {
  addObject(file, {"lr_scheduler", "last_epoch"},
            PickleWriter().integer(state.step - state.scheduleStart));
  addObject(
      file, {"train_state", "ntokens_seen"},
      PickleWriter().integer(state.tokens / std::max<int64_t>(state.ranks, 1)));
}

void DcpWriter::write() {
  std::map<std::string, std::vector<StoredBox>> byFile;
  for (const StoredTensor &tensor : store.tensors())
    for (const Chunk &chunk : tensor.chunks)
      byFile[chunk.file].emplace_back(&tensor, &chunk);
  for (const auto &[source, boxes] : byFile)
    writeFile(boxes);
  if (store.state())
    writeRest();
  std::sort(items.begin(), items.end(),
            [](const DcpItem &a, const DcpItem &b) { return a.name < b.name; });
  writeFileAtomically(folder + "/" + kDcpMetadata, writeDcpMetadata(items));
}

/// torchtitan rotates neighbours. A model without the field has no rotary
/// layout.
static void takeLayoutOfTorchtitan(TensorStore &store) {
  const std::optional<rt::ModelInfo> &model = store.model();
  if (!model || model->fields.count("rope_halves") == 0)
    return;
  rt::ModelInfo theirs = *model;
  theirs.fields["rope_halves"] = "false";
  store.adaptTo(theirs);
}

void checkpoint::writeDcp(TensorStore &store, const std::string &folder) {
  if (store.state() && !store.optimizerProblem().empty())
    throw Error("the states of the optimizer in '" + store.path() +
                "' cannot be written: " + store.optimizerProblem());
  takeLayoutOfTorchtitan(store);
  writeNewFolder(folder, [&](const std::string &partial) {
    DcpWriter(store, partial).write();
  });
}
