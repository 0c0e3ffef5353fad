//===- ExecUtils.cpp - Bytes, ranges and accesses of exec ops -------------===//
#include "dialects/Exec/Exec.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace fsdp::exec {

bool isBuffer(Type type) {
  auto memRef = dyn_cast<MemRefType>(type);
  if (!memRef || !memRef.getLayout().isIdentity())
    return false;
  Type element = memRef.getElementType();
  bool isKnown = element.isF32() || element.isBF16() || element.isF64() ||
                 element.isSignlessInteger(8) ||
                 element.isSignlessInteger(32) || element.isSignlessInteger(64);
  return isKnown && nn::hasCheckedSize(memRef, element.isInteger(8));
}

int64_t bytesOf(MemRefType type) {
  return type.getNumElements() * (type.getElementTypeBitWidth() / 8);
}

const Invocation *lookupInvocation(StringRef name) {
  static const Invocation table[] = {
#define INVOCATION(name, function, in, perIn, out, perOut, workspaces,         \
                   inPlace, params)                                            \
  {name, function, in, perIn, out, perOut, workspaces, inPlace, params},
#include "dialects/Exec/ExecInvocations.def"
  };
  for (const Invocation &entry : table)
    if (entry.name == name)
      return &entry;
  return nullptr;
}

ByteRange resolveRange(Value buffer) {
  auto type = cast<MemRefType>(buffer.getType());
  ByteRange range{buffer, 0, bytesOf(type)};
  int64_t elementBytes = type.getElementTypeBitWidth() / 8;
  while (auto view = range.root.getDefiningOp<ViewOp>()) {
    int64_t shift = static_cast<int64_t>(view.getOffset()) * elementBytes;
    range.begin += shift;
    range.end += shift;
    range.root = view.getSource();
  }
  return range;
}

bool isWork(Operation *op) {
  return isa<LaunchOp, GemmOp, InvokeOp, CollectiveOp, CopyOp>(op);
}

Stream streamOf(Operation *op) {
  return TypeSwitch<Operation *, Stream>(op)
      .Case<LaunchOp, GemmOp, InvokeOp, CollectiveOp, CopyOp>(
          [](auto work) { return work.getStream(); })
      .DefaultUnreachable("not a work op");
}

SmallVector<Value> readsOf(Operation *op) {
  return TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<LaunchOp, GemmOp, InvokeOp, CollectiveOp, CopyOp>(
          [](auto work) { return llvm::to_vector(work.getInputs()); })
      .DefaultUnreachable("not a work op");
}

SmallVector<Value> writesOf(Operation *op) {
  SmallVector<Value> values =
      TypeSwitch<Operation *, SmallVector<Value>>(op)
          .Case<LaunchOp, GemmOp, InvokeOp, CollectiveOp, CopyOp>(
              [](auto work) { return llvm::to_vector(work.getOutputs()); })
          .DefaultUnreachable("not a work op");
  llvm::append_range(values, workspacesOf(op));
  return values;
}

SmallVector<Value> workspacesOf(Operation *op) {
  return TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<GemmOp, InvokeOp, CollectiveOp>(
          [](auto work) { return llvm::to_vector(work.getWorkspaces()); })
      .Case<LaunchOp, CopyOp>([](auto) { return SmallVector<Value>(); })
      .DefaultUnreachable("not a work op");
}

bool mayUpdateInPlace(Operation *op, size_t index) {
  if (auto collective = dyn_cast<CollectiveOp>(op))
    return collective.getKind() == CollectiveKind::AllReduce;
  auto invoke = dyn_cast<InvokeOp>(op);
  return invoke && lookupInvocation(invoke.getCallee())->inPlace &&
         index < invoke.getOutputs().size();
}

} // namespace fsdp::exec
