//===- Rotary.h - Rotary positions as numbers -------------------*- C++ -*-===//
//
// A pair i of the rotated elements of a head turns by position * frequency_i,
// and its cosine and sine are multiplied with one factor. Every scaling of the
// literature is another choice of these numbers; what a program knows of
// rotary positions is the numbers alone.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_ROTARY_H
#define FSDP_FAMILIES_ROTARY_H

#include "fsdp/Families/DecoderConfig.h"

namespace fsdp {

struct RotaryNumbers {
  std::vector<double> frequencies; // radians per position, one of each pair
  double scale = 1;                // of cosines and sines
};

/// The numbers of a decoder that is traced for `seqLen` positions. By
/// rope_type, with f_i = theta^(-2 i / rotary elements):
/// - llama3: with a factor of 1 f_i, else the stretch of Llama 3.1;
/// - linear: f_i / factor (Chen et al., 2023);
/// - yarn: YaRN (Peng et al., 2023), as transformers 5.23 computes it;
/// - longrope: f_i / rope_long[i] beyond rope_original positions, else
///   f_i / rope_short[i] (Ding et al., 2024).
RotaryNumbers rotaryNumbers(const DecoderConfig &config, int64_t seqLen);

} // namespace fsdp

#endif // FSDP_FAMILIES_ROTARY_H
