//===- RangeNames.h - Names that compiler and runtime agree on --*- C++ -*-===//
//
// A program's inputs and outputs, and what belongs to a parameter, are ranges
// of the arena with a name. The compiler gives these names, and the training
// loop looks for them.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_RANGENAMES_H
#define FSDP_SUPPORT_RANGENAMES_H

namespace fsdp::range_name {

// Inputs of a step.
inline constexpr char kTokens[] = "tokens";
inline constexpr char kTargets[] = "targets";
inline constexpr char kDocumentStarts[] = "document_starts";
inline constexpr char kLearningRate[] = "lr";
inline constexpr char kStep[] = "step";

/// What follows the name of an input of which a program takes all slices of a
/// step, one after another.
inline constexpr char kOfStepSuffix[] = ".of_step";

// Outputs.
inline constexpr char kLoss[] = "loss";
inline constexpr char kLogits[] = "logits";
inline constexpr char kGradNorm[] = "grad_norm";

// What the programs of a step hand on.
inline constexpr char kLabelCount[] = "label_count";
inline constexpr char kLossSum[] = "loss_sum";

// What a forward program leaves for its reverse pass, with a number after it,
// and what follows the name of the value whose cotangent it is.
inline constexpr char kResidualPrefix[] = "residual.";
inline constexpr char kCotangentSuffix[] = ".cotangent";

// What follows the name of the parameter.
inline constexpr char kGradientSuffix[] = ".grad";
inline constexpr char kGradientSumSuffix[] = ".grad_sum";
inline constexpr char kGatheredSuffix[] = ".gathered";
inline constexpr char kFirstMomentSuffix[] = ".exp_avg";
inline constexpr char kSecondMomentSuffix[] = ".exp_avg_sq";
inline constexpr char kComputeCopySuffix[] = ".compute_copy";

/// The program that makes compute copies of parameters that were not written by
/// a program: initialised or loaded.
inline constexpr char kCopyParameters[] = "copy_parameters";

} // namespace fsdp::range_name

#endif // FSDP_SUPPORT_RANGENAMES_H
