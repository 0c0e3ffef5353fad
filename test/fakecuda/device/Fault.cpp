//===- Fault.cpp - Planted faults -----------------------------------------===//
#include "Message.h"
#include "Trace.h"
#include <algorithm>
#include <charconv>

using namespace fsdp::fake;

static const char *const kKinds[] = {"drop-wait",  "drop-record",
                                     "short-copy", "wrong-stream",
                                     "wrong-grid", "swap-group"};

/// A count at the beginning of `text`, which moves behind it.
static bool takeNumber(std::string &text, uint64_t &number) {
  const char *end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, number);
  bool isNumber = result.ec == std::errc();
  if (isNumber)
    text.erase(0, size_t(result.ptr - text.data()));
  return isNumber;
}

Fault::Fault(const std::string &text) {
  if (text.empty())
    return;
  size_t colon = text.find(':');
  kind = text.substr(0, colon);
  std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  bool isGood = std::count(std::begin(kKinds), std::end(kKinds), kind) == 1 &&
                takeNumber(rest, index);
  if (isGood && !rest.empty() && rest[0] == '@') {
    rest.erase(0, 1);
    uint64_t which = 0;
    isGood = takeNumber(rest, which);
    rank = int(which);
  }
  if (!isGood || !rest.empty())
    throw std::runtime_error("FSDP_FAKECUDA_FAULT=" + text +
                             " is not KIND:N or KIND:N@RANK");
}

bool Fault::concerns(Call call) const {
  if (kind == "drop-wait")
    return call == Call::Wait;
  if (kind == "drop-record")
    return call == Call::Record;
  if (kind == "short-copy")
    return call == Call::Copy || call == Call::Fill;
  if (kind == "swap-group")
    return call == Call::Group;
  return call == Call::Launch;
}

template <typename T> static void halveBytes(std::vector<char> &message) {
  T body = bodyOf<T>(message);
  body.bytes /= 2;
  putBody(message, body);
}

static void swapTransfers(std::vector<char> &message) {
  auto transfers = restOf<Group, Transfer>(message);
  if (transfers.size() > 1)
    std::swap(transfers.front(), transfers.back());
  std::memcpy(message.data() + sizeof(Group), transfers.data(),
              transfers.size() * sizeof(Transfer));
}

/// False if the call is left out.
bool Fault::change(Call call, std::vector<char> &body) const {
  if (kind == "drop-wait" || kind == "drop-record")
    return false;
  if (kind == "swap-group")
    swapTransfers(body);
  if (call == Call::Copy)
    halveBytes<Copy>(body);
  if (call == Call::Fill)
    halveBytes<Fill>(body);
  if (call == Call::Launch) {
    Launch launch = bodyOf<Launch>(body);
    if (kind == "wrong-stream")
      launch.stream = kLegacyStream;
    else
      --launch.grid[0];
    putBody(body, launch);
  }
  return true;
}

bool Fault::plant(const Process &process, Call call, std::vector<char> &body) {
  if (kind.empty() || (rank >= 0 && process.rank != rank))
    return true;
  // What comes before is preparation, and how much of it may depend on time.
  if (call == Call::Launch)
    seen.emplace(&process, 0);
  auto count = seen.find(&process);
  if (count == seen.end() || !concerns(call) || count->second++ != index)
    return true;
  planted = true;
  return change(call, body);
}
