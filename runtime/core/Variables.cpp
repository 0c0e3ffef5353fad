//===- Variables.cpp - Settings in the environment ------------------------===//
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

static Error wrong(const char *name, const std::string &wanted) {
  return Error(std::string("environment: ") + name + " = '" +
               std::getenv(name) + "' is no " + wanted);
}

/// Seconds, above 0 unless 0 has a meaning.
static double seconds(const char *name, double otherwise, bool allowsZero) {
  const char *text = std::getenv(name);
  if (!text)
    return otherwise;
  char *end;
  double value = std::strtod(text, &end);
  // Thirty years; clocks count nanoseconds in 64 bits.
  constexpr double longest = 1e9;
  bool isNumber = end != text && *end == '\0' && value <= longest;
  if (!isNumber || value < 0 || (value == 0 && !allowsZero))
    throw wrong(name,
                allowsZero ? "number of seconds" : "number of seconds above 0");
  return value;
}

static std::optional<bool> choice(const char *name) {
  const char *text = std::getenv(name);
  if (!text)
    return std::nullopt;
  if (std::strcmp(text, "0") != 0 && std::strcmp(text, "1") != 0)
    throw wrong(name, "choice: 0 or 1");
  return text[0] == '1';
}

double rt::collectiveTimeout() { return seconds("FSDP_TIMEOUT", 300, false); }

double rt::joinTimeout() { return seconds("FSDP_JOIN_TIMEOUT", 120, false); }

/// Two heartbeats at the shortest period fit into the least, and no other
/// process has to let them through at once.
double rt::heartbeatLimit() {
  constexpr double least = 0.1;
  double limit = seconds("FSDP_HEARTBEAT", 30, true);
  if (limit != 0 && limit < least)
    throw wrong("FSDP_HEARTBEAT", "number of seconds from " +
                                      format("%g", least) +
                                      " on (0: no limit)");
  return limit;
}

double rt::fileTimeout() { return seconds("FSDP_FILE_TIMEOUT", 60, true); }

bool rt::wantsSharedMemory() {
  return choice("FSDP_SHARED_MEMORY").value_or(true);
}

bool rt::wantsSharedGpu() { return choice("FSDP_SHARE_GPU").value_or(false); }

std::optional<bool> rt::wantsNativeBF16() { return choice("FSDP_NATIVE_BF16"); }

std::string rt::cacheFolder() {
  if (const char *own = std::getenv("FSDP_CACHE_DIR"))
    return own;
  for (auto [name, below] : {std::pair("XDG_CACHE_HOME", "/fsdp"),
                             std::pair("HOME", "/.cache/fsdp")})
    if (const char *folder = std::getenv(name); folder && *folder)
      return std::string(folder) + below;
  return "";
}

std::string rt::tracePath(const std::string &option, int64_t rank) {
  const char *variable = std::getenv("FSDP_TRACE");
  std::string prefix = option.empty() && variable ? variable : option;
  return prefix.empty() ? "" : prefix + "." + std::to_string(rank) + ".json";
}

void rt::checkVariables() {
  collectiveTimeout();
  joinTimeout();
  heartbeatLimit();
  fileTimeout();
  wantsSharedMemory();
  wantsSharedGpu();
  wantsNativeBF16();
}
