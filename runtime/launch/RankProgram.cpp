//===- RankProgram.cpp - Where the program of a rank is -------------------===//
#include "fsdp/Launch/Launch.h"
#include "fsdp/Support/Error.h"
#include <filesystem>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

std::string rt::rankProgram(Target target) {
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::string program =
      self.parent_path() / (std::string("fsdp-rank-") + targetName(target));
  if (access(program.c_str(), X_OK) == 0)
    return program;
  std::string problem = "the artifact's target is " +
                        std::string(targetName(target)) + ", but there is no " +
                        program;
  if (target == Target::Cuda)
    throw Error(problem + ": this build has no CUDA target; build fsdp where "
                          "CMake finds the CUDA Toolkit, cuDNN and NCCL");
  throw Error(problem + ": build it with fsdp-run");
}
