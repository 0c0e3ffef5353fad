//===- Index.cpp - What the files of a checkpoint say ---------------------===//
#include "Index.h"
#include "Description.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/store/BlockChecksums.h"
#include <algorithm>
#include <cinttypes>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;
using nlohmann::json;
using nlohmann::ordered_json;

static constexpr char kFormat[] = "fsdp checkpoint";
static constexpr int64_t kVersion = 1;

std::string checkpoint::rankFileName(int64_t rank, const char *suffix) {
  return format("rank-%05" PRId64 "%s", rank, suffix);
}

/// "rank-00003" and the suffix.
static bool isRankFile(const std::string &name, const std::string &suffix) {
  constexpr size_t kDigits = 5; // or more
  const std::string prefix = "rank-";
  if (name.size() < prefix.size() + kDigits + suffix.size() ||
      name.compare(0, prefix.size(), prefix) != 0 ||
      name.compare(name.size() - suffix.size(), suffix.size(), suffix) != 0)
    return false;
  std::string digits =
      name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
  return digits.find_first_not_of("0123456789") == std::string::npos;
}

bool checkpoint::isOurFile(const std::string &name) {
  // On the way AtomicFile writes NAME.partial-PROCESS.
  std::string whole = name.substr(0, name.find(kPartialFile));
  return whole == kIndexName || whole == kMarkerName ||
         isRankFile(whole, kTensorsSuffix) || isRankFile(whole, kPartSuffix);
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// On one line. Paths may be any bytes, JSON may not.
static std::string lineOf(const ordered_json &value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

static ordered_json jsonOf(const RunState &state) {
  ordered_json text = {{"step", state.step}};
  if (!state.stepsAlone)
    text.update({{"tokens", state.tokens},
                 {"seed", state.seed},
                 {"dataset", state.dataset},
                 {"dataset_path", state.datasetPath},
                 {"dataset_bytes", state.datasetBytes},
                 {"train_bytes", state.trainBytes},
                 {"global_batch", state.globalBatch},
                 {"sequence", state.sequence},
                 {"skipped_steps", state.skippedSteps},
                 {"mesh", state.mesh},
                 {"ranks", state.ranks},
                 {"config", state.config}});
  if (state.datasetChecksum)
    text["dataset_xxh3"] = checksumText(*state.datasetChecksum);
  if (!state.idsType.empty())
    text["ids_dtype"] = state.idsType;
  if (!state.dataOrder.empty())
    text["data_order"] = state.dataOrder;
  if (!state.packing.empty())
    text["packing"] = state.packing;
  if (state.maskChecksum)
    text["ids_mask_xxh3"] = checksumText(*state.maskChecksum);
  // Few runs have begun their schedule or their optimizer anew.
  if (state.scheduleStart != 0)
    text["schedule_start"] = state.scheduleStart;
  if (state.optimizerStart != 0)
    text["optimizer_start"] = state.optimizerStart;
  return text;
}

static ordered_json jsonOf(const std::string &tensor,
                           const IndexedChunk &chunk) {
  ordered_json checksums = ordered_json::array();
  for (uint64_t checksum : chunk.checksums)
    checksums.push_back(checksumText(checksum));
  ordered_json result = {{"file", chunk.file},
                         {"offsets", chunk.offsets},
                         {"shape", chunk.sizes},
                         {"xxh3", checksums}};
  if (chunk.name != tensor)
    result["name"] = chunk.name;
  return result;
}

static ordered_json jsonOf(const std::string &name,
                           const IndexedTensor &tensor) {
  ordered_json chunks = ordered_json::array();
  for (const IndexedChunk &chunk : tensor.chunks)
    chunks.push_back(jsonOf(name, chunk));
  return {{"role", roleName(tensor.role)},
          {"dtype", dtypeName(tensor.dtype)},
          {"shape", tensor.shape},
          {"chunks", chunks}};
}

static ordered_json jsonOf(const std::optional<ModelInfo> &model) {
  if (!model)
    return nullptr;
  return {{"family", model->family}, {"fields", model->fields}};
}

static ordered_json jsonOf(const IndexedFile &file) {
  return {{"bytes", file.bytes}, {"header_xxh3", checksumText(file.header)}};
}

/// An object with a line for each entry.
template <typename Map, typename Value>
static std::string linesOf(const Map &map, Value valueOf) {
  std::string text = "{";
  for (const auto &[name, item] : map)
    text += (text.size() == 1 ? "\n  " : ",\n  ") + lineOf(name) + ": " +
            lineOf(valueOf(name, item));
  return text + "}";
}

static std::string linesOf(const Contents &contents) {
  return "\"tensors\": " +
         linesOf(contents.tensors,
                 [](const auto &name, const auto &tensor) {
                   return jsonOf(name, tensor);
                 }) +
         ",\n\"files\": " +
         linesOf(contents.files,
                 [](const auto &, const auto &file) { return jsonOf(file); });
}

std::string checkpoint::indexText(const Index &index) {
  return "{\"format\": \"" + std::string(kFormat) +
         "\", \"version\": " + std::to_string(kVersion) +
         ",\n\"state\": " + lineOf(jsonOf(index.state)) +
         ",\n\"model\": " + lineOf(jsonOf(index.model)) + ",\n" +
         linesOf(index.contents) + "}\n";
}

std::string checkpoint::descriptionText(const TensorStore &store) {
  std::map<std::string, ordered_json> tensors;
  for (const StoredTensor &tensor : store.tensors()) {
    ordered_json chunks = ordered_json::array();
    for (const Chunk &chunk : tensor.chunks)
      chunks.push_back({{"file", chunk.file},
                        {"offsets", chunk.offsets},
                        {"shape", chunk.sizes}});
    tensors[tensor.name] = {{"role", roleName(tensor.role)},
                            {"dtype", dtypeName(tensor.dtype)},
                            {"shape", tensor.shape},
                            {"bytes", bytesOf(tensor)},
                            {"chunks", chunks}};
  }
  const std::optional<RunState> &state = store.state();
  return "{\"path\": " + lineOf(store.path()) +
         ",\n\"state\": " + lineOf(state ? jsonOf(*state) : ordered_json()) +
         ",\n\"model\": " + lineOf(jsonOf(store.model())) + ",\n\"tensors\": " +
         linesOf(tensors, [](const auto &, const auto &item) { return item; }) +
         "}\n";
}

std::string checkpoint::partText(const IndexPart &part) {
  return "{\"attempt\": " + lineOf(part.attempt) + ",\n" +
         linesOf(part.contents) + "}\n";
}

std::string checkpoint::markerText(const std::string &indexText) {
  return checksumLine(indexText);
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

static uint64_t checksumAt(const JsonField &field) {
  std::optional<uint64_t> checksum = parseChecksum(field.string());
  if (!checksum)
    field.fail("expected a checksum, 16 hexadecimal digits");
  return *checksum;
}

static RunState stateAt(const JsonField &field) {
  RunState state;
  state.step = field.at("step").integer();
  state.tokens = field.at("tokens").integer();
  state.seed = field.at("seed").word();
  state.dataset = field.at("dataset").string();
  state.datasetPath = field.at("dataset_path").anyString();
  state.datasetBytes = field.at("dataset_bytes").integer();
  state.trainBytes = field.at("train_bytes").integer();
  state.globalBatch = field.at("global_batch").integer();
  state.sequence = field.at("sequence").integer();
  state.skippedSteps = field.at("skipped_steps").integer();
  if (state.skippedSteps > state.step)
    field.at("skipped_steps").fail("more steps were skipped than there were");
  state.mesh = field.at("mesh").string();
  state.ranks = field.at("ranks").integer(1);
  state.config = field.at("config").texts();
  if (std::optional<JsonField> text = field.find("dataset_xxh3"))
    state.datasetChecksum = checksumAt(*text);
  if (std::optional<JsonField> type = field.find("ids_dtype"))
    state.idsType = type->string();
  if (std::optional<JsonField> order = field.find("data_order"))
    state.dataOrder = order->string();
  if (std::optional<JsonField> packing = field.find("packing"))
    state.packing = packing->string();
  if (std::optional<JsonField> mask = field.find("ids_mask_xxh3"))
    state.maskChecksum = checksumAt(*mask);
  if (std::optional<JsonField> start = field.find("schedule_start")) {
    state.scheduleStart = start->integer();
    if (state.scheduleStart > state.step)
      start->fail("the schedule cannot have started after the last step");
  }
  if (std::optional<JsonField> start = field.find("optimizer_start")) {
    state.optimizerStart = start->integer();
    if (state.optimizerStart > state.step - state.skippedSteps)
      start->fail("the optimizer cannot have started after the last step");
  }
  return state;
}

namespace {

/// Reads "tensors" and "files".
class ContentsReader {
public:
  explicit ContentsReader(const JsonField &root) : root(root) {}

  Contents read();

private:
  IndexedFile readFile(const std::string &name, const JsonField &field);
  IndexedTensor readTensor(const std::string &name, const JsonField &field);
  IndexedChunk readChunk(const std::string &name, const IndexedTensor &tensor,
                         const JsonField &field);

  const JsonField &root;
  Contents contents;
};

} // namespace

IndexedFile ContentsReader::readFile(const std::string &name,
                                     const JsonField &field) {
  if (!isRankFile(name, kTensorsSuffix))
    field.fail("no checkpoint has a file of this name");
  return {static_cast<uint64_t>(field.at("bytes").integer()),
          checksumAt(field.at("header_xxh3"))};
}

IndexedChunk ContentsReader::readChunk(const std::string &name,
                                       const IndexedTensor &tensor,
                                       const JsonField &field) {
  IndexedChunk chunk;
  chunk.file = field.at("file").string();
  if (!contents.files.count(chunk.file))
    field.fail("the file '" + chunk.file + "' is not among the files");
  auto inFile = field.find("name");
  chunk.name = inFile ? inFile->string() : name;
  chunk.offsets = field.at("offsets").integers();
  chunk.sizes = field.at("shape").shape();
  if (!isInside(chunk, tensor.shape))
    field.fail("the box " + listText(chunk.sizes) + " at " +
               listText(chunk.offsets) + " is not inside the tensor's " +
               listText(tensor.shape));
  for (const JsonField &item : field.at("xxh3").items())
    chunk.checksums.push_back(checksumAt(item));
  auto bytes = static_cast<uint64_t>(chunk.elements() * sizeOf(tensor.dtype));
  if (chunk.checksums.size() != blocksOf(bytes))
    field.fail("a box of " + std::to_string(bytes) + " bytes has " +
               std::to_string(blocksOf(bytes)) + " checksums, not " +
               std::to_string(chunk.checksums.size()));
  return chunk;
}

IndexedTensor ContentsReader::readTensor(const std::string &name,
                                         const JsonField &field) {
  if (name.empty() || !isPlainLine(name))
    field.fail("this is no name of a tensor");
  IndexedTensor tensor;
  std::string role = field.at("role").string();
  std::optional<RangeRole> knownRole = roleNamed(role);
  if (!knownRole)
    field.at("role").fail("unknown role '" + role + "'");
  tensor.role = *knownRole;
  std::string type = field.at("dtype").string();
  std::optional<DType> known = dtypeNamed(type);
  if (!known)
    field.at("dtype").fail("unsupported type '" + type + "'");
  tensor.dtype = *known;
  tensor.shape = field.at("shape").shape();
  for (const JsonField &item : field.at("chunks").items())
    tensor.chunks.push_back(readChunk(name, tensor, item));
  return tensor;
}

Contents ContentsReader::read() {
  for (const auto &[name, field] : root.at("files").fields())
    contents.files[name] = readFile(name, field);
  for (const auto &[name, field] : root.at("tensors").fields())
    contents.tensors[name] = readTensor(name, field);
  return std::move(contents);
}

Index checkpoint::parseIndex(const std::string &text,
                             const std::string &origin) {
  std::string place = "damaged checkpoint " + origin;
  json document = parseJson(text, place);
  JsonField root(document, place);
  if (root.at("format").string() != kFormat)
    root.fail("this is no index of a checkpoint of fsdp");
  if (int64_t version = root.at("version").integer(); version != kVersion)
    root.fail("its version is " + std::to_string(version) +
              ", this program reads " + std::to_string(kVersion));
  Index index;
  index.state = stateAt(root.at("state"));
  if (auto model = root.find("model"))
    index.model =
        ModelInfo{model->at("family").string(), model->at("fields").texts()};
  index.contents = ContentsReader(root).read();
  checkCovering(index.contents, place);
  return index;
}

IndexPart checkpoint::parsePart(const std::string &text,
                                const std::string &origin) {
  std::string place = "damaged part of a checkpoint " + origin;
  json document = parseJson(text, place);
  JsonField root(document, place);
  return {root.at("attempt").string(), ContentsReader(root).read()};
}
