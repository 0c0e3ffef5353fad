//===- Loader.cpp - Opening a compiled artifact ---------------------------===//
#include "fsdp/Artifact/Loader.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Checksum.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Paths.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::rt;

void LoadedArtifact::Close::operator()(void *library) const {
  dlclose(library);
}

/// The system's loader would map a damaged library, and its code would run.
void ArtifactFolder::checkLibrary() const {
  if (!std::filesystem::exists(libraryPath()))
    throw Error("the artifact's library " + libraryPath() + " is missing");
  if (!std::filesystem::exists(checksumPath()))
    throw Error("the artifact has no checksum of its library, " +
                checksumPath() +
                ": an older fsdp-compile wrote it, or the file was not copied; "
                "compile the artifact again");
  std::string is = checksumLine(readWholeFile(
      libraryPath(), "the artifact's library", FileKind::Regular));
  std::string was = readWholeFile(checksumPath(), "the library's checksum",
                                  FileKind::Regular);
  if (is != was)
    throw Error(
        "the artifact's library " + libraryPath() +
        " is damaged or was changed (strip, patchelf): " + checksumPath() +
        " is not its checksum; compile the artifact again");
}

/// The library's table, after the checks that need no manifest.
static const fsdp_artifact *findTable(void *library,
                                      const std::string &libraryPath) {
  using GetArtifact = const fsdp_artifact *(*)();
  auto get = reinterpret_cast<GetArtifact>(dlsym(library, "fsdp_get_artifact"));
  const fsdp_artifact *table = get ? get() : nullptr;
  if (!table || !table->manifest)
    throw Error(libraryPath + " is no compiled artifact: it does not export "
                              "fsdp_get_artifact");
  if (table->abi != FSDP_ARTIFACT_ABI)
    throw Error(libraryPath + " was compiled for ABI " +
                std::to_string(table->abi) + ", this runtime has ABI " +
                std::to_string(FSDP_ARTIFACT_ABI) + "; compile it again");
  return table;
}

/// Checks that library and manifest speak of the same programs.
static void checkTable(const fsdp_artifact &table, const Manifest &manifest,
                       const std::string &libraryPath) {
  bool same = table.arena_bytes == manifest.arenaBytes &&
              table.programs == static_cast<int>(manifest.programs.size());
  for (int i = 0; same && i < table.programs; ++i)
    same = manifest.programs[i].name == table.program[i].name;
  if (!same)
    throw Error(libraryPath + ": its tables differ from its manifest");
}

/// A manifest without the newline with which writers may end the file.
static std::string withoutLastNewline(std::string text) {
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  return text;
}

ArtifactFolder::ArtifactFolder(const std::string &directory) : path(directory) {
  if (!std::filesystem::is_directory(directory))
    throw Error("no artifact directory '" + directory +
                "'; fsdp-compile writes one");
  text = readWholeFile(manifestPath(), "the artifact's manifest",
                       FileKind::Regular);
  parsed = parseManifest(text, manifestPath());
  checkLibrary();
}

LoadedArtifact::LoadedArtifact(const ArtifactFolder &folder) : folder(folder) {
  std::string libraryPath = folder.libraryPath();
  // A path without a slash would be searched for in the system's folders.
  std::string absolute = absolutePath(libraryPath);
  library.reset(dlopen(absolute.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library)
    throw Error(std::string("cannot load the artifact: ") + dlerror());
  table = findTable(library.get(), libraryPath);
  if (withoutLastNewline(folder.manifestText()) !=
      withoutLastNewline(table->manifest))
    throw Error(folder.manifestPath() + " is not the manifest inside " +
                libraryPath + "; compile the artifact again");
  checkTable(*table, manifest(), libraryPath);
}

const Target &rt::targetOf(const Manifest &manifest) {
  auto target = manifest.fingerprint.find("target");
  bool isStated = target != manifest.fingerprint.end();
  return targetOfArchitecture(isStated ? target->second : "");
}

void rt::checkTarget(const Manifest &manifest) {
  auto target = manifest.fingerprint.find("target");
  if (target == manifest.fingerprint.end())
    return;
  // "x86-64-v4, g++ 12.2.0"; other names of CPUs cannot be checked.
  std::string cpu = target->second.substr(0, target->second.find(','));
  bool lacks = (cpu == "x86-64-v2" && !__builtin_cpu_supports("x86-64-v2")) ||
               (cpu == "x86-64-v3" && !__builtin_cpu_supports("x86-64-v3")) ||
               (cpu == "x86-64-v4" && !__builtin_cpu_supports("x86-64-v4"));
  if (lacks)
    throw Error("the artifact's target is " + cpu +
                ", which this CPU lacks; compile it here or with a lower "
                "compile.cpu");
}

void rt::checkWorldSize(const Manifest &manifest, int64_t ranks) {
  if (manifest.ranks() != ranks)
    throw Error("wrong number of ranks: the artifact is compiled for " +
                std::to_string(manifest.ranks()) + " (" + manifest.meshText() +
                "), this job has " + std::to_string(ranks));
}

/// Whether two texts state the same value; "1" and "1.0" do.
static bool sameValue(const std::string &a, const std::string &b) {
  if (a == b)
    return true;
  char *endA, *endB;
  double x = std::strtod(a.c_str(), &endA), y = std::strtod(b.c_str(), &endB);
  return !a.empty() && !b.empty() && !*endA && !*endB && x == y;
}

void rt::checkSettings(const std::map<std::string, std::string> &compiled,
                       const std::map<std::string, std::string> &wanted,
                       const std::map<std::string, std::string> &origin) {
  auto textIn = [](const std::map<std::string, std::string> &settings,
                   const std::string &name) {
    auto found = settings.find(name);
    return found == settings.end() ? "unset"
           : found->second.empty() ? "\"\""
                                   : printableLine(found->second);
  };
  std::vector<std::string> differences;
  auto compare = [&](const std::string &name) {
    std::string has = textIn(compiled, name), want = textIn(wanted, name);
    if (sameValue(has, want))
      return;
    auto place = origin.find(name);
    differences.push_back(printableLine(name) + " is " + has +
                          " in the artifact, the run wants " + want + " (" +
                          (place == origin.end() ? "default" : place->second) +
                          ")");
  };
  for (const auto &[name, value] : wanted)
    compare(name);
  for (const auto &[name, value] : compiled)
    if (!wanted.count(name))
      compare(name);
  if (differences.empty())
    return;
  if (differences.size() == 1)
    throw Error("stale artifact: " + differences.front() +
                "; compile it again");
  std::string text = "stale artifact: " + std::to_string(differences.size()) +
                     " settings differ; compile it again";
  for (const std::string &difference : differences)
    text += "\n  " + difference;
  throw Error(text);
}
