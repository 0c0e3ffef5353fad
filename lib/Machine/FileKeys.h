//===- FileKeys.h - Numbers and choices of machine files --------*- C++ -*-===//
//
// One row says everything about a key: where it is, what it may hold and
// where the value goes. Reading, checking and writing are read off the rows,
// and a test compares them with docs/machines.md.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MACHINE_FILEKEYS_H
#define FSDP_MACHINE_FILEKEYS_H

#include "fsdp/Config/Toml.h"
#include "fsdp/Machine/Machine.h"
#include "fsdp/Machine/SoftwareProfile.h"
#include <variant>

namespace fsdp {

/// What a number may be, and its unit, for messages.
struct KeyBounds {
  double least, most;
  const char *unit;
};

struct FileKey {
  /// The table, "" in tables of a list.
  const char *section;
  const char *name;
  std::variant<double *, int64_t *, ChoicePlace> place;
  /// Of numbers.
  const KeyBounds *bounds = nullptr;
  /// A file says it, or its base does.
  bool required = false;
};

std::vector<FileKey> keysOf(Machine &machine);
std::vector<FileKey> keysOf(SoftwareProfile &profile);
std::vector<FileKey> keysOf(Machine::Ring &ring);
std::vector<FileKey> keysOf(Machine::Protocol &protocol);
std::vector<FileKey> keysOf(Machine::Product &product);
std::vector<FileKey> keysOf(Machine::AttentionRates &attention);
std::vector<FileKey> keysOf(Machine::Curve &curve);
std::vector<FileKey> keysOf(Machine::Curve::Line &line);

/// The sections of the rows, in their order.
std::vector<std::string> sectionsOf(const std::vector<FileKey> &keys);

/// Reads what a table says of the keys of `section`; the others are left alone.
void readKeys(TomlTable &table, const std::vector<FileKey> &keys,
              const std::string &section);
/// A number within its bounds. Fails with what is wrong.
double readNumber(const TomlTable &table, const toml::node &node,
                  const std::string &key, const KeyBounds &bounds);

/// Reads the sections of the rows that a file has, and returns their names.
std::vector<std::string> readSections(TomlTable &file,
                                      const std::vector<FileKey> &keys,
                                      const std::string &path);

/// Throws fsdp::Error for a required key that nobody said; `path` is the
/// file's.
void requireAll(const std::vector<FileKey> &keys, const std::string &path);

/// "key = value" of what is stated in `section`, with `between` after each.
std::string writtenKeys(const std::vector<FileKey> &keys,
                        const std::string &section, const char *between);
/// All sections that have something stated, with their heads.
std::string writtenSections(const std::vector<FileKey> &keys);
/// "name = …", and the description if there is one.
std::string writtenNames(const std::string &name,
                         const std::string &description);
/// The shortest text that reads as this number.
std::string numberText(double number);
/// The text in quotes, as TOML reads it.
std::string quotedText(const std::string &text);

/// How long these may be, in bytes.
inline constexpr size_t kLongestName = 64, kLongestText = 400;
/// A text of one line; not there, it is left alone.
void readText(TomlTable &table, const char *key, std::string &text,
              size_t longest);
/// A name, which must be there.
void readName(TomlTable &table, const toml::node &node, std::string &name);

/// Files of the tree, in the library.
struct BuiltInFile {
  const char *name, *text;
};
/// Written when the library is built (EmbedFiles.cmake). Sorted by name.
extern const std::vector<BuiltInFile> kMachineFiles, kProfileFiles;
std::vector<std::string> namesOf(const std::vector<BuiltInFile> &files);
/// The one of this name; null: there is none.
const char *findText(const std::vector<BuiltInFile> &files,
                     const std::string &name);
/// The text that a name or a path stands for, and what messages call it. `what`
/// it is: "the machine file".
std::pair<std::string, std::string>
textOf(const std::string &nameOrPath, const std::vector<BuiltInFile> &files,
       const std::string &what);

} // namespace fsdp

#endif // FSDP_MACHINE_FILEKEYS_H
