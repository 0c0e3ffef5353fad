//===- HuggingFace.h - Directories of Hugging Face --------------*- C++ -*-===//
//
// A directory with config.json and weights in safetensors, one file or shards
// with an index: read as a TensorStore, and written. What is known of a family
// of models is its table (lib/Checkpoint/Families.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CHECKPOINT_HUGGINGFACE_H
#define FSDP_CHECKPOINT_HUGGINGFACE_H

#include "fsdp/Checkpoint/TensorStore.h"
#include <optional>

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

/// Whether `path` is a directory with one of the files by which a directory of
/// Hugging Face is known.
bool isHuggingFace(const std::string &path);

/// A file of a tokenizer in the directory `path`, or beside the file `path`;
/// empty: there is none.
std::string tokenizerOf(const std::string &path);

/// Opens such a directory. Every tensor that config.json says must be there,
/// with its shape, once, where the index says; others must not. Names are ours.
/// Where the model is tied, lm_head may be there if it equals the embedding.
/// Throws fsdp::Error with all that is wrong in one place.
std::unique_ptr<TensorStore> openHuggingFace(const std::string &path);

/// The type that config.json calls "float32", "bfloat16" or "float16".
rt::DType weightType(const std::string &name);

/// Throws fsdp::Error unless Hugging Face has names for the tensors of `model`;
/// `owner` says whose model it is, for messages.
void checkExportable(const std::optional<rt::ModelInfo> &model,
                     const std::string &owner);

struct ExportOptions {
  rt::DType dtype = rt::DType::F32; // or BF16, F16
  /// Of one file; a tensor that is larger has a file of its own.
  int64_t shardBytes = 5000000000;
  /// A directory whose tokenizer files are copied, and the ids of special
  /// tokens in its config.json; empty: none.
  std::string assets;
};

struct ExportSummary {
  int64_t tensors = 0, parameters = 0, bytes = 0; // bytes of tensors alone
  size_t files = 0;                               // with tensors
};

/// Writes the weights of `store` to the new directory `path` so that
/// transformers loads it: config.json, safetensors as it would cut them, the
/// index. Other tensors of the store (states of the optimizer) are left out.
/// Gives the store Hugging Face's rotary layout. Throws fsdp::Error,
/// Interrupted if a signal has come that DeferredSignals leaves to the process;
/// then the directory is not there.
ExportSummary exportHuggingFace(TensorStore &store, const std::string &path,
                                const ExportOptions &options);

} // namespace fsdp::checkpoint

#endif // FSDP_CHECKPOINT_HUGGINGFACE_H
