//===- OutlinePass.cpp - Repeated blocks become functions -----------------===//
//
// A deep model's program is a few blocks of work over and over, at other
// offsets and with other events. Work is compared without offsets; where
// a block repeats, what differs between its copies becomes an argument.
//
//===----------------------------------------------------------------------===//
#include "dialects/Exec/Exec.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Memory/IssueOrder.h"
#include "fsdp/Memory/Lifetimes.h"
#include "passes/Exec/RepeatSections.h"
#include "passes/Passes.h"
#include <map>

namespace fsdp {
#define GEN_PASS_DEF_OUTLINE
#include "passes/Passes.h.inc"
} // namespace fsdp

using namespace mlir;
using namespace fsdp;

//===----------------------------------------------------------------------===//
// What makes operations equal
//===----------------------------------------------------------------------===//

/// Everything about an operation but offsets, event numbers, its module, what
/// it produces and, beside the phase, whom it serves; equal operations have one
/// and the same attribute.
static Attribute shapeOf(Operation *op) {
  SmallVector<NamedAttribute> attrs;
  for (NamedAttribute attr : op->getAttrs())
    if (attr.getName() != "serves" && attr.getName() != "event" &&
        attr.getName() != nn::kModuleAttr &&
        attr.getName() != exec::kProducesAttr)
      attrs.push_back(attr);
  SmallVector<Attribute> parts{op->getName().getIdentifier(),
                               DictionaryAttr::get(op->getContext(), attrs)};
  for (Type type : op->getOperandTypes())
    parts.push_back(TypeAttr::get(type));
  if (auto serves = op->getAttrOfType<dist::OriginAttr>("serves"))
    parts.push_back(StringAttr::get(op->getContext(),
                                    dist::stringifyPhase(serves.getPhase())));
  return ArrayAttr::get(op->getContext(), parts);
}

namespace {

/// What a program does, for comparing it before and after.
struct TraceEntry {
  Attribute shape;
  SmallVector<ByteSpan, 4> spans;
  /// Which buffers these are parts of, numbered by their first use.
  SmallVector<int64_t, 4> buffers;
  int64_t event;
  bool operator==(const TraceEntry &other) const {
    return std::tie(shape, spans, buffers, event) ==
           std::tie(other.shape, other.spans, other.buffers, other.event);
  }
};

} // namespace

static FailureOr<std::vector<TraceEntry>> traceOf(exec::ProgramOp program,
                                                  const ArenaOffsets &offsets) {
  FailureOr<std::vector<IssuedOp>> issued = issueOrder(program, offsets);
  if (failed(issued))
    return failure();
  std::vector<TraceEntry> trace;
  DenseMap<int64_t, int64_t> numbers;
  for (const IssuedOp &issue : *issued) {
    TraceEntry entry{shapeOf(issue.op), {}, {}, issue.event};
    for (const auto &accesses : {ArrayRef(issue.reads), ArrayRef(issue.writes)})
      for (const IssuedAccess &access : accesses) {
        entry.spans.push_back(access.bytes);
        int64_t next = numbers.size();
        entry.buffers.push_back(
            numbers.try_emplace(access.buffer, next).first->second);
      }
    trace.push_back(std::move(entry));
  }
  return trace;
}

static std::vector<RepeatedWork> collectItems(Block &body) {
  std::vector<RepeatedWork> items;
  DenseMap<Attribute, uint32_t> shapes;
  SmallVector<Operation *, 2> pending;
  for (Operation &op : body) {
    if (exec::isWork(&op)) {
      auto [at, isNew] = shapes.insert({shapeOf(&op), shapes.size()});
      items.push_back({&op, at->second, std::move(pending), {}});
      pending.clear();
    } else if (isa<exec::RecordOp>(op) && pending.empty()) {
      // A record before all work marks the program's start and stays there.
      if (!items.empty())
        items.back().after.push_back(&op);
    } else if (isa<exec::RecordOp, exec::WaitOp>(op)) {
      pending.push_back(&op);
    }
  }
  return items;
}

//===----------------------------------------------------------------------===//
// One function for several runs of equal operations
//===----------------------------------------------------------------------===//

namespace {

/// Builds the function for runs of operations that are equal but for
/// offsets and event numbers, and replaces the runs by calls.
class BlockOutliner {
public:
  /// Functions by their text, so that equal blocks share one.
  using Functions = llvm::StringMap<exec::FuncOp>;

  BlockOutliner(ModuleOp module, const ArenaOffsets &offsets,
                Functions &functions)
      : module(module), offsets(offsets), functions(functions),
        builder(module.getContext()) {}

