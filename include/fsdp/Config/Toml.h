//===- Toml.h - Reading TOML files ------------------------------*- C++ -*-===//
#ifndef FSDP_CONFIG_TOML_H
#define FSDP_CONFIG_TOML_H

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

/// "run.toml:7"
std::string originOf(const toml::node &node, const std::string &path);

/// What a table holds, in the order of the file. Keys are as messages show them
/// (printableLine): one with a control character is none of ours anyway.
std::vector<std::pair<std::string, const toml::node *>>
inOrder(const toml::table &table);

} // namespace fsdp

#endif // FSDP_CONFIG_TOML_H
