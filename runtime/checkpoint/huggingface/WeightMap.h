//===- WeightMap.h - The index of shards of Hugging Face --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_HUGGINGFACE_WEIGHTMAP_H
#define FSDP_RUNTIME_CHECKPOINT_HUGGINGFACE_WEIGHTMAP_H

#include <map>
#include <string>

namespace fsdp::checkpoint {

/// The file of each tensor as model.safetensors.index.json says, by the names
/// in files. They are plain names of .safetensors files: they lead nowhere
/// else. Throws fsdp::Error that names `origin` (a path) and the tensor.
std::map<std::string, std::string> parseWeightMap(const std::string &text,
                                                  const std::string &origin);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_HUGGINGFACE_WEIGHTMAP_H
