//===- Checksum.h - Whether bytes are those that were written ---*- C++ -*-===//
#ifndef FSDP_SUPPORT_CHECKSUM_H
#define FSDP_SUPPORT_CHECKSUM_H

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace fsdp {

/// XXH3, 64 bits.
uint64_t checksumOf(std::string_view bytes);
/// The same of bytes that come in pieces.
class RunningChecksum {
public:
  RunningChecksum();
  ~RunningChecksum();

  void add(std::string_view piece);
  uint64_t value() const;

private:
  struct State;
  std::unique_ptr<State> state;
};

/// Sixteen hexadecimal digits.
std::string checksumText(uint64_t checksum);
/// What stands in a file beside another one, whose bytes these are: "xxh3
/// 0123456789abcdef of 4096 bytes", and the end of the line.
std::string checksumLine(std::string_view bytes);

} // namespace fsdp

#endif // FSDP_SUPPORT_CHECKSUM_H
