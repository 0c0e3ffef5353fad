//===- ModelFields.h - What a family says of its models ---------*- C++ -*-===//
#ifndef FSDP_FAMILIES_MODELFIELDS_H
#define FSDP_FAMILIES_MODELFIELDS_H

#include "fsdp/Families/ModelSpec.h"
#include "fsdp/Support/CheckedSize.h"

namespace fsdp {

/// A field of the sizes of a family, by the key that sets it.
template <typename Config> struct FieldOf {
  llvm::StringRef key, description;
  std::variant<int64_t Config::*, double Config::*, bool Config::*> member;
  int64_t max = kMaxDimension; // of an integer
};

llvm::ArrayRef<FieldOf<LlamaConfig>> fields(const LlamaConfig &);
llvm::ArrayRef<FieldOf<MlpConfig>> fields(const MlpConfig &);

/// What else must hold of sizes that are sizes.
llvm::Error verifyConfig(const LlamaConfig &config);
llvm::Error verifyConfig(const MlpConfig &config);

/// Those that the registry knows.
std::vector<RegisteredModel> llamaModels();
std::vector<RegisteredModel> mlpModels();

} // namespace fsdp

#endif // FSDP_FAMILIES_MODELFIELDS_H
