//===- FileKeys.cpp - Reading and writing keys of machine files -----------===//
#include "FileKeys.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <charconv>

using namespace fsdp;

std::vector<std::string> fsdp::sectionsOf(const std::vector<FileKey> &keys) {
  std::vector<std::string> sections;
  for (const FileKey &key : keys)
    if (sections.empty() || sections.back() != key.section)
      sections.emplace_back(key.section);
  return sections;
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

double fsdp::readNumber(const TomlTable &table, const toml::node &node,
                        const std::string &key, const KeyBounds &bounds) {
  std::string wanted = key + ": expected " + bounds.unit + ", " +
                       numberText(bounds.least) + " to " +
                       numberText(bounds.most);
  double number = 0;
  if (const auto *integer = node.as_integer())
    number = static_cast<double>(integer->get());
  else if (const auto *real = node.as_floating_point())
    number = real->get();
  else
    table.fail(node, wanted + ", a number");
  // Not a number is not within bounds either.
  if (!(number >= bounds.least && number <= bounds.most))
    table.fail(node, wanted + ", not " + numberText(number));
  return number;
}

static int64_t readCount(const TomlTable &table, const toml::node &node,
                         const FileKey &key) {
  double number = readNumber(table, node, key.name, *key.bounds);
  // All bounds of counts are below 2^63. An integer is not rounded.
  if (const auto *integer = node.as_integer())
    return integer->get();
  auto count = static_cast<int64_t>(number);
  if (static_cast<double>(count) != number)
    table.fail(node, std::string(key.name) + ": expected a whole number, not " +
                         numberText(number));
  return count;
}

void fsdp::readKeys(TomlTable &table, const std::vector<FileKey> &keys,
                    const std::string &section) {
  for (const FileKey &key : keys) {
    if (section != key.section)
      continue;
    const toml::node *node = table.find(key.name);
    if (!node)
      continue;
    if (auto *const *number = std::get_if<double *>(&key.place)) {
      **number = readNumber(table, *node, key.name, *key.bounds);
    } else if (auto *const *count = std::get_if<int64_t *>(&key.place)) {
      **count = readCount(table, *node, key);
    } else {
      const auto &choice = std::get<ChoicePlace>(key.place);
      const auto *text = node->as_string();
      if (!text || !choice.set(text->get()))
        table.fail(*node, std::string(key.name) + ": expected " +
                              joinedText(choice.all(), ", ") +
                              (text ? didYouMean(text->get(), choice.all())
                                    : ", in quotes"));
    }
  }
}

std::vector<std::string> fsdp::readSections(TomlTable &file,
                                            const std::vector<FileKey> &keys,
                                            const std::string &path) {
  std::vector<std::string> found;
  for (const std::string &section : sectionsOf(keys))
    if (const toml::node *node = file.find(section)) {
      TomlTable table(*node, path, "[" + section + "]");
      readKeys(table, keys, section);
      table.finish();
      found.push_back(section);
    }
  return found;
}

static bool isStated(const FileKey &key) {
  if (auto *const *number = std::get_if<double *>(&key.place))
    return **number != 0;
  if (auto *const *count = std::get_if<int64_t *>(&key.place))
    return **count != 0;
  return true;
}

void fsdp::requireAll(const std::vector<FileKey> &keys,
                      const std::string &path) {
  for (const FileKey &key : keys)
    if (key.required && !isStated(key))
      throw Error(path + ": [" + key.section + "] " + key.name +
                  " is missing: say " + key.bounds->unit + ", or a base that " +
                  "has it (docs/machines.md)");
}

void fsdp::readText(TomlTable &table, const char *key, std::string &text,
                    size_t longest) {
  if (!table.string(key, text))
    return;
  const toml::node &node = *table.find(key);
  if (text.size() > longest)
    table.fail(node, std::string(key) + ": expected at most " +
                         std::to_string(longest) + " bytes, not " +
                         std::to_string(text.size()));
  if (!isPlainLine(text))
    table.fail(node, std::string(key) + ": expected one line of text");
}

void fsdp::readName(TomlTable &table, const toml::node &node,
                    std::string &name) {
  readText(table, "name", name, kLongestName);
  if (name.empty())
    table.fail(node, "name is missing: say what it is called");
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

std::string fsdp::numberText(double number) {
  char digits[64];
  std::to_chars_result end =
      std::to_chars(digits, digits + sizeof(digits), number);
  return {digits, end.ptr};
}

std::string fsdp::quotedText(const std::string &text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

std::string fsdp::writtenKeys(const std::vector<FileKey> &keys,
                              const std::string &section, const char *between) {
  std::string text;
  for (const FileKey &key : keys) {
    if (section != key.section || !isStated(key))
      continue;
    text += std::string(key.name) + " = ";
    if (auto *const *number = std::get_if<double *>(&key.place))
      text += numberText(**number);
    else if (auto *const *count = std::get_if<int64_t *>(&key.place))
      text += std::to_string(**count);
    else
      text += quotedText(std::get<ChoicePlace>(key.place).text());
    text += between;
  }
  return text;
}

std::string fsdp::writtenSections(const std::vector<FileKey> &keys) {
  std::string text;
  for (const std::string &section : sectionsOf(keys)) {
    std::string stated = writtenKeys(keys, section, "\n");
    if (!stated.empty())
      text += "\n[" + section + "]\n" + stated;
  }
  return text;
}

std::string fsdp::writtenNames(const std::string &name,
                               const std::string &description) {
  std::string text = "name = " + quotedText(name) + "\n";
  if (!description.empty())
    text += "description = " + quotedText(description) + "\n";
  return text;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

std::vector<std::string> fsdp::namesOf(const std::vector<BuiltInFile> &files) {
  std::vector<std::string> names;
  for (const BuiltInFile &file : files)
    names.emplace_back(file.name);
  return names;
}

const char *fsdp::findText(const std::vector<BuiltInFile> &files,
                           const std::string &name) {
  for (const BuiltInFile &file : files)
    if (name == file.name)
      return file.text;
  return nullptr;
}

std::pair<std::string, std::string>
fsdp::textOf(const std::string &nameOrPath,
             const std::vector<BuiltInFile> &files, const std::string &what) {
  if (const char *text = findText(files, nameOrPath))
    return {text, nameOrPath + ".toml (built in)"};
  if (nameOrPath.find('/') == std::string::npos &&
      !endsWith(nameOrPath, ".toml")) {
    std::vector<std::string> names = namesOf(files);
    std::string nearest = didYouMean(nameOrPath, names);
    throw Error(what + " '" + printableLine(nameOrPath) + "' is not built in" +
                (nearest.empty() ? "." : nearest) + " Built in are " +
                joinedText(names, ", ") +
                "; a path has a '/' or ends in .toml");
  }
  requireSmallFile(nameOrPath, what);
  return {readWholeFile(nameOrPath, what), nameOrPath};
}
