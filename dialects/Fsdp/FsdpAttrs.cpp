//===- FsdpAttrs.cpp - Syntax of axes and placements, local shapes --------===//
#include "dialects/Fsdp/Decision.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

/// `, 2, 4` of a sub-axis, nothing of a whole axis.
static ParseResult parseSubAxis(AsmParser &parser, int64_t &pre,
                                int64_t &size) {
  pre = 1;
  size = 0;
  if (failed(parser.parseOptionalComma()))
    return success();
  return failure(parser.parseInteger(pre) || parser.parseComma() ||
                 parser.parseInteger(size));
}

static void printSubAxis(AsmPrinter &printer, int64_t pre, int64_t size) {
  if (size != 0)
    printer << ", " << pre << ", " << size;
}

/// ` : data` of an axis with a kind, nothing of one without.
static ParseResult parseAxisKind(AsmParser &parser,
                                 std::optional<AxisKind> &kind) {
  if (failed(parser.parseOptionalColon()))
    return success();
  StringRef name;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseKeyword(&name))
    return failure();
  kind = readSpelling<AxisKind>(name.str());
  if (!kind)
    return parser.emitError(location, "the kind of an axis is ")
           << joinedText(allSpellings<AxisKind>(), " or ") << ", got '" << name
           << "'" << didYouMean(name.str(), allSpellings<AxisKind>());
  return success();
}

static void printAxisKind(AsmPrinter &printer, std::optional<AxisKind> kind) {
  if (kind)
    printer << " : " << spelled(*kind);
}

#define GET_ATTRDEF_CLASSES
#include "dialects/Fsdp/FsdpAttrs.cpp.inc"
#define GET_TYPEDEF_CLASSES
#include "dialects/Fsdp/FsdpTypes.cpp.inc"

void FsdpDialect::registerAttributesAndTypes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/Fsdp/FsdpAttrs.cpp.inc"
      >();
  addTypes<
#define GET_TYPEDEF_LIST
#include "dialects/Fsdp/FsdpTypes.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Axis lists
//===----------------------------------------------------------------------===//

/// `"dp_shard"` or, for a sub-axis, `"dp_shard":(2)4`.
static ParseResult parseAxis(AsmParser &parser,
                             SmallVectorImpl<AxisRefAttr> &axes) {
  std::string name;
  int64_t pre = 1, size = 0;
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseString(&name))
    return failure();
  if (succeeded(parser.parseOptionalColon())) {
    if (parser.parseLParen() || parser.parseInteger(pre) ||
        parser.parseRParen() || parser.parseInteger(size))
      return failure();
    if (pre < 1 || size < 1)
      return parser.emitError(location, "sub-axis sizes must be at least 1");
  }
  auto axis =
      AxisRefAttr::getChecked([&] { return parser.emitError(location); },
                              parser.getContext(), name, pre, size);
  axes.push_back(axis);
  return success(axis != nullptr);
}

static ParseResult parseAxisList(AsmParser &parser,
                                 SmallVectorImpl<AxisRefAttr> &axes) {
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::Square, [&] { return parseAxis(parser, axes); });
}

static void printBareAxes(AsmPrinter &printer, ArrayRef<AxisRefAttr> axes) {
  llvm::interleaveComma(axes, printer, [&](AxisRefAttr axis) {
    printer.printString(axis.getName());
    if (axis.getSize() != 0)
      printer << ":(" << axis.getPre() << ")" << axis.getSize();
  });
}

static void printAxisList(AsmPrinter &printer, ArrayRef<AxisRefAttr> axes) {
  printer << "[";
  printBareAxes(printer, axes);
  printer << "]";
}

ParseResult fsdp::parseAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<AxisRefAttr> refs;
  if (parseAxisList(parser, refs))
    return failure();
  axes = axesAttr(parser.getContext(), refs);
  return success();
}

void fsdp::printAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printAxisList(printer, axisRefs(axes));
}

ParseResult fsdp::parseMeshAxes(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> elements;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    int64_t size;
    std::optional<AxisKind> kind;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseString(&name) || parser.parseEqual() ||
        parser.parseInteger(size) || parseAxisKind(parser, kind))
      return failure();
    auto axis =
        MeshAxisAttr::getChecked([&] { return parser.emitError(location); },
                                 parser.getContext(), name, size, kind);
    elements.push_back(axis);
    return success(axis != nullptr);
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseOne))
    return failure();
  axes = parser.getBuilder().getArrayAttr(elements);
  return success();
}