  /// `runs[r][j]` is operation j of run r.
  void outline(ArrayRef<SmallVector<Operation *>> runs, StringRef name);

private:
  /// What one operand slot is in every run.
  struct Column {
    SmallVector<Value> values;
    /// In the function; null until the first use.
    Value inside;
    bool isArgument = false;
  };

  bool isInside(ArrayRef<Value> values) const;
  bool isUsedOnlyIn(size_t run, Value buffer) const;
  size_t columnOf(SmallVector<Value> values);
  size_t columnOfOperand(ArrayRef<Value> values);
  SmallVector<Value> operandsOf(size_t index, unsigned slot) const;
  void findColumns();
  Value operandInside(ArrayRef<Value> values, Block &body);
  Value valueInside(Column &column, Block &body);
  int64_t eventInside(SmallVector<int64_t> numbers);
  void copyOperation(size_t index, Block &body);
  void generaliseNames(Operation *copy, size_t index);
  exec::FuncOp share(exec::FuncOp function, StringRef name);
  void call(exec::FuncOp function, size_t run);

  ModuleOp module;
  const ArenaOffsets &offsets;
  Functions &functions;
  OpBuilder builder;
  ArrayRef<SmallVector<Operation *>> runs;
  DenseMap<Operation *, size_t> runOf;
  std::vector<Column> columns;
  std::map<std::vector<const void *>, size_t> columnsByBuffer;
  /// Per number inside the function, the event in every run.
  std::vector<SmallVector<int64_t>> events;
  /// Views made in the function: column, first byte, type.
  std::map<std::tuple<size_t, int64_t, const void *>, Value> views;
};

} // namespace

/// What names the buffer that `value` is or is part of: ranges have one name
/// however often a program gets them.
static const void *identityOf(Value value) {
  if (auto get = value.getDefiningOp<exec::GetOp>()) {
    if (ArrayAttr adjacent = get.getAdjacentAttr())
      return ArrayAttr::get(get.getContext(), {get.getRangeAttr(), adjacent})
          .getAsOpaquePointer();
    return get.getRangeAttr().getAsOpaquePointer();
  }
  return value.getAsOpaquePointer();
}

/// True if no operation but those of a run uses the buffer or a part of it.
bool BlockOutliner::isUsedOnlyIn(size_t run, Value buffer) const {
  return llvm::all_of(buffer.getUsers(), [&](Operation *user) {
    if (auto view = dyn_cast<exec::ViewOp>(user))
      return isUsedOnlyIn(run, view);
    auto at = runOf.find(user);
    return at != runOf.end() && at->second == run;
  });
}

/// Whether the function can name a buffer by itself: the same range in every
/// run, or a buffer at one place that holds nothing before or after its
/// run. A buffer inside a function is another one in each call, so one that
/// carries something from run to run must be an argument wherever it lies; and
/// so must a part of something that is one.
bool BlockOutliner::isInside(ArrayRef<Value> values) const {
  auto isPart = [](Value value) { return value.getDefiningOp<exec::ViewOp>(); };
  if (llvm::any_of(values, isPart))
    return false;
  int64_t begin = offsets.spanOf(values.front())->begin;
  for (auto [run, value] : llvm::enumerate(values))
    if (offsets.spanOf(value)->begin != begin ||
        (value.getDefiningOp<exec::AllocOp>() && !isUsedOnlyIn(run, value)))
      return false;
  return true;
}

/// The column with these buffers in every run. Buffers that only happen to
/// have the same bytes stay apart: the function reads as its block does, and
/// does not depend on the memory plan.
size_t BlockOutliner::columnOf(SmallVector<Value> values) {
  std::vector<const void *> key;
  for (Value value : values)
    key.push_back(identityOf(value));
  auto [at, inserted] =
      columnsByBuffer.insert({std::move(key), columns.size()});
  if (inserted) {
    bool isArgument = !isInside(values);
    columns.push_back({std::move(values), Value(), isArgument});
  }
  return at->second;
}

/// What a person calls a buffer.
static std::string bufferName(Value value, const ArenaOffsets &offsets) {
  exec::ByteRange range = exec::resolveRange(value);
  Operation *op = range.root.getDefiningOp();
  if (auto get = dyn_cast<exec::GetOp>(op))
    return exec::RangeOp(
               offsets.partsOf(get, {range.begin, range.end}).front().first)
        .getSymName()
        .str();
  return labelOf(op);
}

Value BlockOutliner::valueInside(Column &column, Block &body) {
  if (column.inside)
    return column.inside;
  SmallVector<std::string> names;
  for (Value value : column.values)
    names.push_back(bufferName(value, offsets));
  std::string name = nn::commonName(llvm::to_vector_of<StringRef>(names));
  Value first = column.values.front();
  if (column.isArgument) {
    Location loc = NameLoc::get(builder.getStringAttr(name));
    return column.inside = body.addArgument(first.getType(), loc);
  }
  Operation *copy = builder.clone(*first.getDefiningOp());
  if (auto alloc = dyn_cast<exec::AllocOp>(copy); alloc && alloc.getLabel())
    alloc.setLabel(name);
  return column.inside = copy->getResult(0);
}

