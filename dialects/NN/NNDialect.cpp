//===- NNDialect.cpp - Registration and attributes of the nn dialect ------===//
#include "dialects/NN/ModulePath.h"
#include "dialects/NN/NNSupport.h"
#include "fsdp/Support/Text.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace fsdp::nn;

/// "[1.0, 1.0e-02]", each number with the digits that give it back.
static ParseResult parseReals(AsmParser &parser, SmallVector<Real> &values) {
  return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
    double value = 0;
    if (parser.parseFloat(value))
      return failure();
    values.push_back(value);
    return success();
  });
}

static void printReals(AsmPrinter &printer, ArrayRef<Real> values) {
  printer << '[';
  llvm::interleaveComma(values, printer.getStream(), [&](double value) {
    printer.printFloat(APFloat(value));
  });
  printer << ']';
}

#include "dialects/NN/NNDialect.cpp.inc"
#include "dialects/NN/NNEnums.cpp.inc"
#include "dialects/NN/NNInterfaces.cpp.inc"
#define GET_ATTRDEF_CLASSES
#include "dialects/NN/NNAttrs.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/NN/NNOps.cpp.inc"

namespace {
/// A table of rotary angles states a number for each pair, which the top of the
/// text has once.
struct NNAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;

  AliasResult getAlias(Attribute attribute, raw_ostream &os) const final {
    if (!isa<RotaryTableAttr>(attribute))
      return AliasResult::NoAlias;
    os << RotaryTableAttr::getMnemonic();
    return AliasResult::FinalAlias;
  }
};
} // namespace

void NNDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "dialects/NN/NNAttrs.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "dialects/NN/NNOps.cpp.inc"
      >();
  addInterfaces<NNAliases>();
}

Operation *NNDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                          Type type, Location loc) {
  auto splat = dyn_cast<SplatElementsAttr>(value);
  if (!splat || splat.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, splat);
}

//===----------------------------------------------------------------------===//
// Discardable attributes
//===----------------------------------------------------------------------===//

// MLIR accepts any discardable attribute silently, so a misspelt one would be
// lost without a word; every nn.* attribute is checked here.

LogicalResult fsdp::nn::verifyLine(Operation *op, StringRef name) {
  if (fsdp::isPlainLine(name))
    return success();
  return op->emitOpError("has the name '")
         << fsdp::printableLine(name)
         << "', which is no line of text without control characters";
}

static LogicalResult verifyName(Operation *op, NamedAttribute attribute) {
  if (attribute.getName() != kNameAttr)
    return op->emitOpError("has an unknown attribute '")
           << attribute.getName().getValue() << "' on an argument or result";
  auto name = dyn_cast<StringAttr>(attribute.getValue());
  if (!name || name.getValue().empty())
    return op->emitOpError("expects '")
           << kNameAttr << "' to be a string that is not empty";
  return verifyLine(op, name.getValue());
}

/// An argument or result that names a range has a size before any op uses it.
static LogicalResult verifyRange(Operation *op, NamedAttribute attribute,
                                 ArrayRef<Type> types, unsigned number) {
  if (failed(verifyName(op, attribute)))
    return failure();
  if (number >= types.size() || !isa<TensorType>(types[number]) ||
      hasCheckedSize(types[number]))
    return success();
  return op->emitOpError("expects ")
         << attribute.getValue()
         << " to be a statically shaped tensor, not empty and of at most 2^56 "
            "bytes, got "
         << types[number];
}

LogicalResult NNDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                  unsigned number,
                                                  NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verifyRange(op, attribute,
                     function ? function.getArgumentTypes() : ArrayRef<Type>(),
                     number);
}

LogicalResult NNDialect::verifyRegionResultAttribute(Operation *op, unsigned,
                                                     unsigned number,
                                                     NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  return verifyRange(op, attribute,
                     function ? function.getResultTypes() : ArrayRef<Type>(),
                     number);
}

static LogicalResult verifySteps(Operation *op, Attribute value) {
  auto steps = dyn_cast<DictionaryAttr>(value);
  auto isStep = [](NamedAttribute step) {
    auto actions = dyn_cast<ArrayAttr>(step.getValue());
    return actions && !actions.empty() &&
           llvm::all_of(actions, llvm::IsaPred<ActionAttr>);
  };
  if (!isa<ModuleOp>(op) || !steps || !llvm::all_of(steps, isStep))
    return op->emitOpError("has '")
           << kStepsAttr
           << "', which must be lists of #nn.action by name, on the module";
  for (NamedAttribute step : steps)
    for (auto action :
         cast<ArrayAttr>(step.getValue()).getAsRange<ActionAttr>()) {
      Operation *program = SymbolTable::lookupSymbolIn(op, action.getProgram());
      if (!program || isa<ParameterOp, BufferOp>(program))
        return op->emitOpError("has no program ")
               << action.getProgram() << ", which its step '"
               << step.getName().getValue() << "' runs";
    }
  return success();
}

