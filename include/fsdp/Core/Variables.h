//===- Variables.h - Settings in the environment ----------------*- C++ -*-===//
//
// The variables FSDP_*. Those that hold numbers throw fsdp::Error that names
// the variable if it holds something else; one that is not set has its default.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CORE_VARIABLES_H
#define FSDP_CORE_VARIABLES_H

#include <cstdint>
#include <optional>
#include <string>

namespace fsdp::rt {

/// FSDP_TIMEOUT: seconds that a collective may take (300).
double collectiveTimeout();
/// FSDP_JOIN_TIMEOUT: seconds in which the ranks of a job have to connect to
/// rank 0, where they do (120).
double joinTimeout();
/// FSDP_HEARTBEAT: seconds that a rank may give no sign of life (30); 0: for
/// ever.
double heartbeatLimit();
/// FSDP_FILE_TIMEOUT: seconds that a save or the last export may wait for
/// one call to the file system before it is named (60); 0: for ever.
double fileTimeout();
/// FSDP_SHARED_MEMORY: whether ranks of one machine share their arenas (1).
bool wantsSharedMemory();
/// FSDP_SHARE_GPU: whether ranks of one machine may compute on one GPU (0).
bool wantsSharedGpu();
/// FSDP_NATIVE_BF16: whether matmuls use bf16 instructions; nothing if not set.
std::optional<bool> wantsNativeBF16();

/// FSDP_CACHE_DIR: the folder of what was measured of this machine; if it is
/// not set, fsdp in XDG_CACHE_HOME or in ~/.cache. Empty: there is none.
std::string cacheFolder();

/// FSDP_TRACE: the file of a rank's trace, PREFIX.<rank>.json of `option` or,
/// if that is empty, of the variable. Empty: no trace is wanted.
std::string tracePath(const std::string &option, int64_t rank);

/// Reads them all but FSDP_TRACE, so that a mistake gives one message before a
/// job starts.
void checkVariables();

} // namespace fsdp::rt

#endif // FSDP_CORE_VARIABLES_H
