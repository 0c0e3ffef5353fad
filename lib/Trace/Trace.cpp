//===- Trace.cpp - From a model to its graph ------------------------------===//
#include "fsdp/Trace/Trace.h"
#include "dialects/NN/NN.h"
#include "fsdp/Trace/Module.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace fsdp {

static DictionaryAttr nameAttr(OpBuilder &builder, StringRef name) {
  return builder.getDictionaryAttr(
      builder.getNamedAttr(nn::kNameAttr, builder.getStringAttr(name)));
}

/// The empty program @forward with the inputs of `model` as its arguments.
static func::FuncOp createProgram(OpBuilder &builder, Location loc,
                                  const model::Model &model) {
  SmallVector<Type> types;
  SmallVector<Location> locs;
  std::vector<model::NamedType> inputs = model.inputs(builder.getContext());
  for (const model::NamedType &input : inputs) {
    types.push_back(input.type);
    locs.push_back(NameLoc::get(builder.getStringAttr(input.name)));
  }
  auto program = func::FuncOp::create(builder, loc, "forward",
                                      builder.getFunctionType(types, {}));
  program.addEntryBlock();
  for (auto [index, input] : llvm::enumerate(inputs)) {
    program.getArgument(index).setLoc(locs[index]);
    program.setArgAttrs(index, nameAttr(builder, input.name));
  }
  return program;
}

/// Ends `program` with `results`, which also give it its result types.
static void finishProgram(OpBuilder &builder, func::FuncOp program,
                          ArrayRef<model::NamedTensor> results) {
  SmallVector<Value> values;
  SmallVector<Type> types;
  for (const model::NamedTensor &result : results) {
    values.push_back(result.tensor.value());
    types.push_back(result.tensor.type());
  }
  func::ReturnOp::create(builder, program.getLoc(), values);
  program.setFunctionType(
      builder.getFunctionType(program.getArgumentTypes(), types));
  for (auto [index, result] : llvm::enumerate(results))
    program.setResultAttrs(index, nameAttr(builder, result.name));
}

OwningOpRef<ModuleOp> traceModel(MLIRContext &context,
                                 const model::Model &model, StringRef name) {
  context.loadDialect<func::FuncDialect, nn::NNDialect>();
  OpBuilder builder(&context);
  Location loc = NameLoc::get(builder.getStringAttr(name));
  OwningOpRef<ModuleOp> module = ModuleOp::create(builder, loc, name);

  builder.setInsertionPointToEnd(module->getBody());
  func::FuncOp program = createProgram(builder, loc, model);
  builder.setInsertionPointToStart(&program.getBody().front());

  model::Tracer tracer(*module, builder);
  tracer.declare(model);
  program->moveAfter(&module->getBody()->back());
  SmallVector<model::Tensor> inputs;
  for (BlockArgument argument : program.getArguments())
    inputs.emplace_back(argument, tracer);
  finishProgram(tracer.builder(), program, model.forward(inputs));
  return module;
}

} // namespace fsdp
