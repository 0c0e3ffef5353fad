//===- NativeStore.cpp - A checkpoint of a run ----------------------------===//
#include "NativeStore.h"
#include "StepFolder.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "runtime/checkpoint/store/BlockChecksums.h"
#include <map>
#include <set>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

namespace {

class NativeStore : public TensorStore {
public:
  explicit NativeStore(const std::string &directory);

private:
  /// A file and its tensors by name.
  struct File {
    std::unique_ptr<SafetensorsFile> file;
    std::map<std::string, const TensorView *> tensors;
    std::set<std::string> used; // by the index
  };
  void openFile(const std::string &name, const IndexedFile &expected);
  void addTensor(const std::string &name, const IndexedTensor &tensor);

  std::map<std::string, File> files;
};

} // namespace

void NativeStore::openFile(const std::string &name,
                           const IndexedFile &expected) {
  std::string path = origin + "/" + name;
  File &opened = files[name];
  {
    // The size first: of a file that was cut, a header says nothing useful.
    MappedFile bytes(path, "the tensors in", FileKind::Regular);
    if (bytes.bytes().size() != expected.bytes)
      throw Error("damaged checkpoint: '" + path + "' has " +
                  std::to_string(bytes.bytes().size()) +
                  " bytes, the index says " + std::to_string(expected.bytes));
  }
  opened.file = std::make_unique<SafetensorsFile>(path);
  if (checksumOf(opened.file->header()) != expected.header)
    throw Error("damaged checkpoint: the header of '" + path +
                "' is not the one that was written");
  for (const TensorView &tensor : opened.file->tensors())
    opened.tensors[tensor.name] = &tensor;
}

void NativeStore::addTensor(const std::string &name,
                            const IndexedTensor &tensor) {
  StoredTensor stored{name, tensor.role, tensor.dtype, tensor.shape, {}, {}};
  for (const IndexedChunk &chunk : tensor.chunks) {
    File &file = files.at(chunk.file);
    std::string path = origin + "/" + chunk.file;
    auto found = file.tensors.find(chunk.name);
    if (found == file.tensors.end())
      throw Error("damaged checkpoint: '" + path + "' has no tensor '" +
                  chunk.name + "', the index says it has");
    const TensorView &view = *found->second;
    if (view.dtype != tensor.dtype || view.shape != chunk.sizes)
      throw Error("damaged checkpoint: '" + chunk.name + "' in '" + path +
                  "' has another type or shape than the index says");
    if (!file.used.insert(chunk.name).second)
      throw Error("damaged checkpoint: the index uses '" + chunk.name +
                  "' in '" + path + "' twice");
    stored.chunks.push_back({chunk, view.data, path, chunk.checksums, {}});
  }
  all.push_back(std::move(stored));
}

NativeStore::NativeStore(const std::string &directory) {
  origin = directory;
  Index index = readIndex(directory);
  for (const auto &[name, file] : index.contents.files)
    openFile(name, file);
  for (const auto &[name, tensor] : index.contents.tensors)
    addTensor(name, tensor);
  for (const auto &[name, file] : files)
    if (file.used.size() != file.tensors.size())
      throw Error("damaged checkpoint: '" + directory + "/" + name +
                  "' has tensors of which the index says nothing");
  run = index.state;
  about = index.model;
}

std::unique_ptr<TensorStore>
checkpoint::openNative(const std::string &directory) {
  return std::make_unique<NativeStore>(directory);
}
