//===- DiskModel.cpp - What a disk may have after a loss of power ---------===//
#include "DiskModel.h"
#include "fsdp/Support/AtomicFile.h"
#include <fstream>
#include <set>
#include <stdexcept>

using namespace fsdp::test;
namespace fs = std::filesystem;
using Kind = FileCall::Kind;

Tree fsdp::test::readTree(const std::string &folder) {
  Tree tree;
  for (const auto &entry : fs::recursive_directory_iterator(folder)) {
    auto &content = tree[fs::relative(entry.path(), folder).string()];
    if (entry.is_regular_file())
      content = readWholeFile(entry.path().string(), "the file");
  }
  return tree;
}

void fsdp::test::writeTree(const std::string &folder, const Tree &tree) {
  // A folder comes before what lies in it.
  for (const auto &[name, content] : tree)
    if (content)
      std::ofstream(folder + "/" + name, std::ios::binary) << *content;
    else
      fs::create_directory(folder + "/" + name);
}

DiskModel::DiskModel(const Tree &tree) {
  add(/*isFolder=*/true);
  for (const auto &[path, content] : tree) {
    size_t node = add(!content), slash = path.rfind('/');
    bool isTop = slash == std::string::npos;
    Node &parent = nodes[isTop ? 0 : find(path.substr(0, slash))];
    parent.names[isTop ? path : path.substr(slash + 1)] = node;
    parent.namesOnDisk = parent.names;
    if (content)
      nodes[node].contentOnDisk = nodes[node].content = *content;
  }
}

size_t DiskModel::add(bool isFolder) {
  nodes.emplace_back().isFolder = isFolder;
  return nodes.size() - 1;
}

size_t DiskModel::find(const std::string &path) const {
  size_t node = 0;
  for (const fs::path &name : fs::path(path))
    node = nodes[node].names.at(name.string());
  return node;
}

void DiskModel::make(const Change &change, Names &names) {
  switch (change.kind) {
  case Kind::Create:
  case Kind::MakeFolder:
    names[change.name] = change.node;
    break;
  case Kind::Remove:
    names.erase(change.name);
    break;
  case Kind::Rename:
    names[change.to] = names.at(change.name);
    names.erase(change.name);
    break;
  case Kind::Exchange:
    std::swap(names.at(change.name), names.at(change.to));
    break;
  case Kind::Sync:
    break;
  }
}

void DiskModel::apply(const FileCall &call, const std::string &root) {
  fs::path path = fs::path(call.path).lexically_relative(root);
  if (*path.begin() == "..")
    throw std::logic_error("'" + call.path + "' lies outside of the model");
  if (call.kind == Kind::Sync) {
    Node &node = nodes[path == "." ? 0 : find(path.string())];
    node.namesOnDisk = node.names;
    node.pending.clear();
    if (!node.isFolder)
      node.contentOnDisk = node.content = call.content;
    return;
  }
  bool isNew = call.kind == Kind::Create || call.kind == Kind::MakeFolder;
  size_t node = isNew ? add(call.kind == Kind::MakeFolder) : 0;
  fs::path to = fs::path(call.to).lexically_relative(root);
  if (!call.to.empty() && to.parent_path() != path.parent_path())
    throw std::logic_error("'" + call.path + "' comes into another folder");
  Node &parent = nodes[find(path.parent_path().string())];
  Change change{call.kind, path.filename().string(), to.filename().string(),
                node};
  make(change, parent.names);
  parent.pending.push_back(change);
  if (call.kind == Kind::Rename)
    nodes[parent.names.at(change.to)].content = call.content;
}

template <typename NamesOf, typename ContentOf>
void DiskModel::collect(size_t folder, const std::string &prefix, Tree &tree,
                        NamesOf namesOf, ContentOf contentOf) const {
  for (const auto &[name, index] : namesOf(nodes[folder])) {
    const Node &node = nodes[index];
    std::optional<std::string> &content = tree[prefix + name];
    if (node.isFolder)
      collect(index, prefix + name + "/", tree, namesOf, contentOf);
    else
      content = contentOf(node);
  }
}

Tree DiskModel::now() const {
  Tree tree;
  collect(
      0, "", tree, [](const Node &node) { return node.names; },
      [](const Node &node) { return node.content; });
  return tree;
}

DiskModel::Names DiskModel::someNames(const Node &folder, unsigned percent,
                                      std::mt19937 &random) {
  Names names = folder.namesOnDisk;
  std::set<std::string> missing; // a change of the name
  for (const Change &change : folder.pending) {
    bool isMade = !missing.count(change.name) && !missing.count(change.to) &&
                  random() % 100 < percent;
    if (isMade)
      make(change, names);
    else
      missing.insert({change.name, change.to});
  }
  return names;
}

std::string DiskModel::someContent(const Node &file, std::mt19937 &random) {
  if (file.contentOnDisk == file.content)
    return file.content;
  std::string half = file.content.substr(0, file.content.size() / 2);
  std::string zeros = half + std::string(file.content.size() - half.size(), 0);
  const std::string all[] = {file.contentOnDisk.value_or(""), half, zeros,
                             file.content};
  return all[random() % 4];
}

Tree DiskModel::afterPowerLoss(std::mt19937 &random) const {
  // Some disks are far behind, and some have nearly all.
  const unsigned percents[] = {0, 30, 60, 90};
  unsigned percent = percents[random() % 4];
  Tree tree;
  collect(
      0, "", tree,
      [&](const Node &node) { return someNames(node, percent, random); },
      [&](const Node &node) { return someContent(node, random); });
  return tree;
}