void fsdp::printMeshAxes(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printer << "[";
  llvm::interleaveComma(axes.getAsRange<MeshAxisAttr>(), printer,
                        [&](MeshAxisAttr axis) {
                          printer.printString(axis.getName());
                          printer << " = " << axis.getSize();
                          printAxisKind(printer, axis.getKind());
                        });
  printer << "]";
}

SmallVector<AxisRefAttr> fsdp::dist::axisRefs(ArrayAttr axes) {
  return llvm::to_vector(axes.getAsRange<AxisRefAttr>());
}

bool fsdp::dist::areWithin(ArrayAttr axes, ArrayAttr all) {
  return llvm::all_of(axisRefs(axes), [&](AxisRefAttr part) {
    return llvm::any_of(axisRefs(all), [&](AxisRefAttr axis) {
      return axis == part ||
             (axis.getSize() == 0 && axis.getName() == part.getName());
    });
  });
}

bool fsdp::dist::overlap(AxisRefAttr a, AxisRefAttr b) {
  if (a.getName() != b.getName())
    return false;
  if (a == b || a.getSize() == 0 || b.getSize() == 0)
    return true;
  if (std::pair(a.getPre(), a.getSize()) > std::pair(b.getPre(), b.getSize()))
    std::swap(a, b);
  // The second must stand in what the first leaves of the axis.
  return b.getPre() % (a.getPre() * a.getSize()) != 0;
}

ArrayAttr fsdp::dist::axesAttr(MLIRContext *context,
                               ArrayRef<AxisRefAttr> axes) {
  SmallVector<Attribute> elements(axes.begin(), axes.end());
  return ArrayAttr::get(context, elements);
}

//===----------------------------------------------------------------------===//
// Attributes and types
//===----------------------------------------------------------------------===//

LogicalResult
MeshAxisAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     StringRef name, int64_t size, std::optional<AxisKind>) {
  if (name.empty())
    return emitError() << "a mesh axis needs a name";
  if (size < 1)
    return emitError() << "mesh axis \"" << name
                       << "\" must have size at least 1, got " << size;
  if (size > kMaxRanks)
    return emitError() << "mesh axis \"" << name << "\" has " << size
                       << " ranks, more than " << kMaxRanks;
  return success();
}

LogicalResult
AxisRefAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    StringRef name, int64_t pre, int64_t size) {
  if (pre < 1 || pre > kMaxRanks || size < 0 || size > kMaxRanks) // 1
    return emitError() << "sub-axis :(" << pre << ")" << size
                       << " of mesh axis \"" << name
                       << "\" must have sizes from 1 to " << kMaxRanks;
  if (size == 0 && pre != 1) // 2
    return emitError() << "the whole mesh axis \"" << name
                       << "\" has no prefix, got " << pre;
  return success();
}

/// `{"tp" | "dp_shard"}`, either side of the bar possibly empty.
static FailureOr<DimAxesAttr> parseDimAxes(AsmParser &parser) {
  SmallVector<AxisRefAttr> compute, storage;
  auto parseList = [&](SmallVectorImpl<AxisRefAttr> &axes) -> ParseResult {
    do {
      if (parseAxis(parser, axes))
        return failure();
    } while (succeeded(parser.parseOptionalComma()));
    return success();
  };
  if (parser.parseLBrace())
    return failure();
  if (succeeded(parser.parseOptionalRBrace()))
    return DimAxesAttr::get(parser.getContext(), compute, storage);
  bool isStored = succeeded(parser.parseOptionalVerticalBar());
  if (!isStored) {
    if (parseList(compute))
      return failure();
    isStored = succeeded(parser.parseOptionalVerticalBar());
  }
  if ((isStored && parseList(storage)) || parser.parseRBrace())
    return failure();
  return DimAxesAttr::get(parser.getContext(), compute, storage);
}

static void printDimAxes(AsmPrinter &printer, DimAxesAttr dim) {
  printer << "{";
  printBareAxes(printer, dim.getCompute());
  if (!dim.getStorage().empty()) {
    printer << (dim.getCompute().empty() ? "| " : " | ");
    printBareAxes(printer, dim.getStorage());
  }
  printer << "}";
}

Attribute DimAxesAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess())
    return {};
  FailureOr<DimAxesAttr> dim = parseDimAxes(parser);
  if (failed(dim) || parser.parseGreater())
    return {};
  return *dim;
}

void DimAxesAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printDimAxes(printer, *this);
  printer << ">";
}

