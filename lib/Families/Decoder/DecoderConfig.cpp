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

/// Fails unless `text` is one of `known`.
static llvm::Error verifyName(StringRef key, llvm::ArrayRef<const char *> known,
                              const std::string &text) {
  if (llvm::is_contained(known, text))
    return llvm::Error::success();
  return llvm::createStringError(key + " is one of " + llvm::join(known, ", ") +
                                 ", not '" + text + "'");
}

static llvm::Error verifyStretch(const DecoderConfig &config) {
  if (llvm::Error error = verifyName("rope_type", kRopeTypes, config.ropeType))
    return error;
  if (config.ropeType == "llama3" && config.ropeFactor != 1 &&
      !(config.ropeLow > 0 && config.ropeHigh > config.ropeLow))
    return llvm::createStringError(
        "rope_high must be greater than rope_low, and both positive");
  if (config.ropeType == "yarn" &&
      !(config.ropeBetaFast > 0 && config.ropeBetaSlow > 0))
    return llvm::createStringError(
        "rope_beta_fast and rope_beta_slow must be positive");
  if (config.ropeType != "longrope")
    return llvm::Error::success();
  auto pairs = static_cast<size_t>(config.getRotaryDim() / 2);
  auto areFactors = [&](const std::vector<double> &factors) {
    return factors.size() == pairs &&
           llvm::all_of(factors, [](double factor) { return factor > 0; });
  };
  if (!areFactors(config.ropeShort) || !areFactors(config.ropeLong))
    return llvm::createStringError(
        "rope_short and rope_long must have a positive number for each of " +
        llvm::Twine(pairs) + " rotary pairs");
  return llvm::Error::success();
}

static llvm::Error verifyRotary(const DecoderConfig &config) {
  if (config.getRotaryDim() % 2)
    return llvm::createStringError(
        "a head of " + llvm::Twine(config.getRotaryDim()) +
        " elements has no rotary pairs: its width must be even");
  if (config.getRotaryDim() > config.getHeadDim())
    return llvm::createStringError(
        "rotary_dim = " + llvm::Twine(config.rotaryDim) + " is more than the " +
        llvm::Twine(config.getHeadDim()) + " elements of a head");
  if (!(config.ropeTheta > 0) || !(config.ropeFactor > 0))
    return llvm::createStringError(
        "rope_theta and rope_factor must be positive");
  return verifyStretch(config);
}

static llvm::Error verifyAttention(const DecoderConfig &config) {
  if (!(config.attnScalar >= 0) || !(config.attnCap >= 0) ||
      !(config.logitCap >= 0))
    return llvm::createStringError(
        "attn_scalar, attn_cap and logit_cap must not be negative");
  if (!windowLayers(config.windowLayers, config.layers))
    return llvm::createStringError(
        "window_layers is all, even, from N, or numbers of layers, not '" +
        config.windowLayers + "'");
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
  if (llvm::Error error = verifyAttention(config))
    return error;
  return verifyName("activation", kActivations, config.activation);
}

} // namespace fsdp
