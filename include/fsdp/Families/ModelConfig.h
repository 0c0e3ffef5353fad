//===- ModelConfig.h - Models as config.json tells them ---------*- C++ -*-===//
//
// What is known of a family of models is its table (Families.h); what follows
// from it for a config.json of Hugging Face, and for comparing models, is here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_MODELCONFIG_H
#define FSDP_FAMILIES_MODELCONFIG_H

#include "fsdp/Artifact/Manifest.h"
#include <map>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

/// A config.json. Rotary pairs are the halves of a head (rope_halves = true),
/// as transformers has them.
struct ModelConfig {
  rt::ModelInfo model;
  /// What was found in the file and is not used, one line each.
  std::vector<std::string> warnings;
};

/// Reads the text of a config.json, with transformers' names and defaults, of
/// version 4 and 5. A key with a value that the model of the family cannot
/// express is an error, an unknown one a warning. Throws fsdp::Error that names
/// the key.
ModelConfig readModelConfig(const std::string &text);

/// The text of a config.json that versions 4 and 5 of transformers read alike.
/// `dtype`: what the weights are stored in; `more`: other keys with their JSON.
std::string writeModelConfig(const rt::ModelInfo &model, rt::DType dtype,
                             const std::map<std::string, std::string> &more);

/// The fields of a model, each value written in one way: head_dim is the width
/// that a 0 stands for, and where low frequencies are not stretched, the fields
/// of the stretch are left out. Throws fsdp::Error if dim / n_heads is no
/// integer.
std::map<std::string, std::string> effectiveFields(const rt::ModelInfo &model);

/// The fields in which two models differ so that weights of the one are none
/// of the other, "dim is 64 instead of 128", joined by ", ". What does not
/// change what weights mean is left out: the longest sequence and the rotary
/// layout.
std::string modelDifference(const rt::ModelInfo &is,
                            const rt::ModelInfo &wanted);

/// The type that config.json calls "float32", "bfloat16" or "float16".
rt::DType weightType(const std::string &name);

} // namespace fsdp::checkpoint

#endif // FSDP_FAMILIES_MODELCONFIG_H
