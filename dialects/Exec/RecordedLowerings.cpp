//===- RecordedLowerings.cpp - Which op becomes which operation -----------===//
#include "dialects/Exec/RecordedLowerings.h"
#include "dialects/Exec/Exec.h"

using namespace mlir;
using namespace fsdp::exec;

RecordedLowerings::RecordedLowerings(MLIRContext *context) {
  for (RegisteredOperationName name : context->getRegisteredOperations())
    if (const auto *record = name.getInterface<RuntimeOpInterface>())
      if (StringRef source = record->getSignature().lowersFrom; !source.empty())
        bySource.try_emplace(source, name);
}

std::optional<OperationName> RecordedLowerings::of(Operation *op) const {
  auto at = bySource.find(op->getName().getStringRef());
  if (at == bySource.end())
    return std::nullopt;
  return at->second;
}