/// The column of an operand with these values in the runs: that of the buffers
/// where every run has the same part of a buffer of the same type, one of its
/// own otherwise.
size_t BlockOutliner::columnOfOperand(ArrayRef<Value> values) {
  SmallVector<Value> roots;
  exec::ByteRange first = exec::resolveRange(values.front());
  for (Value value : values) {
    exec::ByteRange range = exec::resolveRange(value);
    if (range.begin != first.begin ||
        range.root.getType() != first.root.getType())
      return columnOf(llvm::to_vector(values));
    roots.push_back(range.root);
  }
  return columnOf(std::move(roots));
}

/// What stands in the function for the operand: the buffer of its column, or a
/// view of that.
Value BlockOutliner::operandInside(ArrayRef<Value> values, Block &body) {
  size_t index = columnOfOperand(values);
  Value inside = valueInside(columns[index], body);
  auto type = cast<MemRefType>(values.front().getType());
  exec::ByteRange first = exec::resolveRange(values.front());
  bool isRoot =
      identityOf(columns[index].values.front()) == identityOf(first.root);
  if (!isRoot || (first.begin == 0 && inside.getType() == type))
    return inside;
  Value &view = views[{index, first.begin, type.getAsOpaquePointer()}];
  if (!view)
    view =
        exec::ViewOp::create(builder, values.front().getLoc(), type, inside,
                             first.begin / (type.getElementTypeBitWidth() / 8));
  return view;
}

SmallVector<Value> BlockOutliner::operandsOf(size_t index,
                                             unsigned slot) const {
  return llvm::map_to_vector(
      runs, [&](auto &run) { return run[index]->getOperand(slot); });
}

/// Where runs use their buffers differently, one buffer of a run is in several
/// columns. The function would have one of its own for each, so all of them
/// become arguments.
void BlockOutliner::findColumns() {
  for (size_t index = 0; index < runs.front().size(); ++index)
    for (unsigned slot = 0; slot < runs.front()[index]->getNumOperands();
         ++slot)
      columnOfOperand(operandsOf(index, slot));
  for (size_t run = 0; run < runs.size(); ++run) {
    DenseMap<Value, Column *> columnOfBuffer;
    for (Column &column : columns) {
      Value root = exec::resolveRange(column.values[run]).root;
      if (!root.getDefiningOp<exec::AllocOp>())
        continue;
      auto [at, isFirst] = columnOfBuffer.insert({root, &column});
      if (!isFirst)
        at->second->isArgument = column.isArgument = true;
    }
  }
}

int64_t BlockOutliner::eventInside(SmallVector<int64_t> numbers) {
  auto at = llvm::find(events, numbers);
  if (at != events.end())
    return at - events.begin();
  events.push_back(std::move(numbers));
  return events.size() - 1;
}

/// Names that number a block get a star in its place.
void BlockOutliner::generaliseNames(Operation *copy, size_t index) {
  SmallVector<StringRef> modules;
  for (const SmallVector<Operation *> &run : runs)
    modules.push_back(nn::modulePathOf(run[index]));
  auto serves = llvm::map_to_vector(runs, [&](auto &run) {
    return run[index]->template getAttrOfType<dist::OriginAttr>("serves");
  });
  if (serves.front())
    copy->setAttr("serves", dist::commonOrigin(serves));
  if (!llvm::all_equal(modules))
    nn::setModule(copy, builder.getStringAttr(nn::commonName(modules)));
}

void BlockOutliner::copyOperation(size_t index, Block &body) {
  Operation *first = runs.front()[index];
  SmallVector<Value> operands;
  for (unsigned slot = 0; slot < first->getNumOperands(); ++slot)
    operands.push_back(operandInside(operandsOf(index, slot), body));
  Operation *copy = builder.clone(*first);
  copy->setOperands(operands);
  copy->removeAttr(exec::kProducesAttr); // what differs is said by the calls
  generaliseNames(copy, index);
  auto numberEvents = [&](auto event) {
    SmallVector<int64_t> numbers;
    for (const SmallVector<Operation *> &run : runs)
      numbers.push_back(cast<decltype(event)>(run[index]).getEvent());
    event.setEvent(eventInside(std::move(numbers)));
  };
  if (auto record = dyn_cast<exec::RecordOp>(copy))
    numberEvents(record);
  else if (auto wait = dyn_cast<exec::WaitOp>(copy))
    numberEvents(wait);
}

