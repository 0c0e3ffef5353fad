//===- TensorFile.cpp - Inputs and outputs as safetensors -----------------===//
#include "TensorFile.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Half.h"
#include <cstring>

using namespace mlir;
using namespace fsdp;
using interpret::DenseTensor;
using interpret::TensorMap;

/// Element `i` of `bytes`, which need not be aligned.
template <typename T> static T load(const std::byte *bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

static double elementOf(const rt::TensorView &view, int64_t i) {
  switch (view.dtype) {
  case rt::DType::F32:
    return load<float>(view.data, i);
  case rt::DType::BF16:
    return bf16ToFloat(load<uint16_t>(view.data, i));
  case rt::DType::F64:
    return load<double>(view.data, i);
  case rt::DType::I8:
    return load<int8_t>(view.data, i);
  case rt::DType::I32:
    return load<int32_t>(view.data, i);
  case rt::DType::I64:
    return static_cast<double>(load<int64_t>(view.data, i));
  case rt::DType::F16:
    return f16ToFloat(load<uint16_t>(view.data, i));
  }
  llvm_unreachable("unknown DType");
}

static DenseTensor tensorOf(const rt::TensorView &view) {
  DenseTensor tensor = DenseTensor::full(view.shape);
  for (int64_t i = 0; i < tensor.size(); ++i)
    tensor.values[i] = elementOf(view, i);
  return tensor;
}

static bool hasArgument(func::FuncOp program, StringRef name) {
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    if (interpret::argumentName(program, i) == name)
      return true;
  return false;
}

static bool declares(func::FuncOp program, StringRef name) {
  Operation *op =
      SymbolTable::lookupSymbolIn(program->getParentOfType<ModuleOp>(), name);
  return isa_and_nonnull<nn::ParameterOp, nn::BufferOp>(op);
}

void fsdp::readInputs(const std::string &path, func::FuncOp program,
                      interpret::GridInputs &inputs) {
  rt::SafetensorsFile file(path);
  auto refuse = [&](const std::string &name, const std::string &why) {
    throw Error("'" + path + "': tensor '" + name + "' " + why);
  };
  for (const rt::TensorView &view : file.tensors()) {
    StringRef name = view.name;
    size_t rank = 0;
    bool ofOneRank = name.consume_front("rank") &&
                     !name.consumeInteger(10, rank) && name.consume_front("/");
    if (!ofOneRank && declares(program, view.name)) {
      inputs.state[view.name] = tensorOf(view);
      continue;
    }
    if (ofOneRank && rank >= inputs.arguments.size())
      refuse(view.name, "is for a rank that the mesh has not");
    std::string argument = ofOneRank ? name.str() : view.name;
    if (!hasArgument(program, argument))
      refuse(view.name, "is no argument of @" + program.getName().str() +
                            " and no parameter or buffer of the module");
    if (ofOneRank)
      inputs.arguments[rank][argument] = tensorOf(view);
    else // A rank's own tensor, before or after in the file, comes first.
      for (TensorMap &arguments : inputs.arguments)
        arguments.insert({argument, tensorOf(view)});
  }
}

void fsdp::writeOutputs(const std::string &path,
                        const interpret::GridOutputs &outputs) {
  std::vector<rt::TensorView> views;
  auto add = [&](const std::string &name, const DenseTensor &tensor) {
    views.push_back(
        {name, rt::DType::F64, tensor.shape,
         reinterpret_cast<const std::byte *>(tensor.values.data())});
  };
  for (const auto &[name, tensor] : outputs.state)
    add(name, tensor);
  for (auto [rank, results] : llvm::enumerate(outputs.results))
    for (const auto &[name, tensor] : results)
      add("rank" + std::to_string(rank) + "/" + name, tensor);
  rt::writeSafetensors(path, std::move(views), {});
}
