//===- Paths.h - Where a path leads -----------------------------*- C++ -*-===//
#ifndef FSDP_SUPPORT_PATHS_H
#define FSDP_SUPPORT_PATHS_H

#include <string>

namespace fsdp {

/// The path from the root on, links and dots in it as they are; of an empty
/// path an empty one. Throws fsdp::Error for a relative path where the current
/// directory is gone.
std::string absolutePath(const std::string &path);

} // namespace fsdp

#endif // FSDP_SUPPORT_PATHS_H
