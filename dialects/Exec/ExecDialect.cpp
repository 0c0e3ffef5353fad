//===- ExecDialect.cpp - Registration, printing and folding of exec -------===//
#include "dialects/Exec/Exec.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdp::exec;

#include "dialects/Exec/ExecDialect.cpp.inc"
#include "dialects/Exec/ExecEnums.cpp.inc"
#include "dialects/Exec/ExecInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/Exec/ExecAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Exec/ExecTypes.cpp.inc"

void ExecDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Exec/ExecAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Exec/ExecTypes.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/Exec/ExecOps.cpp.inc"
      >();
}

/// kProducesAttr of work with so many outputs.
static bool areNames(Attribute value, size_t outputs) {
  auto list = dyn_cast<ArrayAttr>(value);
  return isa<StringAttr>(value) ||
         (list && list.size() == outputs &&
          llvm::all_of(list, llvm::IsaPred<StringAttr>));
}

static LogicalResult verifyProduces(Operation *op, Attribute value) {
  if (isa<CallOp>(op)) {
    if (isa<ArrayAttr>(value))
      return success();
    return op->emitOpError("needs '")
           << kProducesAttr << "' to be an array with an entry per work of the "
           << "function";
  }
  auto work = dyn_cast<WorkOpInterface>(op);
  if (work && areNames(value, work.getOutputs().size()))
    return success();
  return op->emitOpError("needs '")
         << kProducesAttr << "' to be a string, or an array of one per output, "
         << "on work";
}

static bool isSize(Attribute value, int64_t least) {
  auto number = dyn_cast<IntegerAttr>(value);
  return number && number.getType().isInteger(64) && number.getInt() >= least;
}

/// kStepsAttr: steps by name, and how often each runs programs by name.
static bool areSteps(Attribute value) {
  auto steps = dyn_cast<DictionaryAttr>(value);
  return steps && llvm::all_of(steps, [](NamedAttribute step) {
           auto programs = dyn_cast<DictionaryAttr>(step.getValue());
           return programs && llvm::all_of(programs, [](NamedAttribute runs) {
                    return isSize(runs.getValue(), 1);
                  });
         });
}

/// kMemoryAttr: numbers, strings, and lists of such.
static bool isMemory(Attribute value) {
  auto isField = [](NamedAttribute field) {
    return isSize(field.getValue(), 0) || isa<StringAttr>(field.getValue());
  };
  auto isEntry = [&](Attribute entry) {
    auto fields = dyn_cast<DictionaryAttr>(entry);
    return fields && llvm::all_of(fields, isField);
  };
  auto report = dyn_cast<DictionaryAttr>(value);
  return report && llvm::all_of(report, [&](NamedAttribute field) {
           auto list = dyn_cast<ArrayAttr>(field.getValue());
           return list ? llvm::all_of(list, isEntry) : isField(field);
         });
}

/// What modules and programs say of themselves, and work of its values.
LogicalResult ExecDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  auto need = [&](bool is, StringRef what) -> LogicalResult {
    if (is)
      return success();
    return op->emitOpError("needs '") << name << "' to be " << what;
  };
  if (name == kProducesAttr)
    return verifyProduces(op, value);
  if (name == kTargetAttr)
    return need(isa<ModuleOp>(op) && isa<StringAttr>(value),
                "a string on the module");
  if (name == kThreadsAttr)
    return need(isa<ModuleOp>(op) && isSize(value, 1) &&
                    cast<IntegerAttr>(value).getInt() <= kMaxThreads,
                "an i64 from 1 to " + std::to_string(kMaxThreads) +
                    " on the module");
  if (name == kPersistentBytesAttr || name == kArenaBytesAttr)
    return need(isa<ModuleOp>(op) && isSize(value, 0),
                "an i64 that is not negative, on the module");
  if (name == kStepsAttr)
    return need(isa<ModuleOp>(op) && areSteps(value),
                "the i64 of runs by program, by step, on the module");
  if (name == kFlopsAttr || name == kModelFlopsAttr)
    return need(isa<ProgramOp>(op) && isSize(value, 0),
                "an i64 that is not negative, on a program");
  if (name == kMemoryAttr)
    return need(isa<ProgramOp>(op) && isMemory(value),
                "what exec-plan-memory reports, on a program");
  if (llvm::is_contained({kInputsAttr, kOutputsAttr, kReadsAttr, kWritesAttr,
                          kAddsAttr, kClearsAttr},
                         name)) {
    auto list = dyn_cast<ArrayAttr>(value);
    return need(isa<ProgramOp>(op) && list &&
                    llvm::all_of(list, llvm::IsaPred<StringAttr>),
                "an array of names of ranges, on a program");
  }
  return success();
}

