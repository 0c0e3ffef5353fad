//===- Table.h - Text in columns --------------------------------*- C++ -*-===//
#ifndef FSDP_TOOLS_CHECKPOINT_TABLE_H
#define FSDP_TOOLS_CHECKPOINT_TABLE_H

#include <cstdint>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

/// Lines of the same number of cells; numbers stand at the right.
class Table {
public:
  /// Columns whose header begins with '>' stand at the right.
  explicit Table(const std::vector<std::string> &headers);
  void add(std::vector<std::string> cells);
  std::string text() const;

private:
  std::vector<bool> isRight;
  std::vector<std::vector<std::string>> lines;
};

/// "24.1 MB", "512 bytes".
std::string bytesText(uint64_t bytes);

} // namespace fsdp::checkpoint

#endif // FSDP_TOOLS_CHECKPOINT_TABLE_H
