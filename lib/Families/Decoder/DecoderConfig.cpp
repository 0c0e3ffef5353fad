//===- DecoderConfig.cpp - What must hold of a decoder's sizes ------------===//
#include "fsdp/Families/Families.h"
#include "lib/Families/ModelFields.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace fsdp {

std::vector<FieldOf<DecoderConfig>> fields(const DecoderConfig &config) {
  std::vector<FieldOf<DecoderConfig>> all;
  const checkpoint::Family *family = checkpoint::findFamily(config.family);
  if (!family)
    return all; // verifyConfig refuses it
  for (const checkpoint::FamilyField &field : family->modelFields) {
    all.push_back(*llvm::find_if(decoderFields(), [&](const auto &known) {
      return StringRef(known.key) == field.key;
    }));
    all.back().isRare = field.isRare;
  }
  return all;
}

DecoderConfig baseOf(const DecoderConfig &config) {
  return checkpoint::findFamily(config.family)->base;
}

static llvm::Error verifyHeads(const DecoderConfig &config) {
  if (!config.headDim && config.dim % config.heads)
    return llvm::createStringError(
        "dim = " + llvm::Twine(config.dim) +
        " is not divisible by n_heads = " + llvm::Twine(config.heads));
  if (config.heads % config.getKvHeads())
    return llvm::createStringError(
        "n_heads = " + llvm::Twine(config.heads) +
        " is not divisible by n_kv_heads = " + llvm::Twine(config.kvHeads));
  return llvm::Error::success();
}

static llvm::Error verifyRotary(const DecoderConfig &config) {
  if (config.getHeadDim() % 2)
    return llvm::createStringError(
        "a head of " + llvm::Twine(config.getHeadDim()) +
        " elements has no rotary pairs: its width must be even");
  if (!(config.ropeTheta > 0) || !(config.ropeFactor > 0))
    return llvm::createStringError(
        "rope_theta and rope_factor must be positive");
  if (config.ropeFactor != 1 &&
      !(config.ropeLow > 0 && config.ropeHigh > config.ropeLow))
    return llvm::createStringError(
        "rope_high must be greater than rope_low, and both positive");
  return llvm::Error::success();
}

llvm::Error verifyConfig(const DecoderConfig &config) {
  if (!checkpoint::findFamily(config.family))
    return llvm::createStringError("no table describes the family '" +
                                   config.family + "'");
  if (llvm::Error error = verifyHeads(config))
    return error;
  if (!config.learnedPositions)
    if (llvm::Error error = verifyRotary(config))
      return error;
  if (!(config.normEps >= 0))
    return llvm::createStringError("norm_eps must not be negative");
  if (!llvm::is_contained(kActivations, config.activation))
    return llvm::createStringError(
        "activation is one of " +
        llvm::join(llvm::ArrayRef<const char *>(kActivations), ", ") +
        ", not '" + config.activation + "'");
  return llvm::Error::success();
}

} // namespace fsdp
