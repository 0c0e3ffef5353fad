//===- VerifyExecBytes.cpp - Who touches which bytes, and what lies there -===//
//
// The sweep goes from the first byte of the arena to the last and looks, at
// every byte, at the operations that touch it in their order of issue. Ordering
// is transitive, so that only neighbours need a look: each access against the
// write before and the write after it.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Artifact/Box.h"
#include "fsdp/Memory/Lifetimes.h"
#include "passes/Exec/VerifyExec.h"
#include <set>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

RangesAtStart::RangesAtStart(ModuleOp module) {
  for (auto program : module.getOps<exec::ProgramOp>())
    if (auto names = program->getAttrOfType<ArrayAttr>(exec::kWritesAttr))
      for (Attribute name : names)
        writers[name].push_back(program);
}

bool RangesAtStart::isDefined(exec::RangeOp range,
                              exec::ProgramOp program) const {
  if (range.getRole() == exec::Role::Output)
    return false;
  if (range.getRole() != exec::Role::Gradient)
    return true;
  auto at = writers.find(range.getSymNameAttr());
  return at != writers.end() &&
         llvm::any_of(at->second,
                      [&](exec::ProgramOp other) { return other != program; });
}

namespace {

class ByteSweep {
public:
  ByteSweep(exec::ProgramOp program, const std::vector<IssuedOp> &issued,
            const HappensBefore &order, const RangesAtStart &atStart)
      : program(program), issued(issued), order(order), atStart(atStart) {}

  LogicalResult run();

private:
  struct Access {
    size_t op;
    IssuedAccess span;
    bool write;
  };
  /// Indices of accesses, by order of issue.
  using Accesses = std::set<std::pair<size_t, size_t>>;

  LogicalResult collect();
  void collect(size_t op, const IssuedAccess &span, bool write);
  LogicalResult checkPlaces(const IssuedOp &issue);
  LogicalResult checkOperands(const IssuedOp &issue);
  LogicalResult enterRead(size_t access);
  LogicalResult enterWrite(size_t access);
  void leave(size_t access);
  LogicalResult checkOrder(size_t before, size_t after);
  LogicalResult checkContent(size_t read, Accesses::iterator nextWrite);
  LogicalResult checkReadsBefore(Accesses::iterator nextWrite);
  LogicalResult checkChanged();

  Accesses &readsOf(size_t access) {
    return reads[size_t(exec::streamOf(issued[accesses[access].op].op))];
  }
  /// The first write that is issued after operation `op`.
  Accesses::iterator writeAfter(size_t op) {
    return writes.lower_bound({op + 1, 0});
  }
  /// The last write that is issued before operation `op`; end() if none.
  Accesses::iterator writeBefore(size_t op) {
    auto at = writes.lower_bound({op, 0});
    return at == writes.begin() ? writes.end() : std::prev(at);
  }

  exec::ProgramOp program;
  const std::vector<IssuedOp> &issued;
  const HappensBefore &order;
  const RangesAtStart &atStart;
  std::vector<Access> accesses;
  /// Those that cover the byte under the sweep.
  Accesses writes;
  std::array<Accesses, kStreams> reads;
  /// Reads that came at this byte, and operations whose writes came or went.
  std::vector<size_t> newReads;
  std::vector<size_t> changedWrites;
};

} // namespace

/// What an operation that was called uses lies below the peak of the program
/// that calls, and only buffers serve as scratch.
LogicalResult ByteSweep::checkPlaces(const IssuedOp &issue) {
  int64_t peak = *program.getArena();
  for (const auto &list : {ArrayRef(issue.reads), ArrayRef(issue.writes)})
    for (const IssuedAccess &access : list) {
      if (access.bytes.end > peak)
        return issue.op->emitOpError("uses bytes up to ")
               << access.bytes.end << ", but " << program.getSymNameAttr()
               << " has " << peak;
      if (exec::RangeOp range = access.range; range && access.isWorkspace)
        return issue.op->emitOpError("uses range ")
               << range.getSymNameAttr()
               << " as workspace, which would lose its content";
    }
  return success();
}