static LogicalResult verifyModel(Operation *op, Attribute value) {
  auto model = dyn_cast<DictionaryAttr>(value);
  auto family = model ? model.getAs<StringAttr>(kFamilyKey) : StringAttr();
  if (!isa<ModuleOp>(op) || !family || family.getValue().empty())
    return op->emitOpError("has '")
           << kModelAttr << "', which must be fields by name with the string '"
           << kFamilyKey << "', on the module";
  for (NamedAttribute field : model) {
    Attribute is = field.getValue();
    auto number = dyn_cast<FloatAttr>(is);
    bool isFinite =
        number && number.getType().isF64() && number.getValue().isFinite();
    auto integer = dyn_cast<IntegerAttr>(is);
    bool isInteger = integer && integer.getType().isInteger(64);
    if (!isFinite && !isInteger && !isa<BoolAttr, StringAttr>(is))
      return op->emitOpError("has '")
             << kModelAttr << "', whose field '" << field.getName().getValue()
             << "' must be an i64, a finite f64, a boolean or a string, got "
             << is;
  }
  return success();
}

LogicalResult NNDialect::verifyOperationAttribute(Operation *op,
                                                  NamedAttribute attribute) {
  StringRef name = attribute.getName();
  if (name == kFrozenAttr) {
    if (!isa<ParameterOp>(op) || !isa<UnitAttr>(attribute.getValue()))
      return op->emitOpError("has '")
             << name << "', which must be a unit attribute of an nn.parameter";
    return success();
  }
  if (name == kResidualAttr) {
    auto add = dyn_cast<AddOp>(op);
    if (!add || !isa<UnitAttr>(attribute.getValue()) ||
        cast<RankedTensorType>(add.getType()).getRank() != 3)
      return op->emitOpError("has '")
             << name
             << "', which must be a unit attribute of an nn.add of [batch, "
                "sequence, features]";
    return success();
  }
  if (name == kStateOfAttr || name == kComputeCopyOfAttr) {
    if (!isa<BufferOp>(op) || !isa<FlatSymbolRefAttr>(attribute.getValue()))
      return op->emitOpError("has '")
             << name << "', which must name a parameter on an nn.buffer";
    return success();
  }
  if (name == kStepsAttr)
    return verifySteps(op, attribute.getValue());
  if (name == kModelAttr)
    return verifyModel(op, attribute.getValue());
  if (name == kModuleAttr) {
    auto path = dyn_cast<StringAttr>(attribute.getValue());
    Operation *parent = op->getParentOp();
    bool isInProgram = parent && !isa<ModuleOp>(parent);
    if (!isInProgram || !path || path.getValue().empty())
      return op->emitOpError("has '")
             << name
             << "', which must be a string that is not empty, on an op of a "
                "program";
    return verifyLine(op, path.getValue());
  }
  return op->emitOpError("has an unknown attribute '") << name << "'";
}

//===----------------------------------------------------------------------===//
// Initialisers
//===----------------------------------------------------------------------===//

LogicalResult NormalAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 Real std, Real cut) {
  if (!(std >= 0))
    return emitError() << "#nn.normal expects std >= 0";
  if (!(cut >= 0))
    return emitError() << "#nn.normal expects cut >= 0";
  return success();
}

LogicalResult ActionAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 FlatSymbolRefAttr, int64_t times) {
  if (times < 1 || times > kMaxProgramRuns)
    return emitError() << "#nn.action expects from 1 to " << kMaxProgramRuns
                       << " times, got " << times;
  return success();
}

LogicalResult UniformAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                  Real bound) {
  if (!(bound >= 0))
    return emitError() << "#nn.uniform expects bound >= 0";
  return success();
}

