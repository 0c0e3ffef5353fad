//===- EmitValues.cpp - What the calls of an artifact produce -------------===//
#include "fsdp/Emit/EmitValues.h"
#include "JsonLines.h"
#include "fsdp/Memory/IssueOrder.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace fsdp;
using llvm::json::OStream;

namespace {

/// An output of a call. Names and types are numbers in the table's lists.
struct OutputRow {
  int64_t call;
  size_t name, type;
  int64_t offset; // in the arena
};

struct ProgramValues {
  StringRef name;
  int64_t calls = 0;
  std::vector<OutputRow> values;
};

class ValueCollector {
public:
  explicit ValueCollector(ModuleOp module) : offsets(module) {}

  LogicalResult collect(exec::ProgramOp program);
  void write(OStream &json, StringRef manifest) const;

private:
  LogicalResult endCall();
  LogicalResult nameWork(const IssuedOp &issue);
  void addOutputs(const IssuedOp &issue, int64_t call);

  ArenaOffsets offsets;
  /// In the order of their numbers.
  llvm::MapVector<Attribute, size_t> names;
  llvm::MapVector<Type, size_t> types;
  std::vector<ProgramValues> programs;
  /// What the work at hand produces, and where it stands in its call.
  Attribute produced;
  exec::CallOp call;
  size_t workOfCall = 0;
};

} // namespace

template <typename Map, typename Key>
static size_t numberIn(Map &map, Key key) {
  return map.insert({key, map.size()}).first->second;
}

/// The call before has named no more than its function's work.
LogicalResult ValueCollector::endCall() {
  auto all =
      call ? call->getAttrOfType<ArrayAttr>(exec::kProducesAttr) : nullptr;
  if (all && all.size() != workOfCall + 1)
    return call->emitOpError("has in '")
           << exec::kProducesAttr << "' " << all.size()
           << " names, but the work of @" << call.getCallee() << " is "
           << workOfCall + 1 << "; name all of it, or leave the attribute out";
  return success();
}

/// A call names the work of its function; other work names itself.
LogicalResult ValueCollector::nameWork(const IssuedOp &issue) {
  bool isNext = call && issue.call == call;
  if (!isNext && failed(endCall()))
    return failure();
  call = issue.call;
  workOfCall = isNext ? workOfCall + 1 : 0;
  produced = exec::producedBy(issue.op);
  auto all =
      call ? call->getAttrOfType<ArrayAttr>(exec::kProducesAttr) : nullptr;
  if (!all)
    return success();
  auto work = cast<exec::WorkOpInterface>(issue.op);
  Attribute own = workOfCall < all.size() ? all[workOfCall] : Attribute();
  auto list = dyn_cast_or_null<ArrayAttr>(own);
  bool isName = isa_and_nonnull<StringAttr>(own);
  if (!isName && !(list && list.size() == work.getOutputs().size() &&
                   llvm::all_of(list, llvm::IsaPred<StringAttr>)))
    return call->emitOpError("has in '")
           << exec::kProducesAttr << "' no name for the values that work "
           << workOfCall << " of @" << call.getCallee()
           << " writes; name all of them, or leave the attribute out";
  produced = own;
  return success();
}

/// The type of a tensor whose buffer was seen through views: a matrix may be
/// one of several dimensions.
static MemRefType wholeType(Value buffer, exec::CallOp call) {
  auto type = cast<MemRefType>(buffer.getType());
  Value root = exec::resolveRange(buffer).root;
  if (auto argument = dyn_cast<BlockArgument>(root); argument && call)
    root = exec::resolveRange(call.getOperands()[argument.getArgNumber()]).root;
  auto whole = cast<MemRefType>(root.getType());
  return whole.getElementType() == type.getElementType() &&
                 whole.getNumElements() == type.getNumElements()
             ? whole
             : type;
}

/// The name of an output: one of several of an operation is also called what
/// the operation calls it.
static StringAttr nameOf(exec::WorkOpInterface work, Attribute produced,
                         unsigned output) {
  if (auto list = dyn_cast<ArrayAttr>(produced))
    return cast<StringAttr>(list[output]);
  auto name = cast<StringAttr>(produced);
  auto runtimeOp = dyn_cast<exec::RuntimeOpInterface>(work.getOperation());
  if (!runtimeOp || work.getOutputs().size() == 1)
    return name;
  const auto &specs = runtimeOp.getSignature().outputs;
  if (output >= specs.size() ||
      specs[output].kind == exec::BufferSpec::Kind::List)
    return name;
  return StringAttr::get(name.getContext(),
                         name.getValue() + " (" + specs[output].name + ")");
}

/// Outputs of which a box is written hold, outside of it, what they held: their
/// elements were looked at where they were produced.
void ValueCollector::addOutputs(const IssuedOp &issue, int64_t number) {
  auto work = cast<exec::WorkOpInterface>(issue.op);
  for (auto [i, output] : llvm::enumerate(work.getOutputs())) {
    auto type = cast<MemRefType>(output.getType());
    auto box = work.getWrittenBox(i);
    if (!isa<FloatType>(type.getElementType()) ||
        (box && box->shape != type.getShape()))
      continue;
    programs.back().values.push_back(
        {number, numberIn(names, Attribute(nameOf(work, produced, i))),
         numberIn(types, Type(wholeType(output, issue.call))),
         issue.writes[i].bytes.begin});
  }
}

LogicalResult ValueCollector::collect(exec::ProgramOp program) {
  FailureOr<std::vector<IssuedOp>> issued = issueOrder(program, offsets);
  if (failed(issued))
    return failure();
  programs.emplace_back().name = program.getSymName();
  int64_t &calls = programs.back().calls;
  call = {};
  for (const IssuedOp &issue : *issued) {
    if (!exec::isWork(issue.op))
      continue;
    if (failed(nameWork(issue)))
      return failure();
    addOutputs(issue, calls++);
  }
  return endCall();
}

void ValueCollector::write(OStream &json, StringRef manifest) const {
  json.object([&] {
    json.attribute("format", 1);
    json.attribute("manifest", llvm::utohexstr(llvm::xxh3_64bits(manifest),
                                               /*LowerCase=*/true));
    emit::jsonLines(json, "names", names, [](OStream &line, const auto &name) {
      line.value(llvm::json::fixUTF8(cast<StringAttr>(name.first).getValue()));
    });
    emit::jsonLines(json, "types", types, [](OStream &line, const auto &entry) {
      auto type = cast<MemRefType>(entry.first);
      std::string element;
      llvm::raw_string_ostream(element) << type.getElementType();
      line.array([&] {
        line.value(element);
        for (int64_t size : type.getShape())
          line.value(size);
      });
    });
    json.attributeArray("programs", [&] {
      for (const ProgramValues &program : programs)
        json.object([&] {
          json.attribute("name", program.name);
          json.attribute("calls", program.calls);
          emit::jsonLines(json, "values", program.values,
                          [](OStream &line, const OutputRow &value) {
                            line.array([&] {
                              line.value(value.call);
                              line.value(int64_t(value.name));
                              line.value(int64_t(value.type));
                              line.value(value.offset);
                            });
                          });
        });
    });
  });
}

FailureOr<std::string> fsdp::makeValueTable(ModuleOp module,
                                            StringRef manifest) {
  ValueCollector collector(module);
  for (auto program : module.getOps<exec::ProgramOp>())
    if (failed(collector.collect(program)))
      return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  OStream json(os, /*IndentSize=*/1);
  collector.write(json, manifest);
  os << '\n';
  return text;
}
