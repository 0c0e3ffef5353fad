//===- Half.h - 16-bit floats of files ---------------------------*- C++
//-*-===//
//
// Weights are published and exported in f16 and bf16. Nothing computes in f16,
// so that its conversions stand here and not with the kernels' arithmetic.
// Rounding is to the nearest, ties to even, as everywhere.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SUPPORT_HALF_H
#define FSDP_SUPPORT_HALF_H

#include <cstdint>
#include <cstring>

namespace fsdp {

inline uint32_t floatBits(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

inline float floatWithBits(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// The value of an f16 (1 sign, 5 exponent, 10 fraction bits). Exact.
inline float f16ToFloat(uint16_t half) {
  uint32_t sign = uint32_t(half & 0x8000u) << 16;
  uint32_t exponent = half >> 10 & 0x1fu, fraction = half & 0x3ffu;
  if (exponent == 0x1f) // infinite, or not a number
    return floatWithBits(sign | 0x7f800000u | fraction << 13);
  if (exponent != 0)
    return floatWithBits(sign | (exponent + 112) << 23 | fraction << 13);
  float size = static_cast<float>(fraction) * 0x1p-24f;
  return floatWithBits(sign | floatBits(size));
}

/// The nearest f16; beyond its largest value infinity.
inline uint16_t floatToF16(float value) {
  uint32_t bits = floatBits(value), size = bits & 0x7fffffffu;
  auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000u);
  if (size > 0x7f800000u) // not a number: its upper bits, and a quiet one
    return static_cast<uint16_t>(sign | 0x7e00u | (size >> 13 & 0x3ffu));
  if (size >= 0x47800000u) // 2^16
    return static_cast<uint16_t>(sign | 0x7c00u);
  if (size < 0x38800000u) {
    // Below 2^-14 steps are 2^-24: adding 0.5 leaves them as the last bits of
    // a float that the adder has rounded.
    uint32_t rounded = floatBits(floatWithBits(size) + 0.5f);
    return static_cast<uint16_t>(sign | (rounded - floatBits(0.5f)));
  }
  uint32_t odd = size >> 13 & 1;
  return static_cast<uint16_t>(sign |
                               ((size - 0x38000000u + 0xfffu + odd) >> 13));
}

inline float bf16ToFloat(uint16_t half) {
  return floatWithBits(uint32_t(half) << 16);
}

/// The nearest bf16; what is not a number becomes the quiet one.
inline uint16_t floatToBF16(float value) {
  uint32_t bits = floatBits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return static_cast<uint16_t>(bits >> 16 | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

} // namespace fsdp

#endif // FSDP_SUPPORT_HALF_H
