//===- LoadedFile.h - The files that --load names ---------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_TRAIN_LOADEDFILE_H
#define FSDP_RUNTIME_TRAIN_LOADEDFILE_H

#include <string>

namespace fsdp {

/// The file that a rank loads: `path`, which is for all, or else its own, with
/// `.rankN` before the extension. Throws fsdp::Error if there is neither.
std::string fileToLoad(const std::string &path, int rank);

/// Whether the file of the first rank has both inputs of a batch; so do those
/// of the others then. Throws fsdp::Error.
bool loadsBatch(const std::string &path);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_LOADEDFILE_H
