//===- ModelFields.h - What a kind of model says of its fields --*- C++ -*-===//
#ifndef FSDP_FAMILIES_MODELFIELDS_H
#define FSDP_FAMILIES_MODELFIELDS_H

#include "fsdp/Families/ModelSpec.h"

namespace fsdp {

/// The fields that a model has, in the order in which they are listed.
std::vector<FieldOf<DecoderConfig>> fields(const DecoderConfig &config);
std::vector<FieldOf<MlpConfig>> fields(const MlpConfig &config);

/// What fields are where nothing states them.
DecoderConfig baseOf(const DecoderConfig &config);
MlpConfig baseOf(const MlpConfig &config);

/// What else must hold of sizes that are sizes.
llvm::Error verifyConfig(const DecoderConfig &config);
llvm::Error verifyConfig(const MlpConfig &config);

} // namespace fsdp

#endif // FSDP_FAMILIES_MODELFIELDS_H
