//===- PublishedRows.cpp - Reading tables of published runs ---------------===//
#include "fsdp/Simulation/PublishedRows.h"
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <charconv>
#include <functional>
#include <map>

using namespace fsdp;
using namespace fsdp::simulation;

static constexpr size_t kMostRows = 10000, kMostColumns = 64;

/// llm-foundry's MPT models.
static constexpr RowModel kRowModels[] = {
    {"125m", 768, 12, 64},  {"350m", 1024, 24, 64}, {"760m", 1536, 24, 128},
    {"1b", 2048, 24, 128},  {"3b", 2560, 32, 128},  {"7b", 4096, 32, 128},
    {"13b", 5120, 40, 128}, {"30b", 7168, 48, 128}, {"70b", 8192, 80, 128}};

/// Best matmuls: stas00's tables. FlashAttention-2: on an H100 335e12, measured
/// causal and forward with heads of 128 (FlashAttention-3, Shah et al., 2024);
/// on an A100 0.60 of the peak, of 0.50 to 0.73 (Dao, 2023), as in its machine
/// file.
static constexpr RowGpu kRowGpus[] = {
    {"a100_40gb", "a100-40gb", 271.2e12, 0, 187e12, true},
    {"a100_80gb", "a100-80gb", 271.2e12, 0, 187e12, true},
    {"h100_80gb", "h100", 794.5e12, 1402.6e12, 335e12, false},
    {"h200", "h200", 794.5e12, 1453.4e12, 335e12, false}};