LogicalResult
RotaryTableAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                        ArrayRef<Real> frequencies, Real scale, int64_t start) {
  auto isFrequency = [](double f) { return std::isfinite(f) && f >= 0; };
  if (frequencies.empty() || !llvm::all_of(frequencies, isFrequency))
    return emitError() << "#nn.rotary_table expects at least one frequency, "
                          "each finite and not negative";
  if (!std::isfinite(scale) || !(scale > 0))
    return emitError() << "#nn.rotary_table expects a finite scale > 0";
  // Positions are f64, which holds no larger integers exactly.
  if (start < 0 || start > int64_t(1) << 53)
    return emitError() << "#nn.rotary_table expects 0 <= start <= 2^53";
  return success();
}

//===----------------------------------------------------------------------===//
// Shape arithmetic
//===----------------------------------------------------------------------===//

bool fsdp::nn::hasCheckedSize(Type type, bool mayBeEmpty) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasStaticShape() ||
      !shaped.getElementType().isIntOrFloat() ||
      shaped.getElementTypeBitWidth() % 8 != 0)
    return false;
  // Counting no element as one, so that no product on the way overflows.
  CheckedSize bytes = shaped.getElementTypeBitWidth() / 8;
  for (int64_t size : shaped.getShape()) {
    if (size == 0 && !mayBeEmpty)
      return false;
    bytes *= std::max<int64_t>(size, 1);
  }
  return bytes.fits(kMaxTensorBytes);
}

int64_t fsdp::nn::bytesOf(Type tensorType) {
  auto type = cast<RankedTensorType>(tensorType);
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

int64_t fsdp::nn::bytesOfOperandsAndResults(Operation *op) {
  CheckedSize bytes = 0;
  for (Type type :
       llvm::concat<const Type>(SmallVector<Type>(op->getOperandTypes()),
                                SmallVector<Type>(op->getResultTypes())))
    if (isa<RankedTensorType>(type))
      bytes += bytesOf(type);
  return bytes.saturated();
}

Type fsdp::nn::accumulationType(Type elementType) {
  return elementType.isF64() ? elementType
                             : Float32Type::get(elementType.getContext());
}

int64_t fsdp::nn::product(ArrayRef<int64_t> sizes) {
  return ShapedType::getNumElements(sizes);
}

RankedTensorType fsdp::nn::withShape(RankedTensorType like,
                                     ArrayRef<int64_t> shape) {
  return RankedTensorType::get(shape, like.getElementType());
}

SmallVector<int64_t> fsdp::nn::otherDims(int64_t rank, ArrayRef<int64_t> dims) {
  SmallVector<int64_t> others;
  for (int64_t dim = 0; dim < rank; ++dim)
    if (!llvm::is_contained(dims, dim))
      others.push_back(dim);
  return others;
}

RankedTensorType fsdp::nn::reducedType(RankedTensorType type,
                                       ArrayRef<int64_t> dims) {
  SmallVector<int64_t> shape;
  for (int64_t dim : otherDims(type.getRank(), dims))
    shape.push_back(type.getDimSize(dim));
  return withShape(type, shape);
}

RankedTensorType fsdp::nn::rowStatisticType(RankedTensorType type) {
  return RankedTensorType::get(type.getShape().drop_back(),
                               accumulationType(type.getElementType()));
}

RankedTensorType fsdp::nn::lossType(RankedTensorType type) {
  return RankedTensorType::get({}, accumulationType(type.getElementType()));
}

DimsPosition fsdp::nn::positionOf(ArrayRef<int64_t> shape,
                                  ArrayRef<int64_t> dims) {
  // One flag per dimension that has more than one element.
  SmallVector<bool> inside;
  for (auto [dim, size] : llvm::enumerate(shape))
    if (size != 1)
      inside.push_back(llvm::is_contained(dims, static_cast<int64_t>(dim)));
  size_t changes = 0;
  for (size_t i = 1; i < inside.size(); ++i)
    changes += inside[i] != inside[i - 1];
  if (changes > 1)
    return DimsPosition::Mixed;
  if (inside.empty() || (changes == 0 && !inside.front()))
    return DimsPosition::None;
  if (changes == 0)
    return DimsPosition::All;
  return inside.front() ? DimsPosition::Leading : DimsPosition::Trailing;
}

SmallVector<int64_t> fsdp::nn::repeatedDims(BroadcastOp op) {
  RankedTensorType result = typeOf(op.getResult());
  SmallVector<int64_t> carried;
  for (auto [size, dim] : llvm::zip_equal(shapeOf(op.getInput()), op.getDims()))
    if (size == result.getDimSize(dim))
      carried.push_back(dim);
  return otherDims(result.getRank(), carried);
}
