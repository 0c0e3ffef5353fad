//===- IssueOrder.cpp - Bytes and order of a planned program --------------===//
#include "fsdp/Memory/IssueOrder.h"

using namespace mlir;
using namespace fsdp;

ArenaOffsets::ArenaOffsets(ModuleOp module) {
  for (auto range : module.getOps<exec::RangeOp>())
    ranges[range.getSymNameAttr()] = range;
}

std::optional<ByteSpan> ArenaOffsets::spanOf(Value buffer) const {
  exec::ByteRange range = exec::resolveRange(buffer);
  std::optional<int64_t> offset;
  if (auto alloc = range.root.getDefiningOp<exec::AllocOp>()) {
    if (alloc.getOffset())
      offset = *alloc.getOffset();
  } else if (auto get = range.root.getDefiningOp<exec::GetOp>()) {
    if (exec::RangeOp named = rangeOf(get))
      offset = named.getOffset();
  }
  if (!offset)
    return std::nullopt;
  return ByteSpan{*offset + range.begin, *offset + range.end};
}

SmallVector<std::pair<exec::RangeOp, ByteSpan>, 1>
ArenaOffsets::partsOf(exec::GetOp get, ByteSpan bytes) const {
  SmallVector<std::pair<exec::RangeOp, ByteSpan>, 1> parts;
  int64_t begin = 0;
  for (StringAttr name : get.getRanges()) {
    exec::RangeOp range = rangeOf(name);
    ByteSpan own{begin, begin + exec::bytesOf(range.getMemRefType())};
    // A view without elements is somewhere too.
    bool isEmpty = bytes.begin == bytes.end && bytes.begin <= own.end;
    if (own.overlaps(bytes) || (isEmpty && parts.empty()))
      parts.push_back({range,
                       {std::max(own.begin, bytes.begin) - begin,
                        std::min(own.end, bytes.end) - begin}});
    begin = own.end;
  }
  return parts;
}

namespace {

class IssueWalker {
public:
  explicit IssueWalker(const ArenaOffsets &offsets) : offsets(offsets) {}

  LogicalResult walk(Block &body, exec::CallOp call);

  std::vector<IssuedOp> issued;

private:
  LogicalResult walkCall(exec::CallOp call);
  LogicalResult addWork(Operation *op, exec::CallOp call);
  LogicalResult addEvent(Operation *op, int64_t event, exec::CallOp call);
  LogicalResult addReads(IssuedOp &issue);
  LogicalResult addWrites(IssuedOp &issue);
  /// Bytes of a buffer of the program.
  struct Place {
    Value root;
    ByteSpan bytes; ///< From its start.
  };
  Place placeOf(Value value) const;
  FailureOr<SmallVector<IssuedAccess, 1>> accessesOf(Operation *op, Value value,
                                                     unsigned operand);
  int64_t idOf(Value root, exec::RangeOp range);

  const ArenaOffsets &offsets;
  SymbolTableCollection symbols;
  /// What the arguments of the function being walked stand for.
  DenseMap<Value, Place> arguments;
  /// The numbers of ranges, of the program's buffers, and of those of the
  /// function being walked.
  DenseMap<Operation *, int64_t> ranges;
  DenseMap<Value, int64_t> ofProgram;
  DenseMap<Value, int64_t> ofCall;
  int64_t buffers = 0;
};

} // namespace

int64_t IssueWalker::idOf(Value root, exec::RangeOp range) {
  bool isInside = isa<exec::FuncOp>(root.getParentBlock()->getParentOp());
  int64_t next = buffers;
  int64_t id = range ? ranges.try_emplace(range, next).first->second
                     : (isInside ? ofCall : ofProgram)
                           .try_emplace(root, next)
                           .first->second;
  buffers += id == next ? 1 : 0;
  return id;
}

IssueWalker::Place IssueWalker::placeOf(Value value) const {
  exec::ByteRange range = exec::resolveRange(value);
  auto at = arguments.find(range.root);
  if (at == arguments.end())
    return {range.root, {range.begin, range.end}};
  int64_t base = at->second.bytes.begin;
  return {at->second.root, {base + range.begin, base + range.end}};
}

