//===- Checkpointer.cpp - Checkpoints of a run, while it runs -------------===//
#include "Checkpointer.h"
#include "Agreement.h"
#include "LastExport.h"
#include "RunHeader.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Half.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Console.h"
#include "runtime/report/Metrics.h"
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <new>

using namespace fsdp;
using namespace fsdp::checkpoint;
using namespace fsdp::rt;

/// A save on its way. Whoever writes this rank's part says so by `part`; the
/// rest is the thread's, and others read it when that has ended.
struct Checkpointer::Running {
  SaveRequest request;
  std::vector<SavedChunk> chunks;
  double bytes = 0; // of all ranks
  Clock::time_point begin;
  double blocked = 0; // seconds
  std::atomic<Parts> parts{Parts::Awaited};
  std::atomic<bool> failed{false};
  std::promise<void> part; // this rank's is written, or failed
  std::string partProblem, commitProblem;
  std::thread thread;
};

static double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

Checkpointer::Checkpointer(const Rank &rank, const RunConfig &config)
    : rank(rank), config(config), folder(checkpointFolder(config)),
      attempt(broadcastText(randomId())),
      isAsync(config.checkpoint.asyncMode != AsyncMode::Disabled),
      watch(rank.world(), fileTimeout()) {
  // Until this rank has ended no other job may write to the folder.
  requireSuccess(rank.world(), problemOf([&] {
                   if (!rank.isFirst())
                     lock = FolderLock::joinFirst(folder);
                 }));
  uint64_t bytes = 0;
  for (OwnedBox &box : ownedBoxes(rank.manifest(), rank.world().rank)) {
    pieces.push_back({std::move(box), bytes});
    bytes += pieces.back().box.range->bytes;
  }
  if (!isAsync)
    return;
  requireSuccess(rank.world(), problemOf([&] {
                   try {
                     staging.resize(bytes); // zeros: it is touched
                   } catch (const std::bad_alloc &) {
                     throw Error(
                         "there is no memory to stage checkpoints, " +
                         grouped(static_cast<int64_t>(bytes)) +
                         " bytes; --checkpoint.async_mode=disabled takes none");
                   }
                 }));
}

Checkpointer::~Checkpointer() {
  if (!running)
    return;
  running->parts = Parts::Cancelled;
  running->thread.join();
}

//===----------------------------------------------------------------------===//
// What is written
//===----------------------------------------------------------------------===//

/// Hands the bytes of this rank's part of a range to its argument, in order.
std::function<void(const TakePiece &)>
Checkpointer::sourceOf(const Piece &piece) const {
  const RangeInfo *range = piece.box.range;
  if (!isAsync)
    return [this, range](const TakePiece &take) { rank.read(*range, take); };
  const std::byte *from = staging.data() + piece.place;
  return [=](const TakePiece &take) { take(from, 0, range->bytes); };
}

static bool holds(SaveContents contents, const RangeInfo &range) {
  return contents == SaveContents::Everything ||
         range.role == RangeRole::Parameter;
}

/// `count` values of f32 as bf16. Throws fsdp::Error for one that is too large.
static void writeNarrow(const std::string &tensor, const std::byte *from,
                        int64_t count,
                        const std::function<void(std::string_view)> &sink) {
  constexpr int64_t kMost = 1 << 15;
  uint16_t narrow[kMost];
  for (int64_t done = 0; done < count; done += kMost) {
    int64_t now = std::min(kMost, count - done);
    for (int64_t i = 0; i < now; ++i) {
      float value;
      std::memcpy(&value, from + (done + i) * 4, sizeof value);
      narrow[i] = floatToBF16(value);
      if (std::isfinite(value) && !std::isfinite(bf16ToFloat(narrow[i])))
        throw Error(format("the tensor '%s' has a value of %g, which would be "
                           "infinite as bfloat16; "
                           "--checkpoint.export_dtype=float32 holds it",
                           tensor.c_str(), static_cast<double>(value)));
    }
    sink(
        {reinterpret_cast<const char *>(narrow), static_cast<size_t>(2 * now)});
  }
}

