//===- SynchronizePass.cpp - The fewest events that order the streams -----===//
//
// Vector clocks: each stream counts its work, and knows of every other stream
// up to which count it has already waited for it. A conflict that the clocks
// order needs no event.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "fsdp/Memory/IssueOrder.h"
#include "passes/Passes.h"
#include <array>
#include <map>

namespace fsdp {
#define GEN_PASS_DEF_SYNCHRONIZE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

namespace {

constexpr size_t kStreams = exec::getMaxEnumValForStream() + 1;

/// Per stream, how many of its first operations; none is 0.
using Clock = std::array<int64_t, kStreams>;

void join(Clock &clock, const Clock &other) {
  for (size_t s = 0; s < kStreams; ++s)
    clock[s] = std::max(clock[s], other[s]);
}

/// Who touched which bytes last. The arena is split into segments of equal
/// history; a write makes one segment of all it covers, so that the number of
/// segments stays near the number of live buffers.
class AccessHistory {
public:
  AccessHistory() { segments[0] = Segment(); }

  /// Raises `need` to what must be over before these bytes are read (or
  /// written).
  void conflicts(ByteSpan bytes, bool write, Clock &need) {
    for (auto at = cut(bytes.begin), end = cut(bytes.end); at != end; ++at) {
      join(need, at->second.written);
      if (write)
        join(need, at->second.read);
    }
  }

  void addRead(ByteSpan bytes, size_t stream, int64_t count) {
    for (auto at = cut(bytes.begin), end = cut(bytes.end); at != end; ++at)
      at->second.read[stream] = count;
  }

  void addWrite(ByteSpan bytes, size_t stream, int64_t count) {
    auto at = cut(bytes.begin), end = cut(bytes.end);
    if (at == end)
      return;
    // Whatever came before is ordered before this write: it alone counts.
    at->second = Segment();
    at->second.written[stream] = count;
    segments.erase(std::next(at), end);
  }

private:
  struct Segment {
    /// The last writer's count on its stream.
    Clock written = {};
    /// Of each stream, the last reader since then.
    Clock read = {};
  };
  using Segments = std::map<int64_t, Segment>;

  /// The segment that begins at `byte`.
  Segments::iterator cut(int64_t byte) {
    auto next = segments.lower_bound(byte);
    if (next != segments.end() && next->first == byte)
      return next;
    return segments.emplace_hint(next, byte, std::prev(next)->second);
  }

  /// By first byte; each reaches to the next.
  Segments segments;
};

/// Plans the events of one program, then writes them.
class Synchronizer {
public:
  Synchronizer(exec::ProgramOp program, const ArenaOffsets &offsets)
      : program(program), offsets(offsets) {}

  LogicalResult run();

private:
  /// An operation as the others see it.
  struct Source {
    /// Null for the start of the program.
    Operation *op;
    /// What is over when it is over.
    Clock clock;
    /// Its event; -1 until somebody waits for it.
    int64_t event = -1;
  };
  struct Wait {
    size_t stream;
    /// Whose source it waits for.
    size_t sourceStream;
    int64_t count;
    /// The operation before which it stands; null at the end.
    Operation *before;
  };

  LogicalResult addWork(Operation *op);
  LogicalResult spans(Operation *op, ArrayRef<Value> values,
                      SmallVectorImpl<ByteSpan> &result);
  void waitFor(size_t stream, const Clock &need, Operation *before);
  void issue(size_t stream, Operation *op);
  Source &sourceOf(size_t stream, int64_t count) {
    return issued[stream][count - 1];
  }
  void write();
  void eraseTokens();

