//===- RowColumns.h - What the columns of a table of runs say ---*- C++ -*-===//
#ifndef FSDP_LIB_SIMULATION_ROWCOLUMNS_H
#define FSDP_LIB_SIMULATION_ROWCOLUMNS_H

#include "fsdp/Simulation/PublishedRows.h"
#include "fsdp/Support/Text.h"
#include <optional>

namespace fsdp::simulation {

/// A field of a line.
struct CsvField {
  const std::string &text, &path, &column;
  int64_t line;

  /// Throws fsdp::Error.
  [[noreturn]] void fail(const std::string &expected) const;
  /// A whole number from 1 to `most`.
  int64_t count(int64_t most) const;
  /// A number of `what` from `least` to `most`.
  double number(const char *what, double least, double most) const;
  double tokensPerSecond() const {
    return number("tokens per second", 1e-3, 1e12);
  }
  /// That of `all` whose `name` the field is.
  template <typename Known, size_t size>
  const Known &named(const Known (&all)[size]) const {
    std::vector<std::string> names;
    for (const Known &one : all) {
      if (text == one.name)
        return one;
      names.emplace_back(one.name);
    }
    fail(joinedText(names, ", "));
  }
};

/// The fields of a line by column.
class RowFields {
public:
  RowFields(const std::string &path, const std::vector<std::string> &columns,
            int64_t line, std::vector<std::string> fields)
      : path(path), columns(columns), line(line), fields(std::move(fields)) {}

  /// Of a column that the table has.
  CsvField operator[](const char *column) const {
    size_t at = indexOf(column);
    return {fields[at], path, columns[at], line};
  }
  bool has(const char *column) const {
    return indexOf(column) < columns.size();
  }

private:
  size_t indexOf(const char *column) const {
    size_t at = 0;
    while (at < columns.size() && columns[at] != column)
      ++at;
    return at;
  }

  const std::string &path;
  const std::vector<std::string> &columns;
  int64_t line;
  std::vector<std::string> fields;
};

/// One set of columns.
struct RowColumns {
  /// The columns that a table must have.
  std::vector<std::string> required;
  /// Fills `row`, or says why the line is left out. Throws fsdp::Error.
  std::optional<std::string> (*read)(const RowFields &fields,
                                     PublishedRow &row);
};

/// The columns of llm-foundry's tables.
const RowColumns &foundryColumns();
/// Columns that say a run's framework, model and layout in full. The one named
/// kFrameworkColumn is in no other table.
const RowColumns &frameworkColumns();
inline constexpr const char *kFrameworkColumn = "compile";

} // namespace fsdp::simulation

#endif // FSDP_LIB_SIMULATION_ROWCOLUMNS_H
