//===- FaultText.h - Which fault is planted where ---------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_FAULTTEXT_H
#define FSDP_TEST_FAKECUDA_FAULTTEXT_H

#include <algorithm>
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
    size_t colon = std::min(text.find(':'), text.size());
    size_t at = std::min(text.find('@', colon), text.size());
    kind = text.substr(0, colon);
    bool isGood = read(text.substr(colon, at - colon), ':', index) &&
                  (at == text.size() || read(text.substr(at), '@', rank));
    if (!isGood)
      throw std::runtime_error(std::string(kFaultVariable) + "=" + text +
                               " is not KIND:N or KIND:N@RANK");
  }

private:
  /// `text` must be `mark` and a count.
  template <typename T>
  static bool read(const std::string &text, char mark, T &count) {
    if (text.empty() || text[0] != mark)
      return false;
    const char *end = text.data() + text.size();
    auto result = std::from_chars(text.data() + 1, end, count);
    return result.ec == std::errc() && result.ptr == end;
  }
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_FAULTTEXT_H
