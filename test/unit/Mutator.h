//===- Mutator.h - Damage to text, always the same --------------*- C++ -*-===//
#ifndef FSDP_TEST_MUTATOR_H
#define FSDP_TEST_MUTATOR_H

#include <cctype>
#include <random>
#include <string>
#include <vector>

namespace fsdp::test {

/// Damages texts the way disks, editors and wrong programs do. Deterministic:
/// one seed gives one sequence of texts on every machine.
class Mutator {
public:
  /// `words` are pieces of the language, which get further than bytes do.
  explicit Mutator(unsigned seed, std::vector<std::string> words = {})
      : random(seed), words(std::move(words)) {}

  /// `text` after one to three changes.
  std::string operator()(std::string text) {
    for (size_t changes = 1 + below(3); changes > 0; --changes)
      change(text);
    return text;
  }

private:
  size_t below(size_t limit) { return limit == 0 ? 0 : random() % limit; }

  void change(std::string &text) {
    size_t at = below(text.size()), length = 1 + below(12);
    switch (below(8)) {
    case 0: // a byte of another value
      if (at < text.size())
        text[at] = static_cast<char>(random());
      return;
    case 1: // a piece is lost
      text.erase(at, length);
      return;
    case 2: // a piece is there twice
      text.insert(at, text.substr(at, length));
      return;
    case 3: // the end is lost
      if (below(4) == 0)
        text.resize(at);
      return;
    case 4: // a word comes in
      if (!words.empty())
        text.insert(at, words[below(words.size())]);
      return;
    case 5: // a line is there twice
      repeatLine(text, at);
      return;
    default: // numbers are what checks are about
      changeNumber(text, at);
    }
  }

  void repeatLine(std::string &text, size_t at) {
    size_t begin = text.rfind('\n', at);
    begin = begin == std::string::npos ? 0 : begin + 1;
    size_t end = text.find('\n', at);
    end = end == std::string::npos ? text.size() : end + 1;
    text.insert(begin, text.substr(begin, end - begin));
  }

  /// The first number at or after `at` becomes a nasty one.
  void changeNumber(std::string &text, size_t at) {
    static const char *const numbers[] = {"0",
                                          "1",
                                          "-1",
                                          "3",
                                          "7",
                                          "64",
                                          "2147483648",
                                          "9007199254740993",
                                          "1e99",
                                          "4294967295",
                                          "1099511627776",
                                          "72057594037927936",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "18446744073709551615"};
    size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos)
      return;
    size_t end = begin;
    while (end < text.size() && std::isdigit((unsigned char)text[end]))
      ++end;
    text.replace(begin, end - begin, numbers[below(std::size(numbers))]);
  }

  std::mt19937 random;
  std::vector<std::string> words;
};

} // namespace fsdp::test

#endif // FSDP_TEST_MUTATOR_H