void fsdp::registerFsdpDialects(DialectRegistry &registry) {
  registry
      .insert<nn::NNDialect, dist::FsdpDialect, ExecDialect, func::FuncDialect,
              arith::ArithDialect, math::MathDialect, memref::MemRefDialect>();
}

//===----------------------------------------------------------------------===//
// Accesses of a kernel: `[element, column]`
//===----------------------------------------------------------------------===//

static ParseResult parseAccesses(OpAsmParser &parser, ArrayAttr &accesses) {
  SmallVector<Attribute> parsed;
  auto parseOne = [&]() -> ParseResult {
    StringRef keyword;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&keyword))
      return failure();
    std::optional<Access> access = symbolizeAccess(keyword);
    if (!access)
      return parser.emitError(at) << "expected element, row, column or scalar";
    parsed.push_back(AccessAttr::get(parser.getContext(), *access));
    return success();
  };
  if (parser.parseCommaSeparatedList(OpAsmParser::Delimiter::Square, parseOne))
    return failure();
  accesses = parser.getBuilder().getArrayAttr(parsed);
  return success();
}

static void printAccesses(OpAsmPrinter &printer, Operation *,
                          ArrayAttr accesses) {
  printer << '[';
  llvm::interleaveComma(accesses.getAsRange<AccessAttr>(), printer,
                        [&](AccessAttr access) {
                          printer << stringifyAccess(access.getValue());
                        });
  printer << ']';
}

//===----------------------------------------------------------------------===//
// Several ranges as one
//===----------------------------------------------------------------------===//

void GetOp::build(OpBuilder &builder, OperationState &state, MemRefType type,
                  ArrayRef<StringAttr> ranges) {
  SmallVector<Attribute> names =
      llvm::map_to_vector(ranges, [](StringAttr name) -> Attribute {
        return FlatSymbolRefAttr::get(name);
      });
  build(builder, state, type, cast<FlatSymbolRefAttr>(names.front()),
        names.size() == 1 ? ArrayAttr()
                          : builder.getArrayAttr(ArrayRef(names).drop_front()));
}

SmallVector<StringAttr> GetOp::getRanges() {
  SmallVector<StringAttr> names = {getRangeAttr().getAttr()};
  if (ArrayAttr others = getAdjacentAttr())
    for (auto name : others.getAsRange<FlatSymbolRefAttr>())
      names.push_back(name.getAttr());
  return names;
}

//===----------------------------------------------------------------------===//
// Names of values in the text
//===----------------------------------------------------------------------===//

void GetOp::getAsmResultNames(OpAsmSetValueNameFn setName) {
  setName(getResult(), getRange());
}

void KernelOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  for (BlockArgument argument : region.getArguments()) {
    int64_t output = argument.getArgNumber() + getOutputs() -
                     static_cast<int64_t>(region.getNumArguments());
    setName(argument, output < 0 ? ("in" + Twine(argument.getArgNumber())).str()
                                 : ("out" + Twine(output)).str());
  }
}

//===----------------------------------------------------------------------===//
// exec.view
//===----------------------------------------------------------------------===//

Value ViewOp::getViewSource() { return getSource(); }

OpFoldResult ViewOp::fold(FoldAdaptor) {
  if (getOffset() == 0 && getSource().getType() == getResult().getType())
    return getSource();
  // A view of a view is one view: offsets count elements, which are equal.
  if (auto inner = getSource().getDefiningOp<ViewOp>()) {
    setOffset(getOffset() + inner.getOffset());
    getSourceMutable().assign(inner.getSource());
    return getResult();
  }
  return {};
}

#define GET_OP_CLASSES
#include "dialects/Exec/ExecOps.cpp.inc"
