//===- HuggingFaceConfig.cpp - A model from a config.json -----------------===//
//
// What the keys mean is read by lib/Families, which knows the families of
// Hugging Face and serves the runtime too.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Families/ModelSpec.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"

using llvm::Expected;
using llvm::StringRef;

namespace fsdp {

Expected<ModelSpec> parseHuggingFaceConfig(StringRef text, StringRef name) {
  ModelSpec spec;
  spec.name = name.str();
  spec.config = LlamaConfig();
  try {
    checkpoint::ModelConfig config = checkpoint::readModelConfig(text.str());
    for (const std::string &warning : config.warnings)
      spec.warnings.push_back(spec.name + ": " + warning);
    for (const auto &[key, value] : config.model.fields)
      if (llvm::Error error = setModelField(spec, key, value))
        return error;
  } catch (const fsdp::Error &error) {
    return llvm::createStringError(name + ": " + error.what());
  }
  spec.seqLen =
      std::min<int64_t>(std::get<LlamaConfig>(spec.config).maxSeqLen, 8192);
  if (llvm::Error error = verifyModel(spec))
    return error;
  return spec;
}

} // namespace fsdp
