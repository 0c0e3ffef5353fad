//===- ModelSpec.h - Which model, in which size -----------------*- C++ -*-===//
//
// A model is named by the registry ("llama3_8b"), by a Hugging Face directory
// or config.json, or by a config struct; any field can be overridden by
// key=value.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_MODELSPEC_H
#define FSDP_FAMILIES_MODELSPEC_H

#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Families/DecoderConfig.h"
#include "fsdp/Families/MlpConfig.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>
#include <variant>
#include <vector>

namespace fsdp {

struct ModelSpec {
  std::string name;
  std::variant<DecoderConfig, MlpConfig> config;
  // What a program is traced for if the caller does not say.
  int64_t batch = 1;
  int64_t seqLen = 1; // no meaning for an MLP
  /// What was found in a file and is not used, one line each.
  std::vector<std::string> warnings = {};
};

/// A model of the registry.
struct RegisteredModel {
  ModelSpec spec;
  llvm::StringRef description;
  llvm::StringRef group; // "Qwen3": of those that are listed together
};
llvm::ArrayRef<RegisteredModel> getRegisteredModels();

/// Finds `model` in the registry, or reads it if it ends in ".json" or is a
/// directory with a config.json. Errors name the nearest known model, or the
/// key of the file that is wrong.
llvm::Expected<ModelSpec> findModel(llvm::StringRef model);

/// Reads a Hugging Face config.json of a family in Families.h. `name` is used
/// in errors. Optional keys have Hugging Face's defaults. A key with a value
/// that the traced model cannot express is an error, an unknown one a warning.
llvm::Expected<ModelSpec> parseHuggingFaceConfig(llvm::StringRef text,
                                                 llvm::StringRef name);

/// Sets one field, for example ("n_layers", "4"). Errors name the field, what
/// it takes, and the nearest known key.
llvm::Error setModelField(ModelSpec &spec, llvm::StringRef key,
                          llvm::StringRef value);

/// A field that setModelField knows.
struct ModelField {
  llvm::StringRef key;
  llvm::StringRef description;
  std::variant<int64_t, double, bool, std::string> value;
};
/// Those that say which model it is. What is rare and as its family has it
/// otherwise is left out.
std::vector<ModelField> getModelFields(const ModelSpec &spec);

/// What kind of model it is: "llama3", "mlp".
llvm::StringRef getModelFamily(const ModelSpec &spec);

/// What manifests and checkpoints say of the model.
rt::ModelInfo getModelInfo(const ModelSpec &spec);

/// Checks that sizes are positive and that heads divide as they must.
llvm::Error verifyModel(const ModelSpec &spec);

} // namespace fsdp

#endif // FSDP_FAMILIES_MODELSPEC_H
