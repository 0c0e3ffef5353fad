//===- ProgressWord.h - Which collective a channel is in --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_LIVENESS_PROGRESSWORD_H
#define FSDP_RUNTIME_LIVENESS_PROGRESSWORD_H

#include <cstdint>

namespace fsdp::rt {

/// What a word says. A run is one of a program, counted modulo 2^16 where it is
/// issued; numbers count the collectives of a program from 0, whatever their
/// channel.
struct ProgressPlace {
  uint16_t run, program;
  uint32_t number;
  bool isInside; // it has begun and not ended
};
/// 0 stands for no collective so far.
inline uint64_t wordOf(const ProgressPlace &p) {
  return uint64_t(p.run) << 48 | uint64_t(p.program) << 32 |
         (uint64_t(p.number) * 2 + (p.isInside ? 1 : 2));
}
inline ProgressPlace progressOf(uint64_t word) {
  auto low = uint32_t(word) - 1;
  return {uint16_t(word >> 48), uint16_t(word >> 32), low / 2, low % 2 == 0};
}

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LIVENESS_PROGRESSWORD_H