FailureOr<SmallVector<IssuedAccess, 1>>
IssueWalker::accessesOf(Operation *op, Value value, unsigned operand) {
  Place place = placeOf(value);
  std::optional<ByteSpan> root = offsets.spanOf(place.root);
  if (!root)
    return op->emitOpError("uses a buffer without offset; run "
                           "exec-plan-memory first");
  SmallVector<IssuedAccess, 1> accesses;
  auto add = [&](int64_t offset, ByteSpan bytes, exec::RangeOp range) {
    IssuedAccess &access = accesses.emplace_back();
    access.bytes = {offset + bytes.begin, offset + bytes.end};
    access.range = range;
    access.operand = operand;
    access.buffer = idOf(place.root, range);
  };
  auto get = place.root.getDefiningOp<exec::GetOp>();
  if (!get)
    add(root->begin, place.bytes, {});
  else
    for (auto [range, bytes] : offsets.partsOf(get, place.bytes))
      add(*range.getOffset(), bytes, range);
  return accesses;
}

LogicalResult IssueWalker::addReads(IssuedOp &issue) {
  SmallVector<IssuedAccess, 1> others;
  for (auto [number, value] : llvm::enumerate(exec::readsOf(issue.op))) {
    auto accesses = accessesOf(issue.op, value, number);
    if (failed(accesses))
      return failure();
    issue.reads.push_back(accesses->front());
    llvm::append_range(others, llvm::drop_begin(*accesses));
  }
  llvm::append_range(issue.reads, others);
  return success();
}

LogicalResult IssueWalker::addWrites(IssuedOp &issue) {
  for (auto [number, value] : llvm::enumerate(exec::writesOf(issue.op))) {
    auto accesses = accessesOf(issue.op, value, number);
    if (failed(accesses))
      return failure();
    if (accesses->size() > 1)
      return issue.op->emitOpError("writes @")
             << (*accesses)[0].range.getSymName() << " and @"
             << (*accesses)[1].range.getSymName()
             << " as one; several ranges are only read so";
    issue.writes.push_back(accesses->front());
  }
  size_t workspaces = exec::workspacesOf(issue.op).size();
  for (IssuedAccess &access :
       MutableArrayRef(issue.writes).take_back(workspaces))
    access.isWorkspace = true;
  return success();
}

LogicalResult IssueWalker::addWork(Operation *op, exec::CallOp call) {
  if (op->getNumResults() != 0)
    return op->emitOpError("still has a token; run exec-synchronize first");
  IssuedOp issue;
  issue.op = op;
  issue.call = call;
  if (failed(addReads(issue)) || failed(addWrites(issue)))
    return failure();
  issued.push_back(std::move(issue));
  return success();
}

LogicalResult IssueWalker::addEvent(Operation *op, int64_t event,
                                    exec::CallOp call) {
  if (call) {
    ArrayRef<int64_t> events = call.getEvents();
    if (event < 0 || event >= int64_t(events.size())) {
      InFlightDiagnostic diagnostic = op->emitOpError("event ")
                                      << event << " is not one of the "
                                      << events.size() << " of the call";
      diagnostic.attachNote(call.getLoc()) << "called here";
      return diagnostic;
    }
    event = events[event];
  }
  IssuedOp issue;
  issue.op = op;
  issue.call = call;
  issue.event = event;
  issued.push_back(std::move(issue));
  return success();
}

LogicalResult IssueWalker::walkCall(exec::CallOp call) {
  auto function =
      symbols.lookupNearestSymbolFrom<exec::FuncOp>(call, call.getCalleeAttr());
  assert(function && "checked by the verifier of exec.call");
  Block &body = function.getBody().front();
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), call.getOperands())) {
    Place place = placeOf(operand);
    if (!offsets.spanOf(place.root))
      return call.emitOpError("uses a buffer without offset; run "
                              "exec-plan-memory first");
    arguments[argument] = place;
  }
  ofCall.clear();
  return walk(body, call);
}

LogicalResult IssueWalker::walk(Block &body, exec::CallOp call) {
  for (Operation &op : body) {
    LogicalResult result = success();
    if (auto inner = dyn_cast<exec::CallOp>(op)) {
      if (call)
        return inner.emitOpError("stands inside an exec.func");
      result = walkCall(inner);
    } else if (isa<exec::AwaitOp>(op)) {
      return op.emitOpError("is left; run exec-synchronize first");
    } else if (auto record = dyn_cast<exec::RecordOp>(op)) {
      result = addEvent(&op, record.getEvent(), call);
    } else if (auto wait = dyn_cast<exec::WaitOp>(op)) {
      result = addEvent(&op, wait.getEvent(), call);
    } else if (exec::isWork(&op)) {
      result = addWork(&op, call);
    }
    if (failed(result))
      return failure();
  }
  return success();
}

FailureOr<std::vector<IssuedOp>> fsdp::issueOrder(exec::ProgramOp program,
                                                  const ArenaOffsets &offsets) {
  IssueWalker walker(offsets);
  if (failed(walker.walk(program.getBody().front(), exec::CallOp())))
    return failure();
  return std::move(walker.issued);
}
