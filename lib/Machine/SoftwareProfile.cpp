//===- SoftwareProfile.cpp - Reading and writing software profiles --------===//
#include "fsdp/Machine/SoftwareProfile.h"
#include "FileKeys.h"
#include "fsdp/Support/Checksum.h"

using namespace fsdp;

SoftwareProfile fsdp::readProfile(const std::string &text,
                                  const std::string &path) {
  toml::table file = parseTomlText(text, path);
  TomlTable table(file, path, "a software profile");
  SoftwareProfile profile;
  readName(table, file, profile.name);
  readText(table, "description", profile.description, kLongestText);
  readSections(table, keysOf(profile), path);
  table.finish();
  return profile;
}

SoftwareProfile fsdp::loadProfile(const std::string &nameOrPath) {
  auto [text, path] = textOf(nameOrPath, kProfileFiles, "the profile");
  return readProfile(text, path);
}

std::vector<std::string> fsdp::builtInProfiles() {
  return namesOf(kProfileFiles);
}

std::string fsdp::toToml(const SoftwareProfile &given) {
  SoftwareProfile profile = given;
  return writtenNames(profile.name, profile.description) +
         writtenSections(keysOf(profile));
}

std::string fsdp::fingerprintOf(const SoftwareProfile &given) {
  SoftwareProfile profile = given;
  return checksumText(checksumOf(writtenSections(keysOf(profile))));
}
