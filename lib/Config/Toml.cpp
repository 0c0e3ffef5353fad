//===- Toml.cpp - Reading TOML files --------------------------------------===//
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <filesystem>

using namespace fsdp;

/// Far more than anybody writes. A description may come from a pipe, whose size
/// is not known before, and a device may have no end.
static constexpr size_t kMostBytes = size_t(64) << 20;

toml::table fsdp::parseToml(const std::string &path, const std::string &what) {
  return parseTomlText(readWholeFile(path, what, FileKind::Any, kMostBytes),
                       path);
}

toml::table fsdp::parseTomlText(const std::string &text,
                                const std::string &path) {
  try {
    return toml::parse(text, path);
  } catch (const toml::parse_error &error) {
    throw Error(path + ":" + std::to_string(error.source().begin.line) + ": " +
                printableLine(error.description()));
  } catch (const TomlAssertion &) {
    throw Error(path + ": this is not valid TOML");
  }
}

std::string fsdp::originOf(const toml::node &node, const std::string &path) {
  return path + ":" + std::to_string(node.source().begin.line);
}

std::vector<std::pair<std::string, const toml::node *>>
fsdp::inOrder(const toml::table &table) {
  std::vector<std::pair<std::string, const toml::node *>> nodes;
  for (auto &&[key, node] : table)
    nodes.emplace_back(printableLine(key.str()), &node);
  auto line = [](const auto &entry) {
    return entry.second->source().begin.line;
  };
  std::stable_sort(
      nodes.begin(), nodes.end(),
      [&](const auto &a, const auto &b) { return line(a) < line(b); });
  return nodes;
}

void fsdp::requireSmallFile(const std::string &path, const std::string &what) {
  constexpr uintmax_t limit = 1 << 20;
  std::error_code error;
  std::filesystem::file_status status = std::filesystem::status(path, error);
  if (!std::filesystem::exists(status))
    return;
  if (!std::filesystem::is_regular_file(status))
    throw Error(what + " '" + path +
                "' is not a regular file; copy it into one");
  uintmax_t size = std::filesystem::file_size(path, error);
  if (!error && size > limit)
    throw Error(what + " '" + path + "' has " + std::to_string(size) +
                " bytes, more than 1 MiB");
}

//===----------------------------------------------------------------------===//
// One table
//===----------------------------------------------------------------------===//

TomlTable::TomlTable(const toml::node &node, std::string path, std::string what)
    : path(std::move(path)), what(std::move(what)), node(node) {
  if (!node.is_table())
    fail(node, "expected a table");
}

std::string TomlTable::origin() const { return originOf(node, path); }

void TomlTable::fail(const toml::node &at, const std::string &why) const {
  throw Error(originOf(at, path) + ": " + what + ": " + why);
}

const toml::node *TomlTable::find(const std::string &key) {
  known.push_back(key);
  return node.as_table()->get(key);
}

bool TomlTable::string(const std::string &key, std::string &value) {
  const toml::node *found = find(key);
  if (!found)
    return false;
  if (!found->is_string())
    fail(*found, key + ": expected a string");
  value = found->as_string()->get();
  return true;
}

bool TomlTable::boolean(const std::string &key, std::optional<bool> &value) {
  const toml::node *found = find(key);
  if (!found)
    return false;
  if (!found->is_boolean())
    fail(*found, key + ": expected true or false");
  value = found->as_boolean()->get();
  return true;
}

void TomlTable::finish() const {
  for (const auto &[key, value] : inOrder(*node.as_table()))
    if (std::find(known.begin(), known.end(), key) == known.end())
      fail(*value, "unknown key '" + key + "'" + didYouMean(key, known));
}
