//===- Checksum.h - Whether bytes are those that were written ---*- C++ -*-===//
#ifndef FSDP_SUPPORT_CHECKSUM_H
#define FSDP_SUPPORT_CHECKSUM_H

#include <cstdint>
#include <string>
#include <string_view>

namespace fsdp {

/// XXH3, 64 bits.
uint64_t checksumOf(std::string_view bytes);
/// Sixteen hexadecimal digits.
std::string checksumText(uint64_t checksum);
/// What stands in a file beside another one, whose bytes these are: "xxh3
/// 0123456789abcdef of 4096 bytes", and the end of the line.
std::string checksumLine(std::string_view bytes);

} // namespace fsdp

#endif // FSDP_SUPPORT_CHECKSUM_H
