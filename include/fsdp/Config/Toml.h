//===- Toml.h - Reading TOML files ------------------------------*- C++ -*-===//
#ifndef FSDP_CONFIG_TOML_H
#define FSDP_CONFIG_TOML_H

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp {
/// toml++ asserts some things that a malformed file can violate.
struct TomlAssertion {};
} // namespace fsdp

#define TOML_HEADER_ONLY 1
#define TOML_ASSERT(condition)                                                 \
  ((condition) ? void() : throw ::fsdp::TomlAssertion())
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wterminate" // not in the parser
#include <toml++/toml.h>
#pragma GCC diagnostic pop

namespace fsdp {

/// Reads a file; `what` it is, for messages. Throws fsdp::Error that names the
/// line.
toml::table parseToml(const std::string &path, const std::string &what);
/// The same of text that lies in memory; `path` is what messages call it.
toml::table parseTomlText(const std::string &text, const std::string &path);

/// "run.toml:7"
std::string originOf(const toml::node &node, const std::string &path);

/// What a table holds, in the order of the file. Keys are as messages show them
/// (printableLine): one with a control character is none of ours anyway.
std::vector<std::pair<std::string, const toml::node *>>
inOrder(const toml::table &table);

/// For files that nobody writes large: a device or a pipe may never end. Throws
/// fsdp::Error for what is no regular file or has more than 1 MiB; a file that
/// is not there is for the reader to report. `what` as in parseToml.
void requireSmallFile(const std::string &path, const std::string &what);

/// One table of a file, read key by key; `what` it is, for messages:
/// "[stream]". All of it throws fsdp::Error that names the line, the table and
/// the key.
class TomlTable {
public:
  TomlTable(const toml::node &node, std::string path, std::string what);

  /// "run.toml:7"
  std::string origin() const;
  [[noreturn]] void fail(const toml::node &at, const std::string &why) const;

  /// What stands at the key, which is then known; null: nothing does.
  const toml::node *find(const std::string &key);
  /// These leave `value` alone where the key is not there, and say whether it
  /// is.
  bool string(const std::string &key, std::string &value);
  bool boolean(const std::string &key, std::optional<bool> &value);

  /// Refuses keys that nobody asked for, with the nearest that somebody did.
  void finish() const;

private:
  std::string path, what;
  const toml::node &node;
  std::vector<std::string> known;
};

} // namespace fsdp

#endif // FSDP_CONFIG_TOML_H
