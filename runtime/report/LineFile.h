//===- LineFile.h - A file of JSON lines that only grows --------*- C++ -*-===//
#ifndef FSDP_RUNTIME_REPORT_LINEFILE_H
#define FSDP_RUNTIME_REPORT_LINEFILE_H

#include <string>
#include <string_view>

namespace fsdp {

/// Whatever ends the process, every line that was appended stays. One process
/// at a time writes; both functions throw fsdp::Error that names the file.
class LineFile {
public:
  /// Opens or makes the file, which must be a regular one. A half line of JSON
  /// at its end, from a write that did not finish, is removed; any other gets
  /// its newline.
  explicit LineFile(const std::string &path);
  ~LineFile();
  LineFile(const LineFile &) = delete;
  LineFile &operator=(const LineFile &) = delete;

  /// Appends whole lines, or nothing. They are in the file on return.
  void append(std::string_view lines);

private:
  [[noreturn]] void fail(const char *action) const;
  void mend();

  std::string path;
  int file;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_REPORT_LINEFILE_H