  exec::ProgramOp program;
  const ArenaOffsets &offsets;
  AccessHistory history;
  std::array<std::vector<Source>, kStreams> issued;
  /// What each stream has waited for; its own entry counts its operations.
  std::array<Clock, kStreams> now = {};
  /// What the compute stream awaits before its next operation.
  Clock awaited = {};
  DenseMap<Value, std::pair<size_t, int64_t>> tokens;
  std::vector<Wait> waits;
};

constexpr size_t kCompute = size_t(exec::Stream::Compute);

} // namespace

void Synchronizer::issue(size_t stream, Operation *op) {
  now[stream][stream] = issued[stream].size() + 1;
  issued[stream].push_back({op, now[stream]});
}

/// Makes `stream` wait, before `before`, until `need` is over.
void Synchronizer::waitFor(size_t stream, const Clock &need,
                           Operation *before) {
  auto missing = [&](size_t source) {
    return source != stream && need[source] > now[stream][source];
  };
  for (size_t source = 0; source < kStreams; ++source) {
    if (!missing(source))
      continue;
    // Waiting for another source may be waiting for this one already.
    bool implied = false;
    for (size_t other = 0; other < kStreams; ++other)
      implied |= other != source && missing(other) &&
                 sourceOf(other, need[other]).clock[source] >= need[source];
    if (!implied)
      waits.push_back({stream, source, need[source], before});
  }
  Clock known = now[stream];
  for (size_t source = 0; source < kStreams; ++source)
    if (missing(source))
      join(known, sourceOf(source, need[source]).clock);
  now[stream] = known;
}

LogicalResult Synchronizer::spans(Operation *op, ArrayRef<Value> values,
                                  SmallVectorImpl<ByteSpan> &result) {
  for (Value value : values) {
    std::optional<ByteSpan> span = offsets.spanOf(value);
    if (!span)
      return op->emitOpError("uses a buffer without offset; run "
                             "exec-plan-memory first");
    result.push_back(*span);
  }
  return success();
}

LogicalResult Synchronizer::addWork(Operation *op) {
  SmallVector<ByteSpan> reads, writes;
  if (failed(spans(op, exec::readsOf(op), reads)) ||
      failed(spans(op, exec::writesOf(op), writes)))
    return failure();
  size_t stream = size_t(exec::streamOf(op));
  Clock need = {};
  for (ByteSpan span : reads)
    history.conflicts(span, /*write=*/false, need);
  for (ByteSpan span : writes)
    history.conflicts(span, /*write=*/true, need);
  if (stream == kCompute)
    join(need, std::exchange(awaited, Clock{}));
  else
    // The start of the program is the first operation of compute.
    need[kCompute] = std::max<int64_t>(need[kCompute], 1);
  waitFor(stream, need, op);
  issue(stream, op);
  int64_t count = now[stream][stream];
  for (ByteSpan span : reads)
    history.addRead(span, stream, count);
  for (ByteSpan span : writes)
    history.addWrite(span, stream, count);
  if (op->getNumResults() != 0)
    tokens[op->getResult(0)] = {stream, count};
  return success();
}

LogicalResult Synchronizer::run() {
  issue(kCompute, nullptr);
  for (Operation &op : program.getBody().front()) {
    if (auto await = dyn_cast<exec::AwaitOp>(op)) {
      auto [stream, count] = tokens.at(await.getToken());
      awaited[stream] = std::max(awaited[stream], count);
    } else if (exec::isWork(&op)) {
      if (failed(addWork(&op)))
        return failure();
    } else if (isa<exec::RecordOp, exec::WaitOp, exec::CallOp>(op)) {
      return op.emitOpError("stands in a program that is to be synchronized");
    }
  }
  // Steps do not overlap: the compute stream ends when all streams have.
  Clock all = {};
  for (size_t s = 0; s < kStreams; ++s)
    all[s] = issued[s].size();
  waitFor(kCompute, all, nullptr);
  write();
  eraseTokens();
  return success();
}

/// Writes one record per source that somebody waits for, and the waits.
void Synchronizer::write() {
  Block &body = program.getBody().front();
  OpBuilder builder(program.getContext());
  for (const Wait &wait : waits)
    sourceOf(wait.sourceStream, wait.count).event = 0;
  // Events are numbered in order of issue.
  int64_t next = 0;
  auto record = [&](Source &source, size_t stream) {
    if (source.event < 0)
      return;
    source.event = next++;
    Location loc = source.op ? source.op->getLoc() : program.getLoc();
    if (source.op)
      builder.setInsertionPointAfter(source.op);
    else
      builder.setInsertionPointToStart(&body);
    exec::RecordOp::create(builder, loc, source.event, exec::Stream(stream));
  };
  record(sourceOf(kCompute, 1), kCompute);
  Clock counts = {};
  counts[kCompute] = 1;
  for (Operation &op : llvm::make_early_inc_range(body))
    if (exec::isWork(&op)) {
      size_t stream = size_t(exec::streamOf(&op));
      record(sourceOf(stream, ++counts[stream]), stream);
    }
  for (const Wait &wait : waits) {
    if (wait.before)
      builder.setInsertionPoint(wait.before);
    else
      builder.setInsertionPointToEnd(&body);
    Location loc = wait.before ? wait.before->getLoc() : program.getLoc();
    exec::WaitOp::create(builder, loc,
                         sourceOf(wait.sourceStream, wait.count).event,
                         exec::Stream(wait.stream));
  }
}

/// Events have taken the place of tokens.
void Synchronizer::eraseTokens() {
  Block &body = program.getBody().front();
  for (auto await : llvm::make_early_inc_range(body.getOps<exec::AwaitOp>()))
    await.erase();
  for (auto collective :
       llvm::make_early_inc_range(body.getOps<exec::CollectiveOp>())) {
    if (!collective.getToken())
      continue;
    OpBuilder builder(collective);
    exec::CollectiveOp::create(builder, collective.getLoc(), TypeRange(),
                               collective->getOperands(),
                               collective->getAttrs());
    collective.erase();
  }
}

namespace {

struct SynchronizePass : fsdp::impl::SynchronizeBase<SynchronizePass> {
  using Base::Base;

  void runOnOperation() override {
    ArenaOffsets offsets(getOperation());
    for (auto program : getOperation().getOps<exec::ProgramOp>())
      if (failed(Synchronizer(program, offsets).run()))
        return signalPassFailure();
  }
};

} // namespace
