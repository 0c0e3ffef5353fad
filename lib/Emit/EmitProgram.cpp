//===- EmitProgram.cpp - exec.program and exec.func to functions ----------===//
//
// A program issues its work in order: one call of the runtime per op. Buffers
// are pointers into the one arena. A function shared by several places
// (exec.func) gets the offsets of its buffers as a struct and the numbers of
// its events as an array, so that consecutive calls of it are one loop over a
// table: the text and its compile time do not grow with the depth of the model.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "dialects/NN/ModulePath.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

namespace {

class BodyEmitter {
public:
  BodyEmitter(const FileNames &file, Tables &tables, llvm::raw_ostream &os)
      : file(file), tables(tables), os(os), names(&file.scope) {}

  /// Inside an exec.func, events and buffers are relative to the call.
  bool inFunction = false;

  LogicalResult body(Block &block);
  /// Names the buffers of an exec.func and prints the struct of their offsets.
  void offsetStruct(Block &block, ArrayRef<std::string> labels, StringRef type);
  /// Declares these buffers.
  void arguments(Block &block);

private:
  LogicalResult work(Operation *op);
  void comment(Operation *op);
  void statement(const std::string &text) { wrap(os, text + ";", 2); }

  /// The expression of a buffer's address; declares a variable the first time
  /// that a buffer is used.
  std::string pointer(Value buffer);
  std::string offset(Value buffer);
  std::string list(ValueRange buffers);
  std::string eventNumber(int64_t event);
  void declareInterval(exec::AllocOp alloc);
  std::string rangeOffset(exec::GetOp get, ByteSpan bytes);

  std::string launch(exec::LaunchOp op);

  void calls(ArrayRef<exec::CallOp> run);

  const FileNames &file;
  Tables &tables;
  llvm::raw_ostream &os;
  NameScope names;
  llvm::DenseMap<Value, std::string> declared; // variable of a root buffer
  StringRef lastComment;
};

} // namespace

//===----------------------------------------------------------------------===//
// Buffers
//===----------------------------------------------------------------------===//

static std::string plus(const std::string &text, int64_t bytes) {
  return bytes == 0 ? text : text + " + " + std::to_string(bytes);
}

void BodyEmitter::declareInterval(exec::AllocOp alloc) {
  StringRef label = alloc.getLabel().value_or("interval");
  std::string name =
      names.unique(identifier(inFunction ? nn::withoutBlock(label) : label));
  os << "  const Ptr " << name << " = base + " << *alloc.getOffset() << "; // "
     << shapeText(cast<MemRefType>(alloc.getResult().getType())) << '\n';
  declared[alloc] = name;
}

/// The place of bytes of an exec.get: of the range that has the first of them.
std::string BodyEmitter::rangeOffset(exec::GetOp get, ByteSpan bytes) {
  auto [range, own] = file.arena.partsOf(get, bytes).front();
  return plus(file.ranges.lookup(range.getSymName()), own.begin);
}

std::string BodyEmitter::pointer(Value buffer) {
  exec::ByteRange range = exec::resolveRange(buffer);
  if (auto get = range.root.getDefiningOp<exec::GetOp>())
    return "base + " + rangeOffset(get, {range.begin, range.end});
  if (auto alloc = range.root.getDefiningOp<exec::AllocOp>())
    if (!declared.count(range.root))
      declareInterval(alloc);
  return plus(declared.lookup(range.root), range.begin);
}

/// The byte offset of a buffer in the arena, for the table of a call.
std::string BodyEmitter::offset(Value buffer) {
  exec::ByteRange range = exec::resolveRange(buffer);
  if (auto get = range.root.getDefiningOp<exec::GetOp>())
    return rangeOffset(get, {range.begin, range.end});
  if (auto alloc = range.root.getDefiningOp<exec::AllocOp>())
    return std::to_string(*alloc.getOffset() + range.begin);
  auto arg = cast<BlockArgument>(range.root);
  return plus("buffers." + declared.lookup(arg), range.begin);
}

