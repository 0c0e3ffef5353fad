//===- MatmulChoice.h - The fastest algorithm of every matmul ---*- C++ -*-===//
//
// cuBLASLt guesses which algorithm is fast; rank 0 times its best guesses when
// an artifact is loaded for the first time on a GPU and with a version of the
// library, and keeps what it found beside the artifact. An algorithm decides
// bits, so all ranks take rank 0's, and later runs those of the file.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_MATMULCHOICE_H
#define FSDP_RUNTIME_CUDA_MATMULCHOICE_H

#include "CudaContext.h"

namespace fsdp::rt {

/// For rank 0, before the arena holds anything. Without a folder, or where
/// nothing can be written in it, nothing is timed and the library's first
/// guesses hold, which are the same every time. A file of another GPU or
/// version under this one's name is said and made anew. Throws fsdp::Error if
/// the file is none of this kind.
void chooseAlgorithms(CudaContext &c, const std::string &folder);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_MATMULCHOICE_H
