//===- RankProgram.cpp - Where the program of a rank is -------------------===//
#include "fsdp/Launch/Launch.h"
#include "fsdp/Support/Error.h"
#include <filesystem>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

std::string rt::rankProgram(const Target &target) {
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::string program =
      self.parent_path() / (std::string("fsdp-rank-") + target.name);
  if (access(program.c_str(), X_OK) == 0)
    return program;
  throw Error("the artifact's target is " + std::string(target.name) +
              ", but there is no " + program + ": " + target.howToBuild);
}
