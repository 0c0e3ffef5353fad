//===- PublishedRows.cpp - Reading tables of published runs ---------------===//
#include "fsdp/Simulation/PublishedRows.h"
#include "RowColumns.h"
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <charconv>

using namespace fsdp;
using namespace fsdp::simulation;

static constexpr size_t kMostRows = 10000, kMostColumns = 64;

std::string PublishedRow::name() const {
  return (label.empty() ? "" : label + ": ") + model.name + ", " +
         std::to_string(sequence) + " tokens, " + std::to_string(gpus) + " " +
         gpu->name;
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

void CsvField::fail(const std::string &expected) const {
  throw Error(path + ":" + std::to_string(line) + ": column '" + column +
              "': expected " + expected + ", not '" + printableLine(text) +
              "'");
}

int64_t CsvField::count(int64_t most) const {
  int64_t number = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end || number < 1 || number > most)
    fail("a whole number from 1 to " + std::to_string(most));
  return number;
}

double CsvField::number(const char *what, double least, double most) const {
  double number = 0;
  const char *end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end ||
      !(number >= least && number <= most))
    fail(format("%s, %g to %g", what, least, most));
  return number;
}

namespace {
/// Fields of a line; in quotes a comma is none's end, and "" is a quote.
class CsvLine {
public:
  CsvLine(std::string_view text, std::string place)
      : text(text), place(std::move(place)) {}

  std::vector<std::string> fields() {
    std::vector<std::string> all;
    do {
      if (all.size() == kMostColumns)
        throw Error(place + ": more than " + std::to_string(kMostColumns) +
                    " columns");
      all.push_back(field());
    } while (hasMore);
    return all;
  }

private:
  std::string field() {
    std::string result;
    bool quoted = at < text.size() && text[at] == '"';
    at += quoted;
    while (at < text.size() && (quoted || text[at] != ',')) {
      if (quoted && text[at] == '"') {
        bool isTwice = at + 1 < text.size() && text[at + 1] == '"';
        quoted = isTwice;
        at += isTwice ? 1 : 0;
        if (!isTwice) {
          ++at;
          continue;
        }
      }
      result += text[at++];
    }
    if (quoted)
      throw Error(place + ": a quote has no end on its line");
    hasMore = at < text.size();
    at += hasMore;
    return result;
  }

  std::string_view text;
  std::string place;
  size_t at = 0;
  bool hasMore = false;
};
} // namespace

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

namespace {
class RowReader {
public:
  RowReader(std::string_view line, const std::string &path)
      : path(path), names(CsvLine(line, path + ":1").fields()),
        columns(count(kFrameworkColumn) ? frameworkColumns()
                                        : foundryColumns()) {
    for (const std::string &name : columns.required)
      if (count(name) != 1)
        throw Error(path + ":1: " +
                    (count(name) ? "two columns are called '"
                                 : "no column is called '") +
                    name + "'; the first line names the columns");
  }

  void read(std::string_view text, int64_t line, RowTable &table) const {
    std::string place = path + ":" + std::to_string(line);
    std::vector<std::string> fields = CsvLine(text, place).fields();
    if (fields.size() != names.size())
      throw Error(place + ": " + std::to_string(fields.size()) +
                  " fields, where line 1 has " + std::to_string(names.size()) +
                  " columns");
    PublishedRow row;
    row.line = line;
    RowFields byColumn(path, names, line, std::move(fields));
    if (std::optional<std::string> why = columns.read(byColumn, row))
      table.leftOut.push_back("line " + std::to_string(line) + ": " + *why);
    else
      table.rows.push_back(std::move(row));
  }

private:
  ptrdiff_t count(const std::string &name) const {
    return std::count(names.begin(), names.end(), name);
  }

  const std::string &path;
  std::vector<std::string> names;
  const RowColumns &columns;
};
} // namespace

RowTable simulation::readRows(const std::string &text,
                              const std::string &path) {
  RowTable table;
  std::optional<RowReader> reader;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    if (!reader)
      reader.emplace(line, path);
    else if (!line.empty())
      reader->read(line, number, table);
    if (table.rows.size() + table.leftOut.size() > kMostRows)
      throw Error(path + ":" + std::to_string(number) + ": more than " +
                  std::to_string(kMostRows) + " rows");
  }
  if (table.rows.empty())
    throw Error(path + ": no rows; the first line names the columns, each "
                       "further line is a run");
  return table;
}

RowTable simulation::loadRows(const std::string &path) {
  requireSmallFile(path, "the table of rows");
  return readRows(readWholeFile(path, "the table of rows"), path);
}