std::vector<SavedChunk> Checkpointer::chunksOf(SaveContents contents) const {
  std::vector<SavedChunk> chunks;
  for (const Piece &piece : pieces) {
    const RangeInfo &range = *piece.box.range;
    if (!holds(contents, range))
      continue;
    SavedChunk chunk = piece.box.chunk;
    bool isNarrow = contents == SaveContents::Export &&
                    range.dtype == DType::F32 &&
                    config.checkpoint.exportDtype == ExportDtype::BFloat16;
    if (isNarrow)
      chunk.dtype = DType::BF16;
    chunk.write = [source = sourceOf(piece), view = piece.box.view, &range,
                   isNarrow](const auto &sink) {
      auto element = static_cast<uint64_t>(sizeOf(range.dtype));
      source([&](const std::byte *data, uint64_t first, uint64_t bytes) {
        auto begin = static_cast<int64_t>(first / element);
        // Padding is left out.
        forEachRunWithin(
            begin, static_cast<int64_t>(bytes / element), view, range.full,
            [&](int64_t stored, int64_t, int64_t count) {
              const std::byte *from =
                  data + static_cast<uint64_t>(stored - begin) * element;
              if (isNarrow)
                writeNarrow(range.name, from, count, sink);
              else
                sink({reinterpret_cast<const char *>(from),
                      static_cast<size_t>(count) * element});
            });
      });
    };
    chunks.push_back(std::move(chunk));
  }
  return chunks;
}

void Checkpointer::copyToStaging(SaveContents contents) {
  for (const Piece &piece : pieces) {
    const RangeInfo &range = *piece.box.range;
    if (holds(contents, range))
      rank.read(range, 0, range.bytes, staging.data() + piece.place);
  }
}

static uint64_t bytesOf(const std::vector<SavedChunk> &chunks) {
  uint64_t bytes = 0;
  for (const SavedChunk &chunk : chunks)
    bytes += static_cast<uint64_t>(chunk.elements()) *
             static_cast<uint64_t>(sizeOf(chunk.dtype));
  return bytes;
}

//===----------------------------------------------------------------------===//
// A save
//===----------------------------------------------------------------------===//

static void warnOf(const std::string &folder, const std::vector<int64_t> &steps,
                   const char *what) {
  for (int64_t step : steps)
    printMessage(kRunWarning, "'" + stepFolder(folder, step) + "' " + what);
}

/// Removes what is older. That something stays is no reason to end a run.
static void prune(const std::string &folder, int64_t step, int64_t keep) {
  std::string problem = problemOf([&] {
    std::vector<int64_t> steps = committedSteps(folder);
    // After an older step than the newest, the newest are of another run.
    if (steps.empty() || steps.back() != step)
      return;
    Pruned pruned = pruneCheckpoints(folder, keep);
    warnOf(folder, pruned.foreign,
           "stays: it contains a file that is not part of a checkpoint");
    warnOf(folder, pruned.damaged,
           "is damaged (see fsdp-checkpoint verify): it stays and does not "
           "count among checkpoint.keep_latest_k");
  });
  if (!problem.empty())
    printMessage(kRunWarning, "old checkpoints stay: " + problem);
}

void Checkpointer::writeOwnPart(Running &save) {
  save.partProblem =
      problemOf([&] { writePart(save.request, std::move(save.chunks)); });
  save.failed = !save.partProblem.empty();
  save.part.set_value();
}

void Checkpointer::commit(Running &save) const {
  if (save.failed || !rank.isFirst())
    return;
  bool isCommitted = false;
  save.commitProblem =
      problemOf([&] { isCommitted = commitSave(save.request, save.parts); });
  save.failed = !save.commitProblem.empty();
  if (!isCommitted)
    return;
  int64_t step = save.request.state.step;
  prune(folder, step, config.checkpoint.keepLatestK);
  print(format("checkpoint: step %s saved to %s: %s bytes in %.2f s, the run "
               "waited %.3f s\n",
               grouped(step).c_str(), stepFolder(folder, step).c_str(),
               grouped(static_cast<int64_t>(save.bytes)).c_str(),
               secondsSince(save.begin),
               isAsync ? save.blocked : secondsSince(save.begin)));
}

