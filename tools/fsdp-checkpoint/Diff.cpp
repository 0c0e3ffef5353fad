//===- Diff.cpp - fsdp-checkpoint diff ------------------------------------===//
#include "Commands.h"
#include "Table.h"
#include "fsdp/Support/ParallelFor.h"
#include "fsdp/Support/Text.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

using Texts = std::map<std::string, std::string>;

static void addRun(Texts &texts, const RunState &state) {
  texts.insert({{"tokens", std::to_string(state.tokens)},
                {"seed", std::to_string(state.seed)},
                {"dataset", state.dataset},
                {"dataset_path", state.datasetPath},
                {"dataset_bytes", std::to_string(state.datasetBytes)},
                {"train_bytes", std::to_string(state.trainBytes)},
                {"global_batch", std::to_string(state.globalBatch)},
                {"sequence", std::to_string(state.sequence)},
                {"skipped_steps", std::to_string(state.skippedSteps)},
                {"schedule_start", std::to_string(state.scheduleStart)},
                {"mesh", state.mesh},
                {"ranks", std::to_string(state.ranks)}});
  if (state.datasetChecksum)
    texts["dataset_xxh3"] = checksumText(*state.datasetChecksum);
  if (!state.idsType.empty())
    texts["ids_dtype"] = state.idsType;
  if (!state.dataOrder.empty())
    texts["data_order"] = state.dataOrder;
  if (!state.packing.empty())
    texts["packing"] = state.packing;
  if (state.maskChecksum)
    texts["ids_mask_xxh3"] = checksumText(*state.maskChecksum);
  texts.insert(state.config.begin(), state.config.end());
}

/// Everything but tensors, by name.
static Texts settingsOf(const TensorStore &store) {
  Texts texts;
  if (store.state()) {
    const RunState &state = *store.state();
    texts = {{"step", std::to_string(state.step)},
             {"optimizer_start", std::to_string(state.optimizerStart)}};
    if (!state.stepsAlone)
      addRun(texts, state);
  }
  if (store.model()) {
    texts["model"] = store.model()->family;
    for (const auto &[key, value] : store.model()->fields)
      texts["model: " + key] = value;
  }
  return texts;
}