/// Whether operands of an operation meet in bytes that it writes, apart from
/// inputs that it updates in place. One of the optimizer has all parameters as
/// operands, so not every two of them are compared.
static bool operandsMeet(const IssuedOp &issue) {
  auto work = dyn_cast<exec::WorkOpInterface>(issue.op);
  std::vector<std::pair<ByteSpan, bool>> spans; // and whether it is written
  std::vector<bool> updated(issue.reads.size());
  for (auto [i, write] : llvm::enumerate(issue.writes)) {
    spans.push_back({write.bytes, true});
    std::optional<unsigned> j;
    if (!write.isWorkspace)
      j = work.getInPlaceInput(i);
    if (j && *j < issue.reads.size() &&
        issue.reads[*j].buffer == write.buffer &&
        issue.reads[*j].bytes == write.bytes)
      updated[*j] = true;
  }
  for (auto [j, read] : llvm::enumerate(issue.reads))
    if (!updated[j])
      spans.push_back({read.bytes, false});
  llvm::erase_if(spans, [](const auto &entry) {
    return entry.first.begin == entry.first.end;
  });
  llvm::sort(spans, [](const auto &a, const auto &b) {
    return a.first.begin < b.first.begin;
  });
  int64_t topRead = 0, topWritten = 0;
  for (auto [bytes, written] : spans) {
    if (bytes.begin < topWritten || (written && bytes.begin < topRead))
      return true;
    int64_t &top = written ? topWritten : topRead;
    top = std::max(top, bytes.end);
  }
  return false;
}

/// The operands of one operation must not meet in bytes that it writes, unless
/// it is one that updates a buffer in place.
LogicalResult ByteSweep::checkOperands(const IssuedOp &issue) {
  if (!operandsMeet(issue))
    return success();
  auto work = dyn_cast<exec::WorkOpInterface>(issue.op);
  for (size_t i = 0; i < issue.writes.size(); ++i) {
    const IssuedAccess &write = issue.writes[i];
    std::optional<unsigned> inPlace;
    if (!write.isWorkspace)
      inPlace = work.getInPlaceInput(i);
    for (const IssuedAccess &read : issue.reads) {
      if (!write.bytes.overlaps(read.bytes))
        continue;
      unsigned j = read.operand;
      bool same = read.buffer == write.buffer && read.bytes == write.bytes;
      if (same && inPlace == j)
        continue;
      if (!same || i != j)
        return issue.op->emitOpError("output ")
               << i << " overlaps input " << j << " in the arena";
      return issue.op->emitOpError("output ")
             << i << " is input " << j
             << ", but this operation does not update in place";
    }
    for (size_t j = 0; j < i; ++j)
      if (write.bytes.overlaps(issue.writes[j].bytes))
        return issue.op->emitOpError("outputs ")
               << j << " and " << i << " overlap in the arena";
  }
  return success();
}

/// Runs of bytes that one box may have: each is an access of its own.
static constexpr int64_t kMaxRuns = 1 << 20;

/// Calls `run` with the bytes that `box` covers of a tensor at `output`, run by
/// run. Fails on a box of more than kMaxRuns.
static LogicalResult forEachRun(Operation *op, exec::WrittenBox box,
                                MemRefType type, ByteSpan output,
                                llvm::function_ref<void(ByteSpan)> run) {
  // Only places in the tensor count: where the box comes from, nothing is
  // padded.
  std::vector<int64_t> sizes = box.shape.vec();
  rt::ShardView view{{box.offsets.vec(), sizes}, sizes};
  if (view.elements() == 0)
    return success();
  std::vector<int64_t> shape = type.getShape().vec();
  if (rt::countRuns(view, shape) > kMaxRuns)
    return op->emitOpError("writes its box in more than 2^20 pieces");
  int64_t bytes = type.getElementTypeBitWidth() / 8;
  rt::forEachRun(view, shape, [&](int64_t, int64_t whole, int64_t count) {
    int64_t begin = output.begin + whole * bytes;
    run({begin, begin + count * bytes});
  });
  return success();
}

