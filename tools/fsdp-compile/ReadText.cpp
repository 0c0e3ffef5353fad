//===- ReadText.cpp - The module of a text file ---------------------------===//
#include "ReadText.h"
#include "dialects/NN/NN.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/AsmParser/AsmParserState.h"
#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace fsdp;
using namespace mlir;

/// The modules of a model: every parameter "a.b.weight" lies in "a" and "a.b".
static llvm::StringSet<> modulesOf(ModuleOp module) {
  llvm::StringSet<> modules;
  for (auto parameter : module.getOps<nn::ParameterOp>()) {
    StringRef path = parameter.getSymName();
    while (path.contains('.')) {
      path = path.rsplit('.').first;
      if (!modules.insert(path).second)
        break;
    }
  }
  return modules;
}

/// The module that the name of a value states. The printer numbers names that
/// several values have: "layers.0.attention.wq_3".
static StringRef statedModule(StringRef name,
                              const llvm::StringSet<> &modules) {
  name.consume_front("%");
  if (modules.contains(name))
    return name;
  auto [path, number] = name.rsplit('_');
  bool isNumbered = !number.empty() && llvm::all_of(number, llvm::isDigit);
  return isNumbered && modules.contains(path) ? path : StringRef();
}

static void nameLocations(ModuleOp module, const AsmParserState &state) {
  llvm::StringSet<> modules = modulesOf(module);
  for (const AsmParserState::OperationDefinition &definition :
       state.getOpDefs()) {
    if (definition.resultGroups.empty())
      continue;
    SMRange range = definition.resultGroups.front().definition.loc;
    StringRef name(range.Start.getPointer(),
                   range.End.getPointer() - range.Start.getPointer());
    StringRef path = statedModule(name, modules);
    if (!path.empty())
      definition.op->setLoc(NameLoc::get(
          StringAttr::get(module.getContext(), path), definition.op->getLoc()));
  }
}

OwningOpRef<ModuleOp> fsdp::readText(llvm::SourceMgr &sources,
                                     MLIRContext *context) {
  const llvm::MemoryBuffer *buffer =
      sources.getMemoryBuffer(sources.getMainFileID());
  // Bytecode has no names of values, but keeps locations.
  if (isBytecode(*buffer))
    return parseSourceFile<ModuleOp>(sources, context);
  AsmParserState state;
  Block block;
  if (failed(parseAsmSourceFile(sources, &block, context, &state)))
    return {};
  OwningOpRef<ModuleOp> module;
  if (llvm::hasSingleElement(block) && isa<ModuleOp>(block.front())) {
    module = cast<ModuleOp>(block.front());
    module.get()->remove();
  } else {
    // The module around the text may be left out.
    module = ModuleOp::create(FileLineColLoc::get(
        context, buffer->getBufferIdentifier(), /*line=*/0, /*column=*/0));
    module->getBody()->getOperations().splice(module->getBody()->begin(),
                                              block.getOperations());
  }
  nameLocations(*module, state);
  return module;
}