/// Returns how many settings differ.
static size_t diffSettings(const TensorStore &a, const TensorStore &b) {
  Texts inA = settingsOf(a), inB = settingsOf(b), keys = inA;
  keys.insert(inB.begin(), inB.end());
  Table table({"setting", "A", "B"});
  size_t different = 0;
  auto valueIn = [](const Texts &texts, const std::string &key) {
    auto found = texts.find(key);
    return found == texts.end() ? std::string("(none)") : found->second;
  };
  for (const auto &[key, unused] : keys) {
    std::string valueA = valueIn(inA, key), valueB = valueIn(inB, key);
    if (valueA == valueB)
      continue;
    table.add({key, valueA, valueB});
    ++different;
  }
  if (different > 0)
    std::printf("%s\n", table.text().c_str());
  return different;
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

static bool lacksLayout(const TensorStore &store) {
  return store.model() && store.model()->fields.count("rope_halves") == 0;
}

/// The same weights in two rotary layouts are equal. Of other models, rows are
/// compared as they lie.
static void takeOneLayout(TensorStore &a, TensorStore &b) {
  std::optional<ModelInfo> model = a.model() ? a.model() : b.model();
  if (!model || lacksLayout(a) || lacksLayout(b) ||
      (a.model() && b.model() &&
       !modelDifference(*b.model(), *a.model()).empty()))
    return;
  a.adaptTo(*model);
  b.adaptTo(*model);
}

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

namespace {

/// Compares two tensors of one shape, a piece at a time: bits, and of pieces
/// that differ the values.
class Comparison {
public:
  Comparison(const StoredTensor &a, const StoredTensor &b)
      : shape(a.shape), elements(elementCount(a.shape)),
        // Of different types, values alone can be equal.
        type(a.dtype == b.dtype ? a.dtype : DType::F64),
        readA(a, wholeView(a), type), readB(b, wholeView(b), type),
        valuesA(a, wholeView(a), DType::F64),
        valuesB(b, wholeView(b), DType::F64) {}

  std::string run();

private:
  void comparePiece(int64_t first, int64_t count);

  std::vector<int64_t> shape;
  int64_t elements;
  DType type;
  TensorReader readA, readB, valuesA, valuesB;
  std::vector<std::byte> a, b;      // a piece
  std::vector<double> wideA, wideB; // its values
  int64_t different = 0, largestAt = 0;
  double largest = -1; // NaN: one of the two is none
};

} // namespace

/// Reads a piece as the type of `to`.
static void readValues(TensorReader &reader, int64_t first, int64_t count,
                       std::vector<double> &to) {
  to.resize(static_cast<size_t>(count));
  reader.read(first, count, reinterpret_cast<std::byte *>(to.data()));
}

void Comparison::comparePiece(int64_t first, int64_t count) {
  auto size = static_cast<size_t>(sizeOf(type));
  readA.read(first, count, a.data());
  readB.read(first, count, b.data());
  if (std::memcmp(a.data(), b.data(), static_cast<size_t>(count) * size) == 0)
    return;
  readValues(valuesA, first, count, wideA);
  readValues(valuesB, first, count, wideB);
  for (int64_t i = 0; i < count; ++i) {
    size_t at = static_cast<size_t>(i) * size;
    if (std::memcmp(a.data() + at, b.data() + at, size) == 0)
      continue;
    ++different;
    double distance =
        std::abs(wideA[static_cast<size_t>(i)] - wideB[static_cast<size_t>(i)]);
    if (std::isnan(largest) || distance <= largest)
      continue;
    largest = distance;
    largestAt = first + i;
  }
}

std::string Comparison::run() {
  constexpr int64_t kPiece = 1 << 20; // elements
  a.resize(static_cast<size_t>(std::min(kPiece, elements) * sizeOf(type)));
  b.resize(a.size());
  for (int64_t first = 0; first < elements; first += kPiece)
    comparePiece(first, std::min(kPiece, elements - first));
  if (different == 0)
    return "";
  return format("%lld of %lld elements; largest absolute difference %g at %s",
                static_cast<long long>(different),
                static_cast<long long>(elements), largest,
                indexText(largestAt, shape).c_str());
}

/// What differs between two tensors of one name.
static std::string diffTensor(const StoredTensor &a, const StoredTensor &b) {
  if (a.shape != b.shape)
    return "shape " + shapeText(a.shape) + " | " + shapeText(b.shape);
  std::string types;
  if (a.dtype != b.dtype)
    types =
        std::string("type ") + dtypeName(a.dtype) + " | " + dtypeName(b.dtype);
  std::string values = Comparison(a, b).run();
  if (types.empty())
    return values;
  return types + "; " + (values.empty() ? "equal values" : values);
}

/// Returns how many tensors differ or have no counterpart.
static size_t diffTensors(const TensorStore &a, const TensorStore &b,
                          int threads) {
  std::vector<const StoredTensor *> both;
  size_t alone = 0;
  for (const auto &[mine, other, name] :
       {std::tuple(&a, &b, "A"), std::tuple(&b, &a, "B")})
    for (const StoredTensor &tensor : mine->tensors())
      if (!other->find(tensor.name)) {
        std::printf("only in %s: %s, %s %s\n", name,
                    printableLine(tensor.name).c_str(), dtypeName(tensor.dtype),
                    shapeText(tensor.shape).c_str());
        ++alone;
      } else if (mine == &a) {
        both.push_back(&tensor);
      }
  std::vector<std::string> texts(both.size());
  parallelFor(both.size(), threads, [&](size_t i) {
    texts[i] = diffTensor(*both[i], *b.find(both[i]->name));
  });
  Table table({"tensor", "difference"});
  size_t different = 0;
  for (size_t i = 0; i < both.size(); ++i)
    if (!texts[i].empty()) {
      table.add({both[i]->name, texts[i]});
      ++different;
    }
  if (different > 0)
    std::printf("%s", table.text().c_str());
  std::printf("%zu tensors have equal bits, %zu differ, %zu are in one alone\n",
              both.size() - different, different, alone);
  return different + alone;
}

std::function<int()> checkpoint::declareDiff(CLI::App &app) {
  struct Options {
    std::string a, b;
    bool tensors = false;
    int threads = availableThreads();
  };
  auto options = std::make_shared<Options>();
  app.add_option("A", options->a, kPathHelp)->required();
  app.add_option("B", options->b, kPathHelp)->required();
  app.add_flag("--tensors", options->tensors,
               "compare only the tensors, not the runs");
  app.add_option("--threads", options->threads, "threads that read")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.footer("The exit status is 1 if they differ. Tensors are compared as a "
             "whole, however each was sharded.");
  return [options] {
    auto a = openTensorStore(options->a), b = openTensorStore(options->b);
    std::printf("A %s\nB %s\n", a->path().c_str(), b->path().c_str());
    size_t different = options->tensors ? 0 : diffSettings(*a, *b);
    takeOneLayout(*a, *b);
    different += diffTensors(*a, *b, options->threads);
    return different == 0 ? 0 : 1;
  };
}
