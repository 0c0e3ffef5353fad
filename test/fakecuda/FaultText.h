//===- FaultText.h - Which fault is planted where ---------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_FAULTTEXT_H
#define FSDP_TEST_FAKECUDA_FAULTTEXT_H

#include <charconv>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace fsdp::fake {

inline constexpr const char *kFaultVariable = "FSDP_FAKECUDA_FAULT";

/// "KIND:N" or "KIND:N@RANK": the N-th call that the kind concerns, from 0, of
/// every rank or of one.
struct FaultText {
  std::string kind; // empty: no fault
  uint64_t index = 0;
  int rank = -1; // all

  /// Throws std::runtime_error if the text is none.
  explicit FaultText(const std::string &text) {
    if (text.empty())
      return;
    size_t colon = text.find(':'), at = text.find('@');
    kind = text.substr(0, colon);
    bool isGood = colon != std::string::npos &&
                  (at == std::string::npos || at > colon) &&
                  read(text, colon + 1, at, index) &&
                  (at == std::string::npos || read(text, at + 1, at, rank));
    if (!isGood)
      throw std::runtime_error(std::string(kFaultVariable) + "=" + text +
                               " is not KIND:N or KIND:N@RANK");
  }

private:
  /// The count that is all of [begin, end).
  template <typename T>
  static bool read(const std::string &text, size_t begin, size_t end,
                   T &count) {
    const char *last =
        text.data() +
        (end == std::string::npos || end < begin ? text.size() : end);
    auto result = std::from_chars(text.data() + begin, last, count);
    return result.ec == std::errc() && result.ptr == last;
  }
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_FAULTTEXT_H
