//===- published_rows.cpp - Any text as a table of runs, or as scalars ----===//
#include "Fuzz.h"
#include "fsdp/Simulation/RowFit.h"

using namespace fsdp;
using namespace fsdp::simulation;
using namespace fsdp::test;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text = textOf(data, size);
  Scalars scalars = kFirstScalars;
  useOrRefuse([&] {
    scalars = readScalars(text, "fuzz.toml");
    require(readScalars(toToml(scalars), "again.toml") == scalars);
  });
  useOrRefuse([&] {
    RowTable table = readRows(text, "fuzz.csv");
    std::vector<RowTerms> terms;
    for (const PublishedRow &row : table.rows) {
      terms.push_back(termsOf(row, "fuzz.csv"));
      require(terms.back().seconds(scalars) > 0);
    }
    require(!fitReport(table, terms, scalars, false).empty());
  });
  return 0;
}