Attribute PlacementAttr::parse(AsmParser &parser, Type) {
  SmallVector<DimAxesAttr> dims;
  SmallVector<AxisRefAttr> partial;
  CollectiveReduce kind = CollectiveReduce::Sum;
  SMLoc location = parser.getCurrentLocation();
  auto parseDim = [&]() -> ParseResult {
    FailureOr<DimAxesAttr> dim = parseDimAxes(parser);
    if (failed(dim))
      return failure();
    dims.push_back(*dim);
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseDim))
    return {};
  if (succeeded(parser.parseOptionalComma())) {
    FailureOr<CollectiveReduce> parsed = failure();
    if (parser.parseKeyword("partial") || parser.parseEqual() ||
        failed(parsed = FieldParser<CollectiveReduce>::parse(parser)) ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, [&] {
          return parseAxis(parser, partial);
        }))
      return {};
    kind = *parsed;
    if (partial.empty()) { // 2
      parser.emitError(location, "a partial placement names at least one axis");
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(location); },
                    parser.getContext(), dims, partial, kind);
}

void PlacementAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getDims(), printer,
                        [&](DimAxesAttr dim) { printDimAxes(printer, dim); });
  printer << "]";
  if (!getPartial().empty()) {
    printer << ", partial = " << stringifyCollectiveReduce(getKind()) << " {";
    printBareAxes(printer, getPartial());
    printer << "}";
  }
  printer << ">";
}

LogicalResult
FutureType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   ArrayRef<Type> types) {
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape())
      return emitError() << "a future gives tensors of static shape, got "
                         << type;
    if (!nn::hasCheckedSize(tensor))
      return emitError() << "a future's tensor must not be empty and have at "
                            "most 2^56 bytes, got "
                         << type;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Sizes on a mesh
//===----------------------------------------------------------------------===//

int64_t MeshOp::getWorldSize() {
  CheckedSize size = 1;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    size *= axis.getSize();
  return size.saturated();
}

SmallVector<AxisRefAttr, 2> MeshOp::axesOf(AxisKind kind) {
  SmallVector<AxisRefAttr, 2> axes;
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>())
    if (axis.getKind() == kind)
      axes.push_back(AxisRefAttr::get(getContext(), axis.getName()));
  return axes;
}

int64_t MeshOp::sizeOf(AxisRefAttr ref) {
  for (auto axis : getAxes().getAsRange<MeshAxisAttr>()) {
    if (axis.getName() != ref.getName())
      continue;
    if (ref.getSize() == 0)
      return axis.getSize();
    // A sub-axis exists if the axis can be split into pre x size x rest.
    bool divides = axis.getSize() % ref.getPre() == 0 &&
                   axis.getSize() / ref.getPre() % ref.getSize() == 0;
    return divides ? ref.getSize() : 0;
  }
  return 0;
}

int64_t MeshOp::sizeOf(ArrayRef<AxisRefAttr> axes) {
  CheckedSize size = 1;
  for (AxisRefAttr axis : axes)
    size *= sizeOf(axis);
  return size.fits(getWorldSize()) ? size.get() : 0;
}

int64_t MeshOp::strideOf(AxisRefAttr ref) {
  int64_t stride = 1;
  for (auto axis : llvm::reverse(getAxes().getAsRange<MeshAxisAttr>())) {
    if (axis.getName() == ref.getName())
      return ref.getSize() == 0
                 ? stride
                 : stride * (axis.getSize() / (ref.getPre() * ref.getSize()));
    stride *= axis.getSize();
  }
  llvm_unreachable("an axis of the mesh");
}

std::optional<int64_t> MeshOp::ranksInNode(ArrayRef<AxisRefAttr> axes) {
  int64_t nodeSize = getNodeSize(), ranks = 1;
  if (nodeSize <= 1)
    return 1;
  for (AxisRefAttr axis : axes) {
    int64_t size = sizeOf(axis), stride = strideOf(axis);
    if (size == 1 || stride >= nodeSize)
      continue;
    if (nodeSize % stride != 0)
      return std::nullopt;
    int64_t along = nodeSize / stride;
    bool isWhole = along >= size;
    if (isWhole ? along % size != 0
                : size % along != 0 || !llvm::isPowerOf2_64(along))
      return std::nullopt;
    ranks *= isWhole ? size : along;
  }
  return ranks;
}

MeshOp fsdp::dist::lookupMesh(Operation *from, FlatSymbolRefAttr name) {
  return SymbolTable::lookupNearestSymbolFrom<MeshOp>(from, name);
}
