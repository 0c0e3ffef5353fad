//===- RankProgram.cpp - Where the program of a rank is -------------------===//
#include "fsdp/Launch/Launch.h"
#include "fsdp/Support/Error.h"
#include <filesystem>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

/// The path of a program beside this one, and whether it is there.
static std::pair<std::string, bool> beside(const std::string &name) {
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::string program = self.parent_path() / name;
  return {program, access(program.c_str(), X_OK) == 0};
}

std::string rt::rankProgram(const Target &target) {
  auto [program, isThere] = beside(std::string("fsdp-rank-") + target.name);
  if (!isThere)
    throw Error("the artifact's target is " + std::string(target.name) +
                ", but there is no " + program + ": " + target.howToBuild);
  return program;
}

std::string rt::calibrateProgram(const Target &target) {
  auto [program, isThere] =
      beside(std::string("fsdp-calibrate-") + target.name);
  if (!isThere)
    throw Error("there is no " + program +
                ", which measures: " + target.howToBuild);
  return program;
}
