//===- NewFolder.h - Directories that are whole or absent -------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_STORE_NEWFOLDER_H
#define FSDP_RUNTIME_CHECKPOINT_STORE_NEWFOLDER_H

#include <functional>
#include <string>

namespace fsdp::checkpoint {

/// Makes the directory `path`, which must be absent or empty: `write` fills
/// `path`.partial, which gets its name when the disk has all of it and is
/// removed if that fails. Signals wait; `write` may ask for them, and throw
/// Interrupted. Throws fsdp::Error.
void writeNewFolder(const std::string &path,
                    const std::function<void(const std::string &)> &write);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_STORE_NEWFOLDER_H