LogicalResult
proof::forEachWrite(const IssuedOp &issue,
                    llvm::function_ref<void(const IssuedAccess &)> write) {
  auto work = dyn_cast<exec::WorkOpInterface>(issue.op);
  for (const auto &[output, access] : llvm::enumerate(issue.writes)) {
    std::optional<exec::WrittenBox> box;
    if (!access.isWorkspace)
      box = work.getWrittenBox(output);
    if (!box) {
      write(access);
      continue;
    }
    auto writePart = [&, &access = access](ByteSpan bytes) {
      IssuedAccess part = access;
      part.bytes = bytes;
      write(part);
    };
    auto type = cast<MemRefType>(work.getOutputs()[output].getType());
    if (failed(forEachRun(work, *box, type, access.bytes, writePart)))
      return failure();
  }
  return success();
}

void ByteSweep::collect(size_t op, const IssuedAccess &span, bool write) {
  if (span.bytes.begin != span.bytes.end)
    accesses.push_back({op, span, write});
}

LogicalResult ByteSweep::collect() {
  for (size_t i = 0; i < issued.size(); ++i) {
    if (failed(checkPlaces(issued[i])) || failed(checkOperands(issued[i])))
      return failure();
    for (const IssuedAccess &read : issued[i].reads)
      collect(i, read, /*write=*/false);
    auto collectWrite = [&](const IssuedAccess &write) {
      collect(i, write, /*write=*/true);
    };
    if (failed(forEachWrite(issued[i], collectWrite)))
      return failure();
  }
  return success();
}

LogicalResult ByteSweep::checkOrder(size_t before, size_t after) {
  const Access &a = accesses[before], &b = accesses[after];
  if (order.ordered(a.op, b.op))
    return success();
  Operation *first = issued[a.op].op, *second = issued[b.op].op;
  InFlightDiagnostic diagnostic =
      second->emitOpError(b.write ? "writes" : "reads")
      << " bytes [" << std::max(a.span.bytes.begin, b.span.bytes.begin) << ", "
      << std::min(a.span.bytes.end, b.span.bytes.end) << ") on stream "
      << exec::stringifyStream(exec::streamOf(second))
      << " without waiting for the " << (a.write ? "write" : "read")
      << " on stream " << exec::stringifyStream(exec::streamOf(first));
  diagnostic.attachNote(first->getLoc())
      << "the other operation: " << labelOf(first);
  return diagnostic;
}

/// What is read must have been written last by an operation of this program
/// into the same buffer, or, of a range, be there from the start.
LogicalResult ByteSweep::checkContent(size_t read,
                                      Accesses::iterator nextWrite) {
  const IssuedAccess &span = accesses[read].span;
  const Access *last = nextWrite == writes.begin()
                           ? nullptr
                           : &accesses[std::prev(nextWrite)->second];
  // Ranges share no bytes, so that only writes to it reach one.
  bool isKept =
      last ? last->span.buffer == span.buffer && !last->span.isWorkspace
           : span.range && atStart.isDefined(span.range, program);
  if (isKept)
    return success();
  InFlightDiagnostic diagnostic =
      issued[accesses[read].op].op->emitOpError("reads bytes [")
      << span.bytes.begin << ", " << span.bytes.end << ") ";
  if (exec::RangeOp range = span.range; range && !last)
    return diagnostic << "of " << range.getSymNameAttr()
                      << " before the program writes them: what a range of "
                         "role "
                      << exec::stringifyRole(range.getRole())
                      << " holds is left from the last run";
  auto isOwn = [&](auto at) {
    return accesses[at.second].span.buffer == span.buffer &&
           !accesses[at.second].span.isWorkspace;
  };
  bool wasWritten = std::any_of(writes.begin(), nextWrite, isOwn);
  Operation *other = last ? issued[last->op].op : nullptr;
  if (last && last->span.isWorkspace && last->span.buffer == span.buffer)
    diagnostic << "of a workspace, which is invalid after its operation";
  else if (wasWritten)
    diagnostic << "that another buffer has overwritten";
  else
    diagnostic << "that nothing has written into this buffer yet";
  if (other)
    diagnostic.attachNote(other->getLoc())
        << (wasWritten ? "overwritten by: " : "the bytes there belong to: ")
        << labelOf(other);
  return diagnostic;
}

