//===- LoadedFile.cpp - The files that --load names -----------------------===//
#include "LoadedFile.h"
#include "Outputs.h"
#include "fsdp/Data/Safetensors.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"
#include <algorithm>
#include <filesystem>

using namespace fsdp;
using namespace fsdp::rt;

std::string fsdp::fileToLoad(const std::string &path, int rank) {
  std::string mine = pathOfRank(path, rank);
  bool whole = std::filesystem::exists(path);
  if (!whole && !std::filesystem::exists(mine))
    throw Error("there is no file '" + path + "' and no '" + mine + "'");
  return whole ? path : mine;
}

bool fsdp::loadsBatch(const std::string &path) {
  std::string name = fileToLoad(path, 0);
  // What can be read only once is left to the rank.
  if (!std::filesystem::is_regular_file(name))
    return true;
  SafetensorsFile file(name);
  auto has = [&](const char *range) {
    return std::any_of(
        file.tensors().begin(), file.tensors().end(),
        [&](const TensorView &tensor) { return tensor.name == range; });
  };
  return has(range_name::kTokens) && has(range_name::kTargets);
}
