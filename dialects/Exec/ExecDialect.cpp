//===- ExecDialect.cpp - Registration, printing and folding of exec ------===//
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

/// kMakesAttr of work with so many outputs.
static bool areNames(Attribute value, size_t outputs) {
  auto list = dyn_cast<ArrayAttr>(value);
  return isa<StringAttr>(value) ||
         (list && list.size() == outputs &&
          llvm::all_of(list, llvm::IsaPred<StringAttr>));
}

static LogicalResult verifyMakes(Operation *op, Attribute value) {
  if (isa<CallOp>(op)) {
    if (isa<ArrayAttr>(value))
      return success();
    return op->emitOpError("needs '")
           << kMakesAttr << "' to be an array with an entry per work of the "
           << "function";
  }
  auto work = dyn_cast<WorkOpInterface>(op);
  if (work && areNames(value, work.getOutputs().size()))
    return success();
  return op->emitOpError("needs '")
         << kMakesAttr << "' to be a string, or an array of one per output, "
         << "on work";
}

/// What a module says of its workspaces and work of its values; other
/// attributes are checked by the passes that read them.
LogicalResult ExecDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kMakesAttr)
    return verifyMakes(op, attribute.getValue());
  if (name == kTargetAttr) {
    if (isa<ModuleOp>(op) && isa<StringAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("needs '")
           << kTargetAttr << "' to be a string on the module";
  }
  if (name == kThreadsAttr) {
    auto threads = dyn_cast<IntegerAttr>(attribute.getValue());
    if (isa<ModuleOp>(op) && threads && threads.getType().isInteger(64) &&
        threads.getInt() >= 1 && threads.getInt() <= kMaxThreads)
      return success();
    return op->emitOpError("needs '")
           << kThreadsAttr << "' to be an i64 from 1 to " << kMaxThreads
           << " on the module";
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