/// Checks the content of every read between `nextWrite` and the write before.
LogicalResult ByteSweep::checkReadsBefore(Accesses::iterator nextWrite) {
  size_t from =
      nextWrite == writes.begin() ? 0 : std::prev(nextWrite)->first + 1;
  // An operation that updates in place reads before it writes.
  size_t to = nextWrite == writes.end() ? issued.size() : nextWrite->first + 1;
  for (Accesses &list : reads)
    for (auto at = list.lower_bound({from, 0});
         at != list.end() && at->first < to; ++at)
      if (failed(checkContent(at->second, nextWrite)))
        return failure();
  return success();
}

LogicalResult ByteSweep::enterRead(size_t access) {
  size_t op = accesses[access].op;
  readsOf(access).insert({op, access});
  auto before = writeBefore(op);
  if (before != writes.end() && failed(checkOrder(before->second, access)))
    return failure();
  auto after = writeAfter(op);
  if (after != writes.end() && failed(checkOrder(access, after->second)))
    return failure();
  newReads.push_back(access);
  return success();
}

LogicalResult ByteSweep::enterWrite(size_t access) {
  size_t op = accesses[access].op;
  writes.insert({op, access});
  changedWrites.push_back(op);
  auto before = writeBefore(op), after = writeAfter(op);
  size_t from = 0, to = issued.size();
  if (before != writes.end()) {
    from = before->first;
    if (failed(checkOrder(before->second, access)))
      return failure();
  }
  if (after != writes.end()) {
    to = after->first;
    if (failed(checkOrder(access, after->second)))
      return failure();
  }
  // A stream runs in order: its last read before and its first read after
  // stand for all.
  for (Accesses &list : reads) {
    auto next = list.lower_bound({op, 0});
    if (next != list.begin() && std::prev(next)->first >= from &&
        failed(checkOrder(std::prev(next)->second, access)))
      return failure();
    next = list.lower_bound({op + 1, 0});
    if (next != list.end() && next->first <= to &&
        failed(checkOrder(access, next->second)))
      return failure();
  }
  return success();
}

/// Those that were neighbours of this access become neighbours of each other:
/// their order is implied, their content is not.
void ByteSweep::leave(size_t access) {
  const Access &leaving = accesses[access];
  if (!leaving.write) {
    readsOf(access).erase({leaving.op, access});
    return;
  }
  writes.erase({leaving.op, access});
  changedWrites.push_back(leaving.op);
}

/// Checks contents once all that comes and goes at a byte has done so.
LogicalResult ByteSweep::checkChanged() {
  for (size_t op : std::exchange(changedWrites, {}))
    if (failed(checkReadsBefore(writeAfter(op))))
      return failure();
  for (size_t access : std::exchange(newReads, {}))
    if (failed(
            checkContent(access, writes.lower_bound({accesses[access].op, 0}))))
      return failure();
  return success();
}

LogicalResult ByteSweep::run() {
  if (failed(collect()))
    return failure();
  struct Boundary {
    int64_t byte;
    bool enters;
    size_t access;
    bool operator<(const Boundary &other) const {
      return std::tie(byte, enters, access) <
             std::tie(other.byte, other.enters, other.access);
    }
  };
  std::vector<Boundary> boundaries;
  for (size_t i = 0; i < accesses.size(); ++i) {
    boundaries.push_back({accesses[i].span.bytes.begin, true, i});
    boundaries.push_back({accesses[i].span.bytes.end, false, i});
  }
  llvm::sort(boundaries);
  for (size_t i = 0; i < boundaries.size(); ++i) {
    const Boundary &boundary = boundaries[i];
    LogicalResult result = success();
    if (!boundary.enters)
      leave(boundary.access);
    else if (accesses[boundary.access].write)
      result = enterWrite(boundary.access);
    else
      result = enterRead(boundary.access);
    bool done =
        i + 1 == boundaries.size() || boundaries[i + 1].byte != boundary.byte;
    if (succeeded(result) && done)
      result = checkChanged();
    if (failed(result))
      return failure();
  }
  return success();
}

LogicalResult proof::verifyBytes(exec::ProgramOp program,
                                 const std::vector<IssuedOp> &issued,
                                 const HappensBefore &order,
                                 const RangesAtStart &atStart) {
  return ByteSweep(program, issued, order, atStart).run();
}
