//===- Toml.cpp - Reading TOML files --------------------------------------===//
#include "fsdp/Config/Toml.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>

using namespace fsdp;

toml::table fsdp::parseToml(const std::string &path, const std::string &what) {
  try {
    return toml::parse(readWholeFile(path, what), path);
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
