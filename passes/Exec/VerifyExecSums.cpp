//===- VerifyExecSums.cpp - Programs add and clear as they state ----------===//
//
// Follows, in order of issue, where what a range held when the program started
// lies with something added to it, and where zeros lie. An addition is that of
// a kernel, element by element, of exec.gemm_add or of exec.accumulate, and a
// copy keeps what it copies; all other work produces something new. What is
// added is not looked at.
//
//===----------------------------------------------------------------------===//
#include "passes/Exec/VerifyExec.h"
#include <map>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// How many additions of one value are looked at.
static constexpr unsigned kMaxAddends = 64;

/// What is left of a value that is rounded to `element`, as every op rounds.
static Value withoutRounding(Value value, Type element) {
  auto widened = value.getDefiningOp<arith::ExtFOp>();
  auto narrowed = widened ? widened.getIn().getDefiningOp<arith::TruncFOp>()
                          : arith::TruncFOp();
  return narrowed && narrowed.getType() == element ? narrowed.getIn() : value;
}

/// The inputs that `store` adds to: loaded where it stores, of its type, and
/// changed by nothing but additions.
static SmallVector<unsigned, 2> addendsOf(exec::KernelOp kernel,
                                          exec::StoreOp store) {
  auto numberOf = [](Value argument) {
    return cast<BlockArgument>(argument).getArgNumber();
  };
  unsigned inputs =
      kernel.getBody().getNumArguments() - unsigned(kernel.getOutputs());
  auto target = cast<MemRefType>(store.getTarget().getType());
  auto unrounded = [&](Value value) {
    return withoutRounding(value, target.getElementType());
  };
  SmallVector<unsigned, 2> addends;
  SmallVector<Value> pending;
  auto addOperands = [&](Value value) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<arith::AddFOp, arith::AddIOp>(op))
      llvm::append_range(pending,
                         llvm::map_range(op->getOperands(), unrounded));
  };
  addOperands(unrounded(store.getValue()));
  for (unsigned looked = 0; !pending.empty() && looked < kMaxAddends;
       ++looked) {
    Value value = pending.pop_back_val();
    addOperands(value);
    auto load = value.getDefiningOp<exec::LoadOp>();
    if (!load || load.getColumn())
      continue;
    unsigned number = numberOf(load.getSource());
    auto source = cast<MemRefType>(load.getSource().getType());
    if (number < inputs && source.getElementType() == target.getElementType() &&
        kernel.getAccess()[number] ==
            kernel.getAccess()[numberOf(store.getTarget())])
      addends.push_back(number);
  }
  return addends;
}

