//===- MatmulChoice.h - The fastest algorithm of every matmul ---*- C++ -*-===//
//
// cuBLASLt guesses which algorithm is fast. Rank 0 times its best guesses for
// matmuls that no artifact had before on this kind of GPU and with this version
// of the library, and keeps what it found in a cache folder. All ranks take
// rank 0's algorithms.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_MATMULCHOICE_H
#define FSDP_RUNTIME_CUDA_MATMULCHOICE_H

#include "CudaContext.h"

namespace fsdp::rt {

/// For rank 0, before the arena holds anything. Without a folder, or where
/// nothing can be written in it, nothing is timed: matmuls that the table
/// contains take its algorithms, and others the library's first guesses, which
/// are the same every time. A file of another GPU or version under this one's
/// name is said and made anew. Throws fsdp::Error if the file is none of this
/// kind.
void chooseAlgorithms(CudaContext &c, const std::string &folder);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_MATMULCHOICE_H
