//===- Spelling.h - Enumerations and their text -----------------*- C++ -*-===//
//
// An enumeration that a user can write has one table of spellings, beside it:
//
//   enum class Bucketing { None, Block };
//   template <> struct Spellings<Bucketing> {
//     static constexpr Spelling<Bucketing> all[] = {
//         {Bucketing::None, "none"}, {Bucketing::Block, "block"}};
//   };
//
// Files, command lines, options of passes, help, reference and manifest read
// and print its values by that table.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_SPELLING_H
#define FSDP_CONFIG_SPELLING_H

#include <cstdlib>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace fsdp {

/// A value of an enumeration, its text, and for people what it is. A name of
/// the past is read, but neither listed nor printed.
template <typename E> struct Spelling {
  E value;
  const char *name;
  const char *doc = "";
  bool isPast = false;
};

/// The table of an enumeration's spellings, `all`, with a row for each value,
/// and one for each name of the past.
template <typename E> struct Spellings;

/// The text of a value.
template <typename E> std::string spelled(E value) {
  for (const Spelling<E> &row : Spellings<E>::all)
    if (row.value == value && !row.isPast)
      return row.name;
  std::abort(); // its table lacks it
}

/// The value that a text says, if it says one.
template <typename E> std::optional<E> readSpelling(const std::string &text) {
  for (const Spelling<E> &row : Spellings<E>::all)
    if (text == row.name)
      return row.value;
  return std::nullopt;
}

/// The texts that values are printed as, in the order of the table.
template <typename E> std::vector<std::string> allSpellings() {
  std::vector<std::string> names;
  for (const Spelling<E> &row : Spellings<E>::all)
    if (!row.isPast)
      names.emplace_back(row.name);
  return names;
}

/// The place of a value of any enumeration that has spellings.
class ChoicePlace {
public:
  template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
  explicit ChoicePlace(E &place)
      : place(&place), getText([](const void *from) {
          return spelled(*static_cast<const E *>(from));
        }),
        setText([](void *to, const std::string &text) {
          std::optional<E> value = readSpelling<E>(text);
          if (value)
            *static_cast<E *>(to) = *value;
          return value.has_value();
        }),
        allTexts(allSpellings<E>) {}

  /// The text of the value in that place.
  std::string text() const { return getText(place); }
  /// The texts that are printed.
  std::vector<std::string> all() const { return allTexts(); }
  /// Puts there what `text` says; false if that is no value.
  bool set(const std::string &text) const { return setText(place, text); }

private:
  void *place;
  std::string (*getText)(const void *);
  bool (*setText)(void *, const std::string &);
  std::vector<std::string> (*allTexts)();
};

/// The place of a list of values of any enumeration that has spellings.
class ChoiceListPlace {
public:
  template <typename E>
  explicit ChoiceListPlace(std::vector<E> &place)
      : place(&place), getTexts([](const void *from) {
          std::vector<std::string> texts;
          for (E value : *static_cast<const std::vector<E> *>(from))
            texts.push_back(spelled(value));
          return texts;
        }),
        setTexts([](void *to, const std::vector<std::string> &texts) {
          std::vector<E> values;
          for (const std::string &text : texts) {
            std::optional<E> value = readSpelling<E>(text);
            if (!value)
              return false;
            values.push_back(*value);
          }
          *static_cast<std::vector<E> *>(to) = std::move(values);
          return true;
        }) {}

  std::vector<std::string> texts() const { return getTexts(place); }
  /// Puts there what `texts` say; false if one of them is no value.
  bool set(const std::vector<std::string> &texts) const {
    return setTexts(place, texts);
  }

private:
  void *place;
  std::vector<std::string> (*getTexts)(const void *);
  bool (*setTexts)(void *, const std::vector<std::string> &);
};

} // namespace fsdp

#endif // FSDP_CONFIG_SPELLING_H
