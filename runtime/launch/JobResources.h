//===- JobResources.h - What a job needs of its machine ---------*- C++ -*-===//
//
// Open MPI says a page of text, or hangs, where a machine is short of
// something. All of it is looked at before mpirun is started, and what ranks
// without MPI need before they meet. Everything here
// throws fsdp::Error that names what is short and what to do.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_LAUNCH_JOBRESOURCES_H
#define FSDP_RUNTIME_LAUNCH_JOBRESOURCES_H

#include "SessionFolder.h"
#include <memory>

namespace fsdp::rt {

/// Open MPI's setting for the folder of the segments of memory through which
/// ranks send messages.
constexpr const char *kMessageFolder = "OMPI_MCA_btl_vader_backing_directory";

struct JobFolders {
  /// mpirun's own. mpirun makes and removes a folder that all jobs of a user
  /// share, and fails when two of them start or end at once.
  std::unique_ptr<SessionFolder> session;
  /// For kMessageFolder; null if that is set already.
  std::unique_ptr<SessionFolder> messages;
};
JobFolders makeJobFolders(int ranks);

/// Raises the limit of open files to `needed`. `who` "needs" them, or "need".
void allowOpenFiles(uint64_t needed, const std::string &who);

/// Checks the limit of a file's size.
void checkFileSize();

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_LAUNCH_JOBRESOURCES_H