std::string BodyEmitter::list(ValueRange buffers) {
  SmallVector<std::string> all;
  for (Value buffer : buffers)
    all.push_back(pointer(buffer));
  return "{" + llvm::join(all, ", ") + "}";
}

std::string BodyEmitter::eventNumber(int64_t event) {
  return inFunction ? llvm::formatv("event[{0}]", event).str()
                    : std::to_string(file.events.at(event));
}

void BodyEmitter::offsetStruct(Block &block, ArrayRef<std::string> labels,
                               StringRef type) {
  os << "struct " << type << " {\n";
  for (BlockArgument arg : block.getArguments()) {
    std::string name = names.unique(identifier(labels[arg.getArgNumber()]));
    declared[arg] = name;
    os << "  uint64_t " << name << "; // "
       << shapeText(cast<MemRefType>(arg.getType())) << '\n';
  }
  os << "};\n";
}

void BodyEmitter::arguments(Block &block) {
  for (BlockArgument arg : block.getArguments()) {
    const std::string &name = declared[arg];
    if (!arg.use_empty())
      os << "  const Ptr " << name << " = base + buffers." << name << ";\n";
  }
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

void BodyEmitter::comment(Operation *op) {
  StringRef name = nn::modulePathOf(op);
  if (name.empty() || name == lastComment)
    return;
  os << "  // " << inComment(name) << '\n';
  lastComment = name;
}

std::string BodyEmitter::launch(exec::LaunchOp op) {
  auto kernel = SymbolTable::lookupNearestSymbolFrom<exec::KernelOp>(
      op, op.getKernelAttr());
  std::string all = list(
      llvm::to_vector(llvm::concat<Value>(op.getInputs(), op.getOutputs())));
  return llvm::formatv("{0}(c, {1}, {2}, {3}, {4}, {5}, {6})",
                       file.kernels->launchFunction(kernel),
                       streamName(op.getStream()), quoted(op.getKernel()),
                       file.functions.lookup(op.getKernel()), kernel.getRows(),
                       kernel.getCols(), all);
}

LogicalResult BodyEmitter::work(Operation *op) {
  comment(op);
  auto pointerOf = [&](Value v) { return pointer(v); };
  if (auto o = dyn_cast<exec::LaunchOp>(op)) {
    statement(launch(o));
  } else if (auto o = dyn_cast<exec::RecordOp>(op)) {
    statement(llvm::formatv("record(c, {0}, {1})", eventNumber(o.getEvent()),
                            streamName(o.getStream())));
  } else if (auto o = dyn_cast<exec::WaitOp>(op)) {
    statement(llvm::formatv("wait(c, {0}, {1})", eventNumber(o.getEvent()),
                            streamName(o.getStream())));
  } else if (auto o = dyn_cast<exec::RuntimeOpInterface>(op)) {
    statement(runtimeCall(o, tables, pointerOf));
  } else {
    return op->emitOpError("has no spelling in C++");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// Calls of one function in a row: a table of offsets, one of events, a loop.
void BodyEmitter::calls(ArrayRef<exec::CallOp> run) {
  exec::CallOp first = run.front();
  StringRef callee = first.getCallee();
  const std::string &function = file.functions.find(callee)->second;
  size_t events = 0;
  for (exec::CallOp call : run)
    events = std::max(events, call.getEvents().size());
  std::string buffersName = names.unique(function + "_buffers");
  std::string eventsName = names.unique(function + "_events");
  // Inside another function the offsets are known only at run time.
  StringRef storage = inFunction ? "const" : "static constexpr";

  os << "  // " << inComment(callee) << ": " << run.size()
     << (run.size() == 1 ? " call" : " calls") << '\n';
  os << "  " << storage << ' ' << file.offsets.lookup(callee) << ' '
     << buffersName << "[] = {\n";
  auto row = [&](ArrayRef<std::string> items) {
    wrap(os, "{" + llvm::join(items, ", ") + "},", 6);
  };
  for (exec::CallOp call : run) {
    SmallVector<std::string> offsets;
    for (Value operand : call.getOperands())
      offsets.push_back(offset(operand));
    row(offsets);
  }
  os << "  };\n  " << storage << " int " << eventsName << "[]["
     << std::max<size_t>(1, events) << "] = {\n";
  for (exec::CallOp call : run) {
    SmallVector<std::string> numbers;
    for (int64_t event : call.getEvents())
      numbers.push_back(eventNumber(event));
    row(numbers);
  }
  os << "  };\n";
  os << llvm::formatv("  for (int i = 0; i < {0}; ++i)\n"
                      "    {1}(c, {2}[i], {3}[i]);\n",
                      run.size(), function, buffersName, eventsName);
  lastComment = {};
}

LogicalResult BodyEmitter::body(Block &block) {
  SmallVector<exec::CallOp> run;
  auto flush = [&] {
    if (!run.empty())
      calls(run);
    run.clear();
  };
  for (Operation &op : block) {
    // Values print nothing where they are born.
    if (isa<exec::GetOp, exec::AllocOp, exec::ViewOp>(op))
      continue;
    if (auto call = dyn_cast<exec::CallOp>(op)) {
      if (!run.empty() && run.front().getCallee() != call.getCallee())
        flush();
      run.push_back(call);
      continue;
    }
    flush();
    if (failed(work(&op)))
      return failure();
  }
  flush();
  return success();
}

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

LogicalResult emit::emitProgram(exec::ProgramOp program, const FileNames &file,
                                Tables &tables, llvm::raw_ostream &os) {
  os << "\n/// Program " << inComment(program.getSymName()) << '.';
  if (program.getArena())
    os << " Peak " << *program.getArena() << " bytes.";
  os << "\nISSUES_WORK static void "
     << file.functions.lookup(program.getSymName())
     << "(Context &c) {\n  const Ptr base = at(c, 0);\n";
  BodyEmitter emitter(file, tables, os);
  if (failed(emitter.body(program.getBody().front())))
    return failure();
  os << "}\n";
  return success();
}

/// What the buffer of a call is called.
static StringRef labelOf(Value buffer, const ArenaOffsets &arena) {
  exec::ByteRange range = exec::resolveRange(buffer);
  if (auto get = range.root.getDefiningOp<exec::GetOp>())
    return arena.partsOf(get, {range.begin, range.end})
        .front()
        .first.getSymName();
  auto alloc = range.root.getDefiningOp<exec::AllocOp>();
  return alloc ? alloc.getLabel().value_or("") : "";
}

LogicalResult emit::emitFunc(exec::FuncOp func, exec::CallOp firstCall,
                             const FileNames &file, Tables &tables,
                             llvm::raw_ostream &os) {
  Block &block = func.getBody().front();
  SmallVector<std::string> labels;
  for (BlockArgument arg : block.getArguments()) {
    StringRef label = locationName(arg.getLoc());
    if (label.empty() && firstCall)
      label = labelOf(firstCall.getOperands()[arg.getArgNumber()], file.arena);
    bool isName = llvm::any_of(label, llvm::isAlnum) && !nn::isFragment(label);
    labels.push_back(isName ? nn::withoutBlock(label).str() : "buffer");
  }
  StringRef name = func.getSymName(), type = file.offsets.find(name)->second;
  BodyEmitter emitter(file, tables, os);
  emitter.inFunction = true;
  os << "\n/// Offsets in the arena of what differs between calls of "
     << inComment(name) << ".\n";
  emitter.offsetStruct(block, labels, type);
  os << "\n/// " << inComment(name)
     << ", for several places: `event` are numbers of events."
     << "\nISSUES_WORK static void\n"
     << file.functions.lookup(name) << "(Context &c, const " << type
     << " &buffers,\n"
        "    [[maybe_unused]] const int *event) {\n"
        "  const Ptr base = at(c, 0);\n";
  emitter.arguments(block);
  if (failed(emitter.body(block)))
    return failure();
  os << "}\n";
  return success();
}
