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
  FailureOr<IssuedAccess> accessOf(Operation *op, Value value);
  int64_t idOf(Value root, exec::RangeOp range);

  const ArenaOffsets &offsets;
  SymbolTableCollection symbols;
  /// What the arguments of the function being walked stand for.
  DenseMap<Value, IssuedAccess> arguments;
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

FailureOr<IssuedAccess> IssueWalker::accessOf(Operation *op, Value value) {
  exec::ByteRange range = exec::resolveRange(value);
  if (auto at = arguments.find(range.root); at != arguments.end()) {
    IssuedAccess access = at->second;
    int64_t base = access.bytes.begin;
    access.bytes = {base + range.begin, base + range.end};
    return access;
  }
  std::optional<ByteSpan> root = offsets.spanOf(range.root);
  if (!root)
    return op->emitOpError("uses a buffer without offset; run "
                           "exec-plan-memory first");
  IssuedAccess access;
  access.bytes = {root->begin + range.begin, root->begin + range.end};
  if (auto get = range.root.getDefiningOp<exec::GetOp>())
    access.range = offsets.rangeOf(get);
  access.buffer = idOf(range.root, access.range);
  return access;
}

LogicalResult IssueWalker::addWork(Operation *op, exec::CallOp call) {
  if (op->getNumResults() != 0)
    return op->emitOpError("still has a token; run exec-synchronize first");
  IssuedOp issue;
  issue.op = op;
  issue.call = call;
  auto collect = [&](ArrayRef<Value> values, auto &accesses) {
    for (Value value : values) {
      FailureOr<IssuedAccess> access = accessOf(op, value);
      if (failed(access))
        return failure();
      accesses.push_back(*access);
    }
    return success();
  };
  if (failed(collect(exec::readsOf(op), issue.reads)) ||
      failed(collect(exec::writesOf(op), issue.writes)))
    return failure();
  size_t workspaces = exec::workspacesOf(op).size();
  for (IssuedAccess &access :
       MutableArrayRef(issue.writes).take_back(workspaces))
    access.isWorkspace = true;
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
    FailureOr<IssuedAccess> access = accessOf(call, operand);
    if (failed(access))
      return failure();
    arguments[argument] = *access;
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
