//===- ParallelFor.h - Independent pieces of work on threads ----*- C++ -*-===//
#ifndef FSDP_SUPPORT_PARALLELFOR_H
#define FSDP_SUPPORT_PARALLELFOR_H

#include <cstddef>
#include <functional>

namespace fsdp {

/// Calls `work` with every number below `count`, on at most so many threads and
/// in any order. The first exception ends it and is thrown here.
void parallelFor(size_t count, int threads,
                 const std::function<void(size_t)> &work);

/// Threads that this process may run at the same time.
int availableThreads();

} // namespace fsdp

#endif // FSDP_SUPPORT_PARALLELFOR_H
