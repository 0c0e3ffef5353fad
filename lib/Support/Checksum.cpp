//===- Checksum.cpp - Whether bytes are those that were written -----------===//
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Text.h"
#include <cinttypes>
#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace fsdp;

uint64_t fsdp::checksumOf(std::string_view bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

struct RunningChecksum::State {
  XXH3_state_t xxh3;
};

RunningChecksum::RunningChecksum() : state(std::make_unique<State>()) {
  XXH3_64bits_reset(&state->xxh3);
}

RunningChecksum::~RunningChecksum() = default;

void RunningChecksum::add(std::string_view piece) {
  XXH3_64bits_update(&state->xxh3, piece.data(), piece.size());
}

uint64_t RunningChecksum::value() const {
  return XXH3_64bits_digest(&state->xxh3);
}

std::string fsdp::checksumText(uint64_t checksum) {
  return format("%016" PRIx64, checksum);
}

std::string fsdp::checksumLine(std::string_view bytes) {
  return "xxh3 " + checksumText(checksumOf(bytes)) + " of " +
         std::to_string(bytes.size()) + " bytes\n";
}