void Checkpointer::save(const RunState &state, SaveContents contents) {
  waitForLast(state.step);
  auto save = std::make_unique<Running>();
  save->begin = Clock::now();
  save->request.folder = folder;
  save->request.state = state;
  save->request.model = rank.manifest().model;
  save->request.rank = rank.world().rank;
  save->request.ranks = rank.world().size;
  save->request.attempt = attempt + "-" + std::to_string(state.step);
  watch.begin("the checkpoint of step " + std::to_string(state.step));
  std::string problem;
  if (rank.isFirst()) {
    removeAbandoned();
    problem = problemOf([&] { beginSave(save->request); });
  }
  if (!handle(problem, *save)) {
    watch.end();
    return;
  }
  if (isAsync)
    copyToStaging(contents);
  save->chunks = chunksOf(contents);
  save->bytes = static_cast<double>(bytesOf(save->chunks));
  allReduceSum(&save->bytes, 1);
  save->blocked = secondsSince(save->begin);
  last = state.step;
  running = std::move(save);
  // What comes from the arena is read where the step's device is in use: a new
  // thread has another.
  if (!isAsync)
    writeOwnPart(*running);
  running->thread = std::thread([this] {
    if (isAsync)
      writeOwnPart(*running);
    commit(*running);
  });
  if (!isAsync)
    finish();
}

void Checkpointer::waitForLast(int64_t step) {
  if (!running)
    return;
  int64_t before = running->request.state.step;
  Clock::time_point begin = Clock::now();
  finish();
  double waited = secondsSince(begin);
  if (rank.isFirst() && waited > 0.1)
    print(format("checkpoint: step %s waited %.1f s until step %s was written; "
                 "a longer checkpoint.interval avoids that\n",
                 grouped(step).c_str(), waited, grouped(before).c_str()));
}

bool Checkpointer::hasFailed() const { return running && running->failed; }

/// What the disk does not let go now it may later.
void Checkpointer::abandon(const Running &save) {
  if (rank.isFirst() && !problemOf([&] { abandonSave(save.request); }).empty())
    abandoned.push_back(save.request);
}

void Checkpointer::removeAbandoned() {
  auto isGone = [](const SaveRequest &request) {
    return problemOf([&] { abandonSave(request); }).empty();
  };
  abandoned.erase(std::remove_if(abandoned.begin(), abandoned.end(), isGone),
                  abandoned.end());
}

namespace {
/// Whatever is thrown, it is over.
struct EndOfWatch {
  SaveWatch &watch;
  ~EndOfWatch() { watch.end(); }
};
} // namespace

void Checkpointer::finish() {
  if (!running)
    return;
  EndOfWatch end{watch};
  running->part.get_future().wait();
  // What ends here must not be met again, whatever is thrown.
  std::unique_ptr<Running> ended;
  if (countFailures(rank.world(), running->partProblem).count == 0) {
    running->parts = Parts::Written;
    running->thread.join();
    if (countFailures(rank.world(), running->commitProblem).count == 0) {
      running.reset();
      return;
    }
  } else {
    running->parts = Parts::Cancelled;
    running->thread.join();
  }
  abandon(*running);
  ended = std::move(running);
  handle(ended->partProblem + ended->commitProblem, *ended);
}

void Checkpointer::exportSaved(int64_t step) {
  watch.begin("the export of step " + std::to_string(step));
  EndOfWatch end{watch};
  exportStep(config, step);
}

/// What there is besides a checkpoint that could not be saved.
static std::string describeOthers(const std::string &folder, int64_t step) {
  std::vector<int64_t> steps;
  // The folder may be what the save failed for.
  std::string problem = problemOf([&] { steps = committedSteps(folder); });
  // It may itself be in its place, though not for sure on the disk.
  steps.erase(std::lower_bound(steps.begin(), steps.end(), step), steps.end());
  if (!problem.empty())
    return "those before it cannot be looked for: " + problem;
  return steps.empty()
             ? "there is none before it"
             : "the newest before it is " + stepFolder(folder, steps.back());
}

/// Returns whether no rank has a problem. One that has it says so, and ends the
/// run if it is not to go on.
bool Checkpointer::handle(const std::string &problem, const Running &save) {
  Failures failures = countFailures(rank.world(), problem);
  if (failures.count == 0)
    return true;
  last = -1;
  int64_t step = save.request.state.step;
  std::string text = "the checkpoint of step " + std::to_string(step) +
                     " could not be saved: " + problem + "; " +
                     describeOthers(folder, step);
  if (config.checkpoint.onError == SaveErrorPolicy::Stop)
    requireSuccess(rank.world(), problem.empty() ? "" : text);
  else if (failures.first == rank.world().rank)
    printMessage(
        kRunWarning,
        (rank.world().size > 1 ? format("rank %d: ", rank.world().rank) : "") +
            text + "; the run continues");
  return false;
}
