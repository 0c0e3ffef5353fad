//===- FsdpDialect.cpp - Registration and discardable attributes ----------===//
#include "dialects/Fsdp/Decision.h"
#include "dialects/Fsdp/Placement.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

#include "dialects/Fsdp/FsdpDialect.cpp.inc"
#include "dialects/Fsdp/FsdpEnums.cpp.inc"
#define GET_OP_CLASSES
#include "dialects/Fsdp/FsdpOps.cpp.inc"

void FsdpDialect::initialize() {
  registerAttributesAndTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Fsdp/FsdpOps.cpp.inc"
      >();
}

/// Attributes of a dialect are verified before the op that carries them and
/// before its siblings, so a property may still be missing below.

/// The mesh of the module that `op` is declared in; null if there is none.
static MeshOp meshBeside(Operation *op) {
  Operation *table = SymbolTable::getNearestSymbolTable(op->getParentOp());
  if (!table)
    return {};
  for (auto mesh : table->getRegion(0).getOps<MeshOp>())
    if (mesh.getAxesAttr() && mesh.getSymNameAttr())
      return mesh;
  return {};
}

/// Type of the tensor that a parameter or buffer declares; null if it is not
/// well formed.
static RankedTensorType declaredType(Operation *op) {
  TypeAttr type;
  if (auto parameter = dyn_cast<nn::ParameterOp>(op))
    type = parameter.getTypeAttr();
  if (auto buffer = dyn_cast<nn::BufferOp>(op))
    type = buffer.getTypeAttr();
  return type ? dyn_cast<RankedTensorType>(type.getValue())
              : RankedTensorType();
}

/// fsdp.placement on a declaration: where it is stored.
static LogicalResult verifyDeclared(Operation *op, Attribute attribute) {
  if (!isa<nn::ParameterOp, nn::BufferOp>(op))
    return op->emitOpError("may not have '")
           << kPlacementAttr << "', which belongs on nn.parameter or nn.buffer";
  auto placement = dyn_cast<PlacementAttr>(attribute);
  if (!placement)
    return op->emitOpError("needs '")
           << kPlacementAttr << "' to be a #fsdp.placement, got " << attribute;
  RankedTensorType type = declaredType(op);
  if (!type)
    return success(); // The declaration itself will be refused.
  MeshOp mesh = meshBeside(op);
  if (!mesh)
    return op->emitOpError("has a placement, but there is no fsdp.mesh");
  if (!placement.getPartial().empty() && !isa<nn::BufferOp>(op))
    return op->emitOpError("has a storage placement, which cannot be partial: ")
           << placement;
  return verifyPlacement([&] { return op->emitOpError("has a "); }, type,
                         placement, mesh, /*mayBeStored=*/true);
}

/// fsdp.placement of an argument or result of type `type` of the function `op`.
static LogicalResult verifyBoundary(Operation *op, NamedAttribute attribute,
                                    Type type) {
  auto placement = dyn_cast<PlacementAttr>(attribute.getValue());
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (attribute.getName() != kPlacementAttr || !placement || !tensor)
    return op->emitOpError("has ")
           << attribute.getName() << " = " << attribute.getValue() << " on "
           << type << "; arguments and results are tensors with '"
           << kPlacementAttr << "', a #fsdp.placement";
  MeshOp mesh = meshBeside(op);
  if (!mesh)
    return op->emitOpError("has a placement, but there is no fsdp.mesh");
  auto emitError = [&] { return op->emitOpError("has a "); };
  return op->hasAttr(kLocalAttr)
             ? verifyPlacementAxes(emitError, tensor.getRank(), placement, mesh,
                                   /*mayBeStored=*/false)
             : verifyPlacement(emitError, tensor, placement, mesh,
                               /*mayBeStored=*/false);
}

LogicalResult FsdpDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned argument,
                                                    NamedAttribute attribute) {
  auto function = cast<FunctionOpInterface>(op);
  return verifyBoundary(op, attribute, function.getArgumentTypes()[argument]);
}

LogicalResult FsdpDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned result, NamedAttribute attribute) {
  auto function = cast<FunctionOpInterface>(op);
  return verifyBoundary(op, attribute, function.getResultTypes()[result]);
}

static bool isOriginOfOp(Attribute attribute) {
  auto origin = dyn_cast<OriginAttr>(attribute);
  return origin && !origin.getOp().empty();
}

/// A list of one attribute per operand of a collective; `what` is one.
static LogicalResult verifyList(Operation *op, NamedAttribute attribute,
                                llvm::function_ref<bool(Attribute)> isOne,
                                StringRef what) {
  auto list = dyn_cast<ArrayAttr>(attribute.getValue());
  if (isa<CollectiveOpInterface>(op) && list &&
      list.size() == op->getNumOperands() && llvm::all_of(list, isOne))
    return success();
  return op->emitOpError("needs '")
         << attribute.getName().getValue() << "' to be one " << what
         << " per operand of a collective";
}

static LogicalResult verifyLowering(Operation *op, Attribute value) {
  auto isText = [](NamedAttribute setting) {
    return isa<StringAttr>(setting.getValue());
  };
  auto settings = dyn_cast<DictionaryAttr>(value);
  if (isa<ModuleOp>(op) && settings && llvm::all_of(settings, isText))
    return success();
  return op->emitOpError("needs '")
         << kLoweringAttr << "' to be a dictionary of texts on the module";
}

LogicalResult FsdpDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == kPlacementAttr)
    return verifyDeclared(op, attribute.getValue());
  if (name == kPlanAttr) {
    if (isa<ModuleOp>(op) && isa<ArrayAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("needs '")
           << kPlanAttr << "' to be an array of rules on the module";
  }
  if (name == kParametersAttr)
    return verifyList(op, attribute, llvm::IsaPred<FlatSymbolRefAttr>,
                      "symbol of a parameter");
  if (name == kMembersAttr)
    return verifyList(op, attribute, isOriginOfOp, "#fsdp.origin of an op");
  if (name == kOriginAttr) {
    if (isOriginOfOp(attribute.getValue()))
      return success();
    return op->emitOpError("needs '")
           << kOriginAttr << "' to be the #fsdp.origin of an op";
  }
  if (name == kDecisionAttr)
    return verifyDecision(op, attribute.getValue());
  if (name == kSemanticDigestAttr) {
    if (isa<FunctionOpInterface, ModuleOp>(op) &&
        isa<DenseI64ArrayAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("needs '")
           << kSemanticDigestAttr
           << "' to be an array of i64 on a program or the module";
  }
  if (name == kLoweringAttr)
    return verifyLowering(op, attribute.getValue());
  if (name == kLocalAttr) {
    if (isa<FunctionOpInterface>(op) && isa<UnitAttr>(attribute.getValue()))
      return success();
    return op->emitOpError("needs '")
           << kLocalAttr << "' to be a unit on a program";
  }
  return op->emitOpError("has an unknown attribute '") << name << "'";
}
