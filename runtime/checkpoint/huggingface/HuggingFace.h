//===- HuggingFace.h - Directories of Hugging Face --------------*- C++ -*-===//
//
// A directory with config.json and weights in safetensors, one file or shards
// with an index: read as a TensorStore, and written. What is known of a family
// of models is its table (include/fsdp/Families/Families.h).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_HUGGINGFACE_HUGGINGFACE_H
#define FSDP_RUNTIME_CHECKPOINT_HUGGINGFACE_HUGGINGFACE_H

#include "fsdp/Families/ModelConfig.h"
#include "runtime/checkpoint/store/TensorStore.h"
#include <optional>

namespace fsdp::checkpoint {

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
/// transformers loads it: config.json, safetensors as it would split them, the
/// index. Other tensors of the store (states of the optimizer) are left out.
/// Gives the store Hugging Face's rotary layout. Throws fsdp::Error,
/// Interrupted if a signal has come that DeferredSignals leaves to the process;
/// then the directory is not there.
ExportSummary exportHuggingFace(TensorStore &store, const std::string &path,
                                const ExportOptions &options);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_HUGGINGFACE_HUGGINGFACE_H