/// An equal function made before instead of this one, or this one, named.
exec::FuncOp BlockOutliner::share(exec::FuncOp function, StringRef name) {
  std::string text;
  llvm::raw_string_ostream os(text);
  function->print(os, OpPrintingFlags().useLocalScope());
  auto [at, inserted] = functions.insert({text, function});
  if (!inserted) {
    function.erase();
    return at->second;
  }
  function.setSymName((name + "_" + Twine(functions.size() - 1)).str());
  return function;
}

/// Puts a call in place of a run.
void BlockOutliner::call(exec::FuncOp function, size_t run) {
  SmallVector<Value> operands;
  SmallVector<int64_t> numbers;
  SmallVector<Attribute> produced;
  bool isNamed = false;
  for (const Column &column : columns)
    if (column.isArgument)
      operands.push_back(column.values[run]);
  for (const SmallVector<int64_t> &event : events)
    numbers.push_back(event[run]);
  for (Operation *op : runs[run]) {
    isNamed |= op->hasAttr(exec::kProducesAttr);
    if (exec::isWork(op))
      produced.push_back(exec::producedBy(op));
  }
  // Everything the run uses is defined before its last operation.
  builder.setInsertionPoint(runs[run].back());
  auto call = exec::CallOp::create(builder, runs[run].front()->getLoc(),
                                   function.getSymName(), operands, numbers);
  if (isNamed)
    call->setAttr(exec::kProducesAttr, builder.getArrayAttr(produced));
  for (Operation *op : runs[run])
    op->erase();
}

void BlockOutliner::outline(ArrayRef<SmallVector<Operation *>> theRuns,
                            StringRef name) {
  runs = theRuns;
  for (auto [run, operations] : llvm::enumerate(runs))
    for (Operation *op : operations)
      runOf[op] = run;
  findColumns();
  builder.setInsertionPoint(
      runs.front().front()->getParentOfType<exec::ProgramOp>());
  auto function =
      exec::FuncOp::create(builder, runs.front().front()->getLoc(), "block");
  Block &body = function.getBody().emplaceBlock();
  builder.setInsertionPointToEnd(&body);
  for (size_t index = 0; index < runs.front().size(); ++index)
    copyOperation(index, body);
  function = share(function, name);

  for (size_t run = 0; run < runs.size(); ++run)
    call(function, run);
}

//===----------------------------------------------------------------------===//
// The pass
//===----------------------------------------------------------------------===//

/// Ranges, buffers and views that only functions use now.
static void eraseUnused(Block &body) {
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
    if (isa<exec::GetOp, exec::AllocOp, exec::ViewOp>(op) && op.use_empty())
      op.erase();
}

/// "train_layers" for a block of @train whose work is named "layers.3.…".
static std::string functionName(exec::ProgramOp program,
                                const std::vector<RepeatedWork> &items,
                                const Repeat &repeat) {
  for (size_t i = 0; i < repeat.period; ++i) {
    StringRef list =
        nn::blockListOf(nn::modulePathOf(items[repeat.begin + i].op));
    if (!list.empty())
      return (program.getSymName() + "_" + list).str();
  }
  return (program.getSymName() + "_block").str();
}

namespace {

struct OutlinePass : fsdp::impl::OutlineBase<OutlinePass> {
  using Base::Base;

  void runOnOperation() override {
    ArenaOffsets offsets(getOperation());
    BlockOutliner::Functions functions;
    for (auto program :
         llvm::to_vector(getOperation().getOps<exec::ProgramOp>()))
      if (failed(outline(program, offsets, functions)))
        return signalPassFailure();
  }

  LogicalResult outline(exec::ProgramOp program, const ArenaOffsets &offsets,
                        BlockOutliner::Functions &functions) {
    FailureOr<std::vector<TraceEntry>> before = traceOf(program, offsets);
    if (failed(before))
      return failure();
    Block &body = program.getBody().front();
    std::vector<RepeatedWork> items = collectItems(body);
    std::vector<uint32_t> shapes;
    for (const RepeatedWork &item : items)
      shapes.push_back(item.shape);
    for (const Repeat &repeat : findRepeats(shapes, minSaved)) {
      std::string name = functionName(program, items, repeat);
      RepeatSections sections(items, repeat, minSaved);
      for (const RepeatSection &section : sections.best()) {
        SmallVector<SmallVector<Operation *>> runs;
        for (size_t copy : section.copies)
          runs.push_back(sections.operations(section, copy));
        BlockOutliner(getOperation(), offsets, functions).outline(runs, name);
      }
    }
    eraseUnused(body);
    // The calls, followed, must do what the program did.
    FailureOr<std::vector<TraceEntry>> after = traceOf(program, offsets);
    if (failed(after) || *before != *after)
      return program.emitOpError("does something else after outlining");
    return success();
  }
};

} // namespace
