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
#include "passes/Exec/Repeats.h"
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

/// Work with the events around it.
struct Item {
  Operation *op;
  uint32_t shape;
  /// Waits, and records of streams whose work is further back.
  SmallVector<Operation *, 2> before;
  /// Records directly after.
  SmallVector<Operation *, 2> after;
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

static std::vector<Item> collectItems(Block &body) {
  std::vector<Item> items;
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
// Where a repeated block is split
//===----------------------------------------------------------------------===//

namespace {

/// A part of the block of a repeat, items [begin, end), and the copies of the
/// block in which the events inside it agree.
struct Section {
  size_t begin;
  size_t end;
  SmallVector<size_t> copies;
};

/// Events need not repeat as regularly as work: which wait is needed depends
/// on where the memory plan put a buffer. A gap between two items whose events
/// differ between copies can be left in the program, between two calls; or the
/// copies that differ can be left out of a function. The cheaper is chosen.
class RepeatSections {
public:
  RepeatSections(const std::vector<Item> &items, const Repeat &repeat,
                 int64_t minSaved);

  /// The sections worth a function, in the cheapest split.
  std::vector<Section> best() const { return sectionsOf(cuts).first; }
  /// The operations of one copy of a section, events included.
  SmallVector<Operation *> operations(const Section &section,
                                      size_t copy) const;

private:
  using Gap = std::pair<ArrayRef<Operation *>, ArrayRef<Operation *>>;
  Gap gap(size_t index, size_t copy) const;
  const Item &item(size_t index, size_t copy) const {
    return items[repeat.begin + copy * repeat.period + index];
  }
  /// Where less than this share of the copies agrees.
  std::vector<bool> cutsBelow(double agreement) const;
  /// The sections between the splits, and the statements of the program then.
  std::pair<std::vector<Section>, size_t>
  sectionsOf(const std::vector<bool> &cuts) const;

  const std::vector<Item> &items;
  Repeat repeat;
  int64_t minSaved;
  /// Per gap (before item 0, between items, after the last) and copy: a
  /// number for the kinds and streams of its events.
  std::vector<std::vector<uint32_t>> events;
  std::vector<bool> cuts;
};

} // namespace

RepeatSections::Gap RepeatSections::gap(size_t index, size_t copy) const {
  Gap result;
  if (index > 0)
    result.first = item(index - 1, copy).after;
  if (index < repeat.period)
    result.second = item(index, copy).before;
  return result;
}

RepeatSections::RepeatSections(const std::vector<Item> &items,
                               const Repeat &repeat, int64_t minSaved)
    : items(items), repeat(repeat), minSaved(minSaved) {
  std::map<std::vector<int>, uint32_t> numbers;
  events.resize(repeat.period + 1);
  for (size_t index = 0; index <= repeat.period; ++index)
    for (size_t copy = 0; copy < repeat.count; ++copy) {
      std::vector<int> kinds;
      Gap ops = gap(index, copy);
      for (ArrayRef<Operation *> list : {ops.first, ops.second})
        for (Operation *op : list) {
          auto wait = dyn_cast<exec::WaitOp>(op);
          exec::Stream stream =
              wait ? wait.getStream() : cast<exec::RecordOp>(op).getStream();
          kinds.push_back(2 * int(stream) + (wait ? 1 : 0));
        }
      events[index].push_back(
          numbers.insert({std::move(kinds), numbers.size()}).first->second);
    }
  size_t cheapest = SIZE_MAX;
  for (double agreement : {0.0, 0.5, 0.75, 0.9, 1.0}) {
    std::vector<bool> candidate = cutsBelow(agreement);
    size_t statements = sectionsOf(candidate).second;
    if (statements < cheapest) {
      cheapest = statements;
      cuts = std::move(candidate);
    }
  }
}

std::vector<bool> RepeatSections::cutsBelow(double agreement) const {
  std::vector<bool> result;
  for (const std::vector<uint32_t> &numbers : events) {
    std::map<uint32_t, size_t> copies;
    size_t most = 0;
    for (uint32_t number : numbers)
      most = std::max(most, ++copies[number]);
    result.push_back(double(most) < agreement * double(repeat.count));
  }
  return result;
}

std::pair<std::vector<Section>, size_t>
RepeatSections::sectionsOf(const std::vector<bool> &cuts) const {
  std::vector<Section> sections;
  size_t statements = 0;
  for (size_t begin = 0, end; begin < repeat.period; begin = end) {
    end = begin + 1;
    while (end < repeat.period && !cuts[end])
      ++end;
    std::map<std::vector<uint32_t>, Section> groups;
    for (size_t copy = 0; copy < repeat.count; ++copy) {
      std::vector<uint32_t> key;
      for (size_t index = begin; index <= end; ++index)
        key.push_back(cuts[index] ? 0 : events[index][copy]);
      Section &section = groups[key];
      section.begin = begin;
      section.end = end;
      section.copies.push_back(copy);
    }
    for (auto &[key, section] : groups) {
      size_t count = section.copies.size();
      bool pays = count > 1 && savedBy(end - begin, count) >= minSaved;
      statements += pays ? end - begin + count : count * (end - begin);
      if (pays)
        sections.push_back(std::move(section));
    }
  }
  return {std::move(sections), statements};
}

SmallVector<Operation *> RepeatSections::operations(const Section &section,
                                                    size_t copy) const {
  SmallVector<Operation *> ops;
  for (size_t index = section.begin; index <= section.end; ++index) {
    // Events at a split stay in the program; both ends of a section inside the
    // block are splits.
    if (!cuts[index]) {
      Gap events = gap(index, copy);
      llvm::append_range(ops, events.first);
      llvm::append_range(ops, events.second);
    }
    if (index < section.end)
      ops.push_back(item(index, copy).op);
  }
  return ops;
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

/// What names the buffer that `value` is or is part of: a range has one name
/// however often a program gets it.
static const void *identityOf(Value value) {
  if (auto get = value.getDefiningOp<exec::GetOp>())
    return get.getRangeAttr().getAsOpaquePointer();
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
  if (values.front().getDefiningOp<exec::ViewOp>())
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
static std::string bufferName(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto get = dyn_cast<exec::GetOp>(op))
    return get.getRange().str();
  return labelOf(op);
}

Value BlockOutliner::valueInside(Column &column, Block &body) {
  if (column.inside)
    return column.inside;
  SmallVector<std::string> names;
  for (Value value : column.values)
    names.push_back(bufferName(exec::resolveRange(value).root));
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

/// What stands in the function for an operand with these values in the runs:
/// a view of an argument where every run has the same view of a buffer of the
/// same type, an argument of its own otherwise.
Value BlockOutliner::operandInside(ArrayRef<Value> values, Block &body) {
  SmallVector<Value> roots;
  exec::ByteRange first = exec::resolveRange(values.front());
  for (Value value : values) {
    exec::ByteRange range = exec::resolveRange(value);
    if (range.begin != first.begin ||
        range.root.getType() != first.root.getType()) {
      Column &own = columns[columnOf(llvm::to_vector(values))];
      return valueInside(own, body);
    }
    roots.push_back(range.root);
  }
  size_t index = columnOf(std::move(roots));
  Value root = valueInside(columns[index], body);
  auto type = cast<MemRefType>(values.front().getType());
  if (first.begin == 0 && root.getType() == type)
    return root;
  Value &view = views[{index, first.begin, type.getAsOpaquePointer()}];
  if (!view)
    view =
        exec::ViewOp::create(builder, values.front().getLoc(), type, root,
                             first.begin / (type.getElementTypeBitWidth() / 8));
  return view;
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
  for (unsigned slot = 0; slot < first->getNumOperands(); ++slot) {
    SmallVector<Value> values;
    for (const SmallVector<Operation *> &run : runs)
      values.push_back(run[index]->getOperand(slot));
    operands.push_back(operandInside(values, body));
  }
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
                                const std::vector<Item> &items,
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
    std::vector<Item> items = collectItems(body);
    std::vector<uint32_t> shapes;
    for (const Item &item : items)
      shapes.push_back(item.shape);
    for (const Repeat &repeat : findRepeats(shapes, minSaved)) {
      std::string name = functionName(program, items, repeat);
      RepeatSections sections(items, repeat, minSaved);
      for (const Section &section : sections.best()) {
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
