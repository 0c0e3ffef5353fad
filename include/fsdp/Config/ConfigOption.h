//===- ConfigOption.h - One record for each option --------------*- C++ -*-===//
//
// An option is a field of a struct (its type and default) and, in the same
// struct's `describe`, one row: name, what it decides, what it may hold and
// what it means. Files, overrides, `--help`, the reference, the settings of an
// artifact and the options of `fsdp-train` come from these rows.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CONFIG_CONFIGOPTION_H
#define FSDP_CONFIG_CONFIGOPTION_H

#include "fsdp/Config/Spelling.h"
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace fsdp {

/// Who has to know an option.
enum class Decides {
  Run,        ///< What ranks do; it may change without a new artifact.
  Artifact,   ///< What is compiled: model, mesh, instruction set.
  Passes,     ///< The same, and `fsdp-train` takes it by its name.
  PassesAlone ///< `fsdp-train` takes it; it is no key of a run.
};

/// A key that torchtitan has under the same name.
struct InTorchtitan {
  std::string standard; // its default there; "unset": None, empty: it has no
                        // such key any more
  std::string note;     // what is so here
  std::string instead;  // of values that are refused here
};

/// One option: its place in a struct, what it may hold and what it means.
struct ConfigOption {
  using Place =
      std::variant<bool *, int64_t *, double *, std::string *,
                   std::optional<bool> *, std::optional<int64_t> *,
                   std::optional<double> *, std::vector<std::string> *,
                   ChoicePlace, ChoiceListPlace>;
  std::string name; // "training.steps"
  Place place;
  std::string doc;
  double min, max; // bounds of a number, inclusive
  /// Of an enumeration, a text, or each of a list; empty: any.
  std::vector<std::string> choices;
  Decides decides;
  bool isLine = false;     // a string that must be one plain line
  bool isBelowMax = false; // `max` itself is too much
  std::optional<InTorchtitan> torchtitan = std::nullopt;

  /// The present value as canonical text; "unset" for an empty optional.
  std::string text() const;
  /// "integer", "number", "boolean", "string" or "list"; an enumeration is
  /// written as a string.
  std::string typeName() const;
  void inTorchtitan(std::string standard, std::string note = "",
                    std::string instead = "") {
    torchtitan = {std::move(standard), std::move(note), std::move(instead)};
  }
  ConfigOption &belowMax() {
    isBelowMax = true;
    return *this;
  }
  /// Whether an artifact depends on it.
  bool isCompiled() const {
    return decides == Decides::Artifact || decides == Decides::Passes;
  }
  bool isForPasses() const {
    return decides == Decides::Passes || decides == Decides::PassesAlone;
  }
};

/// Collects the rows of the table.
class OptionTable {
public:
  /// The bound of what has none.
  static constexpr double kAny = std::numeric_limits<double>::max();
  /// The largest integer that a double, and so a bound, holds exactly.
  static constexpr double kMaxInt = 9007199254740992.0;

  /// What the rows that follow decide.
  void decide(Decides what) { decides = what; }

  template <typename T>
  ConfigOption &add(const char *name, T &place, const char *doc) {
    if constexpr (std::is_enum_v<T>)
      return append({name, ChoicePlace(place), doc, -kAny, kAny,
                     allSpellings<T>(), decides});
    else
      return add(name, place, -kAny, kAny, doc);
  }
  /// A list of values of an enumeration.
  template <typename E, typename = std::enable_if_t<std::is_enum_v<E>>>
  ConfigOption &add(const char *name, std::vector<E> &place, const char *doc) {
    return append({name, ChoiceListPlace(place), doc, -kAny, kAny,
                   allSpellings<E>(), decides});
  }
  /// A number.
  template <typename T>
  ConfigOption &add(const char *name, T &place, double min, double max,
                    const char *doc) {
    return append({name, &place, doc, min, max, {}, decides});
  }
  /// A text of `choices`.
  ConfigOption &add(const char *name, std::string &place,
                    std::vector<std::string> choices, const char *doc) {
    return append(
        {name, &place, doc, -kAny, kAny, std::move(choices), decides});
  }
  /// Text that others show or keep: isPlainLine.
  ConfigOption &addLine(const char *name, std::string &place, const char *doc) {
    ConfigOption &row = add(name, place, doc);
    row.isLine = true;
    return row;
  }

  std::vector<ConfigOption> rows;

private:
  ConfigOption &append(ConfigOption row) {
    return rows.emplace_back(std::move(row));
  }

  Decides decides = Decides::Run;
};

/// Sets an option from text; `origin` says where the text stood. Throws
/// fsdp::Error for what it may not hold.
void setOption(const ConfigOption &option, const std::string &text,
               const std::string &origin);

} // namespace fsdp

#endif // FSDP_CONFIG_CONFIGOPTION_H
