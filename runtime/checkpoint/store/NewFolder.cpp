//===- NewFolder.cpp - Directories that are whole or absent ---------------===//
#include "NewFolder.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Explain.h"
#include "fsdp/Support/FileCalls.h"
#include "fsdp/Support/Signals.h"
#include <filesystem>

using namespace fsdp;
using namespace fsdp::checkpoint;
namespace fs = std::filesystem;

/// Where the directory gets its name in the end; throws unless it can.
static fs::path placeOf(const std::string &path) {
  fs::path place = fs::path(path).lexically_normal();
  if (!place.has_filename()) // "DIR/"
    place = place.parent_path();
  std::string name = place.filename().string();
  if (name.empty() || name == "." || name == "..")
    throw Error("'" + path + "' is no name of a new directory; give one");
  std::error_code ec;
  if (fs::is_symlink(place, ec))
    throw Error("'" + path +
                "' is a link; give a new directory, or the name "
                "that it leads to");
  if (fs::exists(place, ec) &&
      !(fs::is_directory(place, ec) && fs::is_empty(place, ec)))
    throw Error("'" + path + "' exists already; give a new directory");
  return place;
}

void checkpoint::writeNewFolder(
    const std::string &path,
    const std::function<void(const std::string &)> &write) {
  fs::path place = placeOf(path);
  DeferredSignals signals; // until the directory is complete or gone
  std::error_code ec;
  fs::path partial = place;
  partial += ".partial";
  if (fs::exists(partial, ec))
    throw Error("'" + partial.string() +
                "' exists, from a command that was killed or still runs; "
                "remove it, or give another directory");
  makeDurableDirectories(partial.string());
  try {
    write(partial.string());
    syncFolderAndFiles(partial.string());
    FileCall call("rename", partial.native());
    fs::rename(partial, place);
  } catch (const Interrupted &) {
    fs::remove_all(partial, ec);
    throw;
  } catch (const std::exception &error) {
    fs::remove_all(partial, ec);
    throw Error("cannot write the directory '" + path + "': " + explain(error));
  }
  fs::path parent = place.parent_path();
  syncFolder(parent.empty() ? "." : parent.string());
}
