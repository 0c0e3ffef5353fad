//===- Table.cpp - Text in columns ----------------------------------------===//
#include "Table.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cinttypes>

using namespace fsdp;
using namespace fsdp::checkpoint;

Table::Table(const std::vector<std::string> &headers) {
  std::vector<std::string> names;
  for (const std::string &header : headers) {
    isRight.push_back(header[0] == '>');
    names.push_back(header.substr(isRight.back() ? 1 : 0));
  }
  lines.push_back(std::move(names));
}

void Table::add(std::vector<std::string> cells) {
  for (std::string &cell : cells)
    cell = printableLine(cell);
  lines.push_back(std::move(cells));
}

std::string Table::text() const {
  std::vector<size_t> widths(isRight.size());
  for (const auto &line : lines)
    for (size_t i = 0; i < line.size(); ++i)
      widths[i] = std::max(widths[i], line[i].size());
  std::string text;
  for (const auto &line : lines) {
    std::string row;
    for (size_t i = 0; i < line.size(); ++i) {
      std::string room(widths[i] - line[i].size(), ' ');
      row +=
          (i == 0 ? "" : "  ") + (isRight[i] ? room + line[i] : line[i] + room);
    }
    text += row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

std::string checkpoint::bytesText(uint64_t bytes) {
  if (bytes < 1000)
    return format("%" PRIu64 " bytes", bytes);
  const char *const units[] = {"kB", "MB", "GB", "TB"};
  double value = static_cast<double>(bytes) / 1000;
  size_t unit = 0;
  for (; value >= 999.95 && unit + 1 < std::size(units); ++unit)
    value /= 1000;
  return format("%.1f %s", value, units[unit]);
}
