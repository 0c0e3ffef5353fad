//===- Outputs.cpp - What a run writes, and leaves when it fails ----------===//
#include "Outputs.h"
#include "Rank.h"
#include "fsdp/Runtime/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <unistd.h>

using namespace fsdp;
namespace fs = std::filesystem;

/// Throws unless files can be made in the folder of `path`.
static void checkFolderOf(const std::string &path) {
  fs::path folder = fs::path(path).parent_path();
  if (folder.empty())
    folder = ".";
  // The trailing slash makes a plain file an error too.
  if (access((folder.string() + "/").c_str(), W_OK) != 0)
    throw Error("cannot write '" + path + "': " + std::strerror(errno));
}

Outputs::Outputs(const RunConfig &config, const RunOptions &options,
                 int64_t ranks)
    : folder(config.job.dumpFolder), isNewFolder(!fs::exists(folder)) {
  for (const std::string &name :
       {config.metrics.jsonl, std::string("loss.svg"),
        std::string("summary.json"), std::string("sample.txt")})
    files.push_back(folder + "/" + name);
  if (options.dump.empty())
    return;
  checkFolderOf(options.dump);
  for (int64_t rank = 0; rank < ranks; ++rank)
    files.push_back(pathOfRank(options.dump, static_cast<int>(rank)));
}

void Outputs::discard() const {
  std::error_code ignored;
  for (const std::string &file : files)
    fs::remove(rt::partialPath(file), ignored);
  // Fails if something is in it, as it should.
  if (isNewFolder)
    fs::remove(folder, ignored);
}
