//===- Save.cpp - Writing a checkpoint ------------------------------------===//
#include "CheckpointFolder.h"
#include "Index.h"
#include "StepFolder.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/FileCalls.h"
#include "runtime/checkpoint/store/BlockChecksums.h"
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <thread>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
namespace fs = std::filesystem;

static std::string partialFolder(const SaveRequest &request) {
  return stepFolder(request.folder, request.state.step) + kPartial;
}

/// Writes a file that is on the disk when this returns.
static void writeDurably(const std::string &path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.sync();
  file.commit();
}

void checkpoint::beginSave(const SaveRequest &request) {
  std::string partial = partialFolder(request);
  makeDurableDirectories(request.folder);
  // What the step would replace at the end is looked at before it is written.
  checkReplaceable(stepFolder(request.folder, request.state.step));
  checkReplaceable(partial);
  removeStepFolder(partial);
  makeDirectories(partial);
}

//===----------------------------------------------------------------------===//
// A rank's part
//===----------------------------------------------------------------------===//

namespace {

using WriteBytes = std::function<void(std::string_view)>;

/// Writes the tensors of one rank and notes what has been written.
class PartWriter {
public:
  PartWriter(const SaveRequest &request, std::vector<SavedChunk> chunks)
      : request(request), chunks(std::move(chunks)) {}

  void write();

private:
  void nameChunks();
  void writeChunk(const WriteBytes &write, size_t index);

  const SaveRequest &request;
  std::vector<SavedChunk> chunks;
  std::vector<std::string> names; // in the file, by chunk
  std::string fileName;
  IndexPart part;
};

} // namespace

/// A second box of one tensor is called NAME#2.
void PartWriter::nameChunks() {
  std::map<std::string, int> count;
  for (const SavedChunk &chunk : chunks) {
    int number = ++count[chunk.tensor];
    names.push_back(number == 1 ? chunk.tensor
                                : chunk.tensor + "#" + std::to_string(number));
  }
}

void PartWriter::writeChunk(const WriteBytes &write, size_t index) {
  const SavedChunk &chunk = chunks[index];
  BlockChecksums checksums;
  chunk.write([&](std::string_view bytes) {
    checksums.add(bytes);
    write(bytes);
  });
  auto expected = static_cast<uint64_t>(chunk.elements() * sizeOf(chunk.dtype));
  if (checksums.bytes() != expected)
    throw Error("the box " + listText(chunk.sizes) + " of '" + chunk.tensor +
                "' has " + std::to_string(expected) + " bytes, but " +
                std::to_string(checksums.bytes()) + " were to be saved");
  IndexedTensor &tensor =
      part.contents.tensors
          .try_emplace(chunk.tensor,
                       IndexedTensor{chunk.role, chunk.dtype, chunk.shape, {}})
          .first->second;
  tensor.chunks.push_back({chunk, fileName, names[index], checksums.finish()});
}

void PartWriter::write() {
  nameChunks();
  fileName = rankFileName(request.rank, kTensorsSuffix);
  std::string folder = partialFolder(request) + "/";
  AtomicFile file(folder + fileName);
  file.bypassCache();
  std::vector<TensorSource> sources;
  for (size_t i = 0; i < chunks.size(); ++i)
    sources.push_back({names[i], chunks[i].dtype, chunks[i].sizes,
                       [this, i](const auto &write) { writeChunk(write, i); }});
  std::string header = beginSafetensors(sources, {});
  file.write(header);
  uint64_t bytes = header.size();
  for (const TensorSource &source : sources) {
    source.write([&](std::string_view piece) { file.write(piece); });
    bytes += static_cast<uint64_t>(elementCount(source.shape) *
                                   sizeOf(source.dtype));
  }
  file.sync();
  file.commit();
  part.attempt = request.attempt;
  part.contents.files[fileName] = {bytes, checksumOf(header)};
  writeDurably(folder + rankFileName(request.rank, kPartSuffix),
               partText(part));
}

void checkpoint::writePart(const SaveRequest &request,
                           std::vector<SavedChunk> chunks) {
  PartWriter(request, std::move(chunks)).write();
}

//===----------------------------------------------------------------------===//
// All parts
//===----------------------------------------------------------------------===//

/// The part of `rank` in this attempt; unset if it is not there.
static std::optional<IndexPart> findPart(const SaveRequest &request,
                                         const std::string &path) {
  FileCall call("stat", path);
  std::error_code ignored;
  if (!fs::exists(path, ignored))
    return std::nullopt;
  IndexPart part = parsePart(readWholeFile(path, "the part"), "'" + path + "'");
  if (part.attempt != request.attempt)
    return std::nullopt;
  return part;
}

/// Waits for the part of `rank`; unset if it was cancelled before.
static std::optional<IndexPart> awaitPart(const SaveRequest &request,
                                          int64_t rank,
                                          const std::atomic<Parts> &parts) {
  using namespace std::chrono;
  std::string folder = partialFolder(request);
  std::string path = folder + "/" + rankFileName(rank, kPartSuffix);
  auto pause = milliseconds(1);
  std::optional<steady_clock::time_point> end;
  while (parts != Parts::Cancelled) {
    bool isWritten = parts == Parts::Written;
    if (auto part = findPart(request, path))
      return part;
    std::error_code error;
    if (!fs::exists(folder, error) && !error) // else it may be there
      throw Error("the folder '" + folder +
                  "' has vanished while a checkpoint was written into it");
    if (isWritten && !end)
      end =
          steady_clock::now() + duration_cast<steady_clock::duration>(
                                    duration<double>(request.patienceSeconds));
    if (end && steady_clock::now() > *end)
      throw Error("'" + path + "' is gone, or of another run: rank " +
                  std::to_string(rank) +
                  " has written it, and somebody has changed the folder since");
    // To open a folder makes network file systems look again.
    fs::directory_iterator(folder, error);
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, milliseconds(100));
  }
  return std::nullopt;
}

bool checkpoint::commitSave(const SaveRequest &request,
                            const std::atomic<Parts> &parts) {
  std::string folder = partialFolder(request);
  Index index{request.state, request.model, {}};
  for (int64_t rank = 0; rank < request.ranks; ++rank) {
    std::optional<IndexPart> part = awaitPart(request, rank, parts);
    if (!part)
      return false;
    addPart(index.contents, std::move(part->contents),
            "'" + folder + "', rank " + std::to_string(rank));
  }
  checkCovering(index.contents, "'" + folder + "'");
  std::string text = indexText(index);
  writeDurably(folder + "/" + kIndexName, text);
  // With its marker the directory has what a checkpoint has and nothing else.
  for (int64_t rank = 0; rank < request.ranks; ++rank)
    removeFile(folder + "/" + rankFileName(rank, kPartSuffix));
  writeDurably(folder + "/" + kMarkerName, markerText(text));
  syncFolder(folder);
  moveInPlace(request.folder, request.state.step);
  return true;
}

void checkpoint::abandonSave(const SaveRequest &request) {
  removeStepFolder(partialFolder(request));
}
