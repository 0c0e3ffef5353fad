//===- StepFolder.h - Directories of steps ----------------------*- C++ -*-===//
//
// What a directory beside a committed step is called says what is to be done
// with it, whenever a process has died:
//
//   step-N.partial            written, whole with a marker: becomes step-N, if
//                             there is none
//   step-N.partial-replaced   the step-N of before, on its way out: goes back
//                             if there is no other
//   step-N.partial-removed    on its way out
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_NATIVE_STEPFOLDER_H
#define FSDP_RUNTIME_CHECKPOINT_NATIVE_STEPFOLDER_H

#include "Index.h"
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

inline constexpr char kPartial[] = ".partial";
inline constexpr char kReplaced[] = ".partial-replaced";
inline constexpr char kRemoved[] = ".partial-removed";

/// The step of "step-500" and a suffix; unset: the name is another.
std::optional<int64_t> stepOfName(const std::string &name,
                                  const std::string &suffix = "");

/// Steps that the folder has under this suffix, ascending. None if it does not
/// exist.
std::vector<int64_t> stepsIn(const std::string &folder,
                             const std::string &suffix = "");

/// Whether a directory has a marker. Throws fsdp::Error if that cannot be said.
bool hasMarker(const std::string &directory);
/// Its index. Throws fsdp::Error unless the marker is that of the index.
Index readIndex(const std::string &directory);
/// Whether it has a marker of its index, and all files have their sizes.
bool isWhole(const std::string &directory);

/// Removes a directory with what a save makes, once the disk has the names that
/// are beside it now. Returns false, and leaves it,
/// if something else lies in it, or it is no directory but a file or a link.
bool removeStepFolder(const std::string &directory);
/// Throws fsdp::Error if something lies there that removeStepFolder() leaves.
void checkReplaceable(const std::string &directory);

/// Removes a file, or an empty directory, that may be gone already.
void removeFile(const std::string &path);

/// Puts the whole directory step-N.partial in the place of step-N. Throws
/// fsdp::Error, before anything is moved if step-N is not replaceable.
void moveInPlace(const std::string &folder, int64_t step);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_NATIVE_STEPFOLDER_H
