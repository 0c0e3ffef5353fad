//===- Philox.h - Random numbers that are a function of a counter *- C++
//-*-===//
//
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2,
// 3", 2011). A value is a function of a key and a counter alone, so that every
// rank can draw exactly the values it needs, in any order.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_DATA_PHILOX_H
#define FSDP_DATA_PHILOX_H

#include <array>
#include <cstdint>
#include <string_view>

namespace fsdp::rt {

/// The four 32-bit outputs for `counter` under the 64-bit `key`.
inline std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter,
                                      uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key);
  uint32_t key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    uint64_t a = uint64_t{0xD2511F53} * counter[0];
    uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key0,
               static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key1,
               static_cast<uint32_t>(a)};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return counter;
}

/// The key of the stream called `name` under `seed`: the seed combined with
/// the FNV-1a hash of the name.
inline uint64_t philoxKey(uint64_t seed, std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char byte : name)
    hash = (hash ^ byte) * 0x100000001b3;
  return seed ^ hash;
}

/// A 32-bit output as a double strictly between 0 and 1.
inline double openUnit(uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) / 4294967296.0;
}

/// A 64-bit number from the first two outputs.
inline uint64_t firstWord64(const std::array<uint32_t, 4> &outputs) {
  return uint64_t{outputs[0]} << 32 | outputs[1];
}

/// The 64-bit number of a place in the stream called `name` under `seed`.
inline uint64_t randomWord(uint64_t seed, std::string_view name, int64_t high,
                           int64_t low = 0) {
  return firstWord64(
      philox({static_cast<uint32_t>(high), static_cast<uint32_t>(high >> 32),
              static_cast<uint32_t>(low), static_cast<uint32_t>(low >> 32)},
             philoxKey(seed, name)));
}

} // namespace fsdp::rt

#endif // FSDP_DATA_PHILOX_H