std::string PublishedRow::name() const {
  return std::string(model->name) + ", " + std::to_string(sequence) +
         " tokens, " + std::to_string(gpus) + " " + gpu->name;
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

namespace {
struct CsvField {
  std::string text;
  const std::string *path;
  int64_t line;
  const std::string *column;

  [[noreturn]] void fail(const std::string &expected) const {
    throw Error(*path + ":" + std::to_string(line) + ": column '" + *column +
                "': expected " + expected + ", not '" + printableLine(text) +
                "'");
  }
};

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

static int64_t countOf(const CsvField &field, int64_t most) {
  int64_t number = 0;
  const char *end = field.text.data() + field.text.size();
  auto [stop, error] = std::from_chars(field.text.data(), end, number);
  if (error != std::errc() || stop != end || number < 1 || number > most)
    field.fail("a whole number from 1 to " + std::to_string(most));
  return number;
}

static double rateOf(const CsvField &field) {
  double number = 0;
  const char *end = field.text.data() + field.text.size();
  auto [stop, error] = std::from_chars(field.text.data(), end, number);
  if (error != std::errc() || stop != end ||
      !(number >= 1e-3 && number <= 1e12))
    field.fail("tokens per second, 0.001 to 1e12");
  return number;
}

static bool flagOf(const CsvField &field) {
  if (field.text != "True" && field.text != "False")
    field.fail("True or False");
  return field.text == "True";
}

template <typename Choice> static Choice rowChoiceOf(const CsvField &field) {
  std::vector<std::string> names;
  for (const Spelling<Choice> &one : Spellings<Choice>::all) {
    if (field.text == one.name)
      return one.value;
    names.emplace_back(one.name);
  }
  field.fail(joinedText(names, ", "));
}

template <typename Known, size_t count>
static const Known *namedOf(const CsvField &field, const Known (&all)[count]) {
  std::vector<std::string> names;
  for (const Known &one : all) {
    if (field.text == one.name)
      return &one;
    names.emplace_back(one.name);
  }
  field.fail(joinedText(names, ", "));
}

/// "A100 40GB with 1600 Gbps node-node interconnect": of a node. 0 without.
static double networkOf(const std::string &section) {
  size_t end = section.find(" Gbps"), begin = end;
  if (end == std::string::npos)
    return 0;
  while (begin > 0 && section[begin - 1] >= '0' && section[begin - 1] <= '9')
    --begin;
  int gigabits = 0;
  std::from_chars(section.data() + begin, section.data() + end, gigabits);
  return gigabits < 1 || gigabits > 1000000 ? 0 : gigabits * 1e9 / 8;
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

using ReadField = std::function<void(PublishedRow &, const CsvField &)>;

/// The columns that a table must have.
static const std::map<std::string, ReadField> &readersOfColumns() {
  using Row = PublishedRow;
  using Field = CsvField;
  static const std::map<std::string, ReadField> readers = {
      {"section",
       [](Row &row, const Field &field) {
         row.networkBytesPerSecond = networkOf(field.text);
       }},
      {"model",
       [](Row &row, const Field &field) {
         row.model = namedOf(field, kRowModels);
       }},
      {"gpu", [](Row &row,
                 const Field &field) { row.gpu = namedOf(field, kRowGpus); }},
      {"seq",
       [](Row &row, const Field &field) {
         row.sequence = countOf(field, 1 << 24);
       }},
      {"gpus", [](Row &row,
                  const Field &field) { row.gpus = countOf(field, 1 << 16); }},
      {"mbs",
       [](Row &row, const Field &field) {
         row.microbatch = countOf(field, 1 << 12);
       }},
      {"accum",
       [](Row &row, const Field &field) {
         row.accumulation = countOf(field, 1 << 10);
       }},
      {"tok_s",
       [](Row &row, const Field &field) {
         row.tokensPerSecond = rateOf(field);
       }},
      {"prec",
       [](Row &row, const Field &field) {
         row.precision = rowChoiceOf<RowPrecision>(field);
       }},
      {"mp",
       [](Row &row, const Field &field) {
         row.mixedPrecision = rowChoiceOf<RowMixedPrecision>(field);
       }},
      {"shard",
       [](Row &row, const Field &field) {
         row.sharding = rowChoiceOf<RowSharding>(field);
       }},
      {"ac",
       [](Row &row, const Field &field) { row.recomputes = flagOf(field); }},
      {"cpuoff",
       [](Row &row, const Field &field) { row.offloads = flagOf(field); }},
      {"params", [](Row &row, const Field &field) {
         row.parameters = countOf(field, int64_t(1) << 44);
       }}};
  return readers;
}

static std::vector<std::string> columnsOf(std::string_view line,
                                          const std::string &path) {
  std::vector<std::string> columns = CsvLine(line, path + ":1").fields();
  for (const auto &[name, read] : readersOfColumns()) {
    auto count = std::count(columns.begin(), columns.end(), name);
    if (count != 1)
      throw Error(
          path + ":1: " +
          (count ? "two columns are called '" : "no column is called '") +
          name + "'; the first line names the columns");
  }
  return columns;
}

static PublishedRow rowOf(std::string_view text, int64_t line,
                          const std::vector<std::string> &columns,
                          const std::string &path) {
  std::string place = path + ":" + std::to_string(line);
  std::vector<std::string> fields = CsvLine(text, place).fields();
  if (fields.size() != columns.size())
    throw Error(place + ": " + std::to_string(fields.size()) +
                " fields, where line 1 has " + std::to_string(columns.size()) +
                " columns");
  PublishedRow row;
  row.line = line;
  for (size_t i = 0; i < fields.size(); ++i) {
    CsvField field{fields[i], &path, line, &columns[i]};
    auto reader = readersOfColumns().find(columns[i]);
    if (reader != readersOfColumns().end())
      reader->second(row, field);
  }
  if (row.precision == RowPrecision::AmpFp8 && row.gpu->bestFp8 == 0)
    throw Error(place + ": column 'prec': a GPU of kind '" + row.gpu->name +
                "' does not compute in fp8; expected bf16 or amp_bf16");
  return row;
}

std::vector<PublishedRow> simulation::readRows(const std::string &text,
                                               const std::string &path) {
  std::vector<PublishedRow> rows;
  std::vector<std::string> columns;
  int64_t number = 0;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r')
      line.remove_suffix(1);
    if (number == 1)
      columns = columnsOf(line, path);
    else if (!line.empty())
      rows.push_back(rowOf(line, number, columns, path));
    if (rows.size() > kMostRows)
      throw Error(path + ":" + std::to_string(number) + ": more than " +
                  std::to_string(kMostRows) + " rows");
  }
  if (rows.empty())
    throw Error(path + ": no rows; the first line names the columns, each "
                       "further line is a run");
  return rows;
}

std::vector<PublishedRow> simulation::loadRows(const std::string &path) {
  requireSmallFile(path, "the table of rows");
  return readRows(readWholeFile(path, "the table of rows"), path);
}
