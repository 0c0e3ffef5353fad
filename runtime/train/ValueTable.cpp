//===- ValueTable.cpp - What the calls of an artifact produce -------------===//
#include "ValueTable.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/Text.h"
#include <filesystem>

#define XXH_INLINE_ALL
#include <xxhash.h>

using namespace fsdp;
using namespace fsdp::rt;

static ValueTable::Type parseType(const JsonField &field) {
  std::vector<JsonField> items = field.items();
  std::string element = items.empty() ? "" : items.front().string();
  ValueTable::Type type{DType::F32, {}};
  if (element == "bf16")
    type.dtype = DType::BF16;
  else if (element == "f64")
    type.dtype = DType::F64;
  else if (element != "f32")
    field.fail("expected f32, bf16 or f64 and the sizes of dimensions");
  for (size_t i = 1; i < items.size(); ++i)
    type.shape.push_back(items[i].integer(1));
  // Far from overflow with any number of bytes per element.
  if (elementCount(type.shape) > (int64_t{1} << 56))
    field.fail("more than 2^56 elements");
  return type;
}

/// [call, name, type, offset].
static MadeValue parseValue(const JsonField &field, const ValueTable &table,
                            const Manifest &manifest) {
  std::vector<int64_t> numbers = field.integers();
  if (numbers.size() != 4)
    field.fail("expected a call, a name, a type and an offset");
  auto name = static_cast<size_t>(numbers[1]),
       type = static_cast<size_t>(numbers[2]);
  if (name >= table.names.size())
    field.fail("there is no name " + std::to_string(name));
  if (type >= table.types.size())
    field.fail("there is no type " + std::to_string(type));
  auto offset = static_cast<uint64_t>(numbers[3]);
  auto bytes = static_cast<uint64_t>(elementCount(table.types[type].shape) *
                                     sizeOf(table.types[type].dtype));
  if (offset + bytes > manifest.arenaBytes)
    field.fail("the value ends outside of the arena");
  return {numbers[0], name, type, offset};
}

static ValueTable::Program parseProgram(const JsonField &field,
                                        const ValueTable &table,
                                        const Manifest &manifest) {
  ValueTable::Program program;
  program.calls = field.at("calls").integer();
  constexpr int64_t kMostCalls = 1 << 24;
  if (program.calls > kMostCalls)
    field.at("calls").fail("more than 2^24 calls");
  int64_t last = 0;
  for (const JsonField &item : field.at("values").items()) {
    program.values.push_back(parseValue(item, table, manifest));
    int64_t call = program.values.back().call;
    if (call < last || call >= program.calls)
      item.fail("call " + std::to_string(call) +
                " is not one of the program's in their order");
    last = call;
  }
  return program;
}

ValueTable fsdp::readValueTable(const ArtifactFolder &artifact) {
  const std::string path = artifact.directory() + "/values.json";
  if (!std::filesystem::exists(path))
    throw Error("the artifact has no " + path +
                ", by which values are named; compile it again");
  std::string text =
      readWholeFile(path, "the artifact's table of values", FileKind::Regular);
  nlohmann::json document = parseJson(text, path);
  JsonField root(document, path);
  if (root.at("format").integer() != 1)
    root.at("format").fail("this version reads format 1");
  const std::string &manifestText = artifact.manifestText();
  if (root.at("manifest").string() !=
      format("%llx", static_cast<unsigned long long>(XXH3_64bits(
                         manifestText.data(), manifestText.size()))))
    throw Error(path + " is of another artifact than " +
                artifact.manifestPath() + "; compile it again");
  ValueTable table;
  table.names = root.at("names").strings();
  for (const JsonField &item : root.at("types").items())
    table.types.push_back(parseType(item));
  const Manifest &manifest = artifact.manifest();
  std::vector<JsonField> programs = root.at("programs").items();
  if (programs.size() != manifest.programs.size())
    root.at("programs")
        .fail("the manifest has " + std::to_string(manifest.programs.size()));
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].at("name").string() != manifest.programs[i].name)
      programs[i].at("name").fail("the manifest calls it '" +
                                  manifest.programs[i].name + "'");
    table.programs.push_back(parseProgram(programs[i], table, manifest));
  }
  return table;
}

std::vector<std::vector<std::string>> fsdp::callNames(const ValueTable &table) {
  std::vector<std::vector<std::string>> programs;
  for (const ValueTable::Program &program : table.programs) {
    std::vector<std::string> &names = programs.emplace_back();
    for (const MadeValue &value : program.values) {
      names.resize(static_cast<size_t>(value.call) + 1);
      // "fwd layers.0.attention attention (out)" is one of several.
      const std::string &name = table.names[value.name];
      if (names.back().empty())
        names.back() = name.substr(0, name.find(" ("));
    }
  }
  return programs;
}