ArrayRef<unsigned> KernelSums::addendsOf(exec::LaunchOp launch,
                                         unsigned output) {
  auto [at, isNew] = known.try_emplace(launch.getKernelAttr().getAttr());
  auto &outputs = at->second;
  if (isNew) {
    auto kernel = module.lookupSymbol<exec::KernelOp>(launch.getKernelAttr());
    unsigned first =
        kernel.getBody().getNumArguments() - unsigned(kernel.getOutputs());
    outputs.resize(kernel.getOutputs());
    std::vector<unsigned> stores(outputs.size());
    kernel.walk([&](exec::StoreOp store) {
      unsigned number =
          cast<BlockArgument>(store.getTarget()).getArgNumber() - first;
      outputs[number] = ::addendsOf(kernel, store);
      // Of two stores neither is known to be the last.
      if (++stores[number] > 1)
        outputs[number].clear();
    });
  }
  return outputs[output];
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

namespace {

/// What lies in bytes of the arena.
struct Content {
  enum Kind { Zeros, Old, Sum } kind;
  /// The range whose bytes they were, and how far after these bytes they lie.
  exec::RangeOp range = {};
  int64_t distance = 0;

  bool operator==(const Content &other) const {
    return kind == other.kind && range == other.range &&
           distance == other.distance;
  }
};

/// Bytes of which something is known.
class KnownBytes {
public:
  void forget(ByteSpan span);
  void set(ByteSpan span, const Content &content) {
    forget(span);
    if (span.begin != span.end)
      runs.insert({span.begin, {span.end, content}});
  }
  /// What all bytes of `span` are; none if they differ.
  std::optional<Content> of(ByteSpan span) const;
  void copy(ByteSpan from, ByteSpan to);

private:
  struct Run {
    int64_t end;
    Content content;
  };
  using Runs = std::map<int64_t, Run>; // by their beginning, apart
  /// The first run that ends after `byte`.
  Runs::const_iterator firstEndingAfter(int64_t byte) const {
    auto next = runs.upper_bound(byte);
    if (next != runs.begin() && std::prev(next)->second.end > byte)
      --next;
    return next;
  }
  Runs runs;
};

} // namespace

void KnownBytes::forget(ByteSpan span) {
  auto next = firstEndingAfter(span.begin);
  while (next != runs.end() && next->first < span.end) {
    auto [begin, run] = *next;
    next = runs.erase(next);
    if (begin < span.begin)
      runs.insert({begin, {span.begin, run.content}});
    if (run.end > span.end)
      next = runs.insert({span.end, {run.end, run.content}}).first;
  }
}

std::optional<Content> KnownBytes::of(ByteSpan span) const {
  auto next = firstEndingAfter(span.begin);
  if (next == runs.end() || span.begin == span.end)
    return std::nullopt;
  Content content = next->second.content;
  for (int64_t byte = span.begin; byte < span.end; ++next) {
    if (next == runs.end() || next->first > byte ||
        !(next->second.content == content))
      return std::nullopt;
    byte = next->second.end;
  }
  return content;
}

void KnownBytes::copy(ByteSpan from, ByteSpan to) {
  int64_t moved = to.begin - from.begin;
  SmallVector<std::pair<ByteSpan, Content>> copies;
  for (auto next = firstEndingAfter(from.begin);
       next != runs.end() && next->first < from.end; ++next) {
    Content content = next->second.content;
    content.distance -= content.kind == Content::Zeros ? 0 : moved;
    copies.push_back({{std::max(next->first, from.begin) + moved,
                       std::min(next->second.end, from.end) + moved},
                      content});
  }
  forget(to);
  for (const auto &[span, content] : copies)
    set(span, content);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

static ByteSpan spanOf(exec::RangeOp range) {
  int64_t begin = *range.getOffset();
  return {begin, begin + exec::bytesOf(range.getMemRefType())};
}

namespace {

class SumsVerifier {
public:
  SumsVerifier(const Statement &statement, const std::vector<IssuedOp> &issued,
               const Statement::Ranges &cleared, KernelSums &kernels)
      : statement(statement), issued(issued), kernels(kernels) {
    for (exec::RangeOp range : cleared)
      if (statement.reads.contains(range) && statement.writes.contains(range) &&
          !statement.adds.contains(range) && !statement.clears.contains(range))
        unstated.insert(range);
  }

  LogicalResult run();

private:
  LogicalResult follow(ArrayRef<exec::RangeOp> ranges);
  LogicalResult follow(const IssuedOp &issue);
  SmallVector<std::pair<ByteSpan, Content>> sumsOf(const IssuedOp &issue);
  bool isSum(exec::RangeOp range) const {
    return contents.of(spanOf(range)) == Content{Content::Sum, range};
  }
  bool isZero(exec::RangeOp range) const {
    return contents.of(spanOf(range)) == Content{Content::Zeros};
  }
  LogicalResult checkSum(exec::RangeOp range);
  InFlightDiagnostic emit(exec::RangeOp range, StringRef what);

  const Statement &statement;
  const std::vector<IssuedOp> &issued;
  KernelSums &kernels;
  /// Ranges to which the program may add without a statement.
  Statement::Ranges unstated;
  KnownBytes contents;
  llvm::DenseMap<exec::RangeOp, Operation *> lastWrites;
};

} // namespace

/// What work produces by an addition.
SmallVector<std::pair<ByteSpan, Content>>
SumsVerifier::sumsOf(const IssuedOp &issue) {
  SmallVector<std::pair<ByteSpan, Content>> sums;
  auto add = [&](unsigned input, unsigned output) {
    ByteSpan from = issue.reads[input].bytes, to = issue.writes[output].bytes;
    // The first of several ranges that are read as one is not what is added.
    if (from.end - from.begin != to.end - to.begin)
      return;
    std::optional<Content> content = contents.of(from);
    if (content && content->kind != Content::Zeros)
      sums.push_back({to,
                      {Content::Sum, content->range,
                       content->distance + from.begin - to.begin}});
  };
  if (auto launch = dyn_cast<exec::LaunchOp>(issue.op))
    for (unsigned output = 0; output < issue.writes.size(); ++output)
      for (unsigned input : kernels.addendsOf(launch, output))
        add(input, output);
  if (isa<exec::GemmAddOp, exec::AccumulateOp>(issue.op))
    for (unsigned output = 0; output < issue.writes.size(); ++output)
      if (auto input = cast<exec::WorkOpInterface>(issue.op).getInPlaceInput(
              output)) // a workspace has none
        add(*input, output);
  return sums;
}

LogicalResult SumsVerifier::follow(const IssuedOp &issue) {
  for (const IssuedAccess &write : issue.writes)
    if (write.range)
      lastWrites[write.range] = issue.op;
  if (isa<exec::CopyOp>(issue.op)) {
    int64_t to = issue.writes[0].bytes.begin;
    for (const IssuedAccess &read : issue.reads) {
      int64_t end = to + read.bytes.end - read.bytes.begin;
      contents.copy(read.bytes, {to, end});
      to = end;
    }
    return success();
  }
  auto sums = sumsOf(issue);
  auto forget = [&](const IssuedAccess &write) {
    contents.forget(write.bytes);
  };
  if (failed(forEachWrite(issue, forget)))
    return failure();
  if (isa<exec::FillZeroOp>(issue.op))
    contents.set(issue.writes[0].bytes, {Content::Zeros});
  for (const auto &[span, content] : sums)
    contents.set(span, content);
  return success();
}

/// Follows the program, and what `ranges` held before it.
LogicalResult SumsVerifier::follow(ArrayRef<exec::RangeOp> ranges) {
  contents = {};
  for (exec::RangeOp range : ranges)
    contents.set(spanOf(range), {Content::Old, range});
  for (const IssuedOp &issue : issued)
    if (exec::isWork(issue.op) && failed(follow(issue)))
      return failure();
  return success();
}

InFlightDiagnostic SumsVerifier::emit(exec::RangeOp range, StringRef what) {
  Operation *place = lastWrites.lookup(range);
  if (!place)
    place = statement.program;
  return place->emitOpError(what) << " @" << range.getSymName();
}

/// A program either states to add to `range` or does not add to it.
LogicalResult SumsVerifier::checkSum(exec::RangeOp range) {
  bool isStated = statement.adds.contains(range);
  if (isSum(range) == isStated)
    return success();
  StringRef name = exec::ProgramOp(statement.program).getSymName();
  if (isStated)
    return emit(range, "does not leave the sum of the previous value and "
                       "something else in")
           << ", but @" << name << " states that it adds to it ("
           << exec::kAddsAttr << ")";
  return emit(range, "adds to")
         << ", which its step clears, but @" << name
         << " does not state that it does (" << exec::kAddsAttr
         << "); nn.accumulate states it";
}

LogicalResult SumsVerifier::run() {
  SmallVector<exec::RangeOp> ranges(statement.adds.begin(),
                                    statement.adds.end());
  llvm::append_range(ranges, unstated);
  if (ranges.empty() && statement.clears.empty())
    return success();
  if (failed(follow(ranges)))
    return failure();
  for (exec::RangeOp range : statement.clears)
    if (!isZero(range))
      return emit(range, "does not leave zeros in")
             << ", but @" << exec::ProgramOp(statement.program).getSymName()
             << " states that it clears it (" << exec::kClearsAttr << ")";
  // A value may be a sum of several ranges, of which one is followed.
  SmallVector<exec::RangeOp> others;
  llvm::copy_if(ranges, std::back_inserter(others),
                [&](exec::RangeOp range) { return !isSum(range); });
  for (exec::RangeOp range : ranges)
    if (isSum(range) && failed(checkSum(range)))
      return failure();
  for (exec::RangeOp range : others)
    if (failed(follow(range)) || failed(checkSum(range)))
      return failure();
  return success();
}

llvm::DenseMap<Attribute, Statement::Ranges>
proof::clearedBySteps(ModuleOp module, ArrayRef<Statement> statements) {
  llvm::DenseMap<Attribute, Statement::Ranges> cleared;
  llvm::DenseMap<Attribute, const Statement *> byName;
  for (const Statement &statement : statements)
    byName[exec::ProgramOp(statement.program).getSymNameAttr()] = &statement;
  for (const auto &[step, actions] : exec::stepsOf(module)) {
    Statement::Ranges ranges;
    for (const exec::StepAction &action : actions)
      if (const Statement *statement = byName.lookup(action.program.getAttr()))
        ranges.insert_range(statement->clears);
    for (const exec::StepAction &action : actions)
      cleared[action.program.getAttr()].insert_range(ranges);
  }
  return cleared;
}

LogicalResult proof::verifySums(const Statement &statement,
                                const std::vector<IssuedOp> &issued,
                                const Statement::Ranges &cleared,
                                KernelSums &kernels) {
  return SumsVerifier(statement, issued, cleared, kernels).run();
}
