//===- ParallelFor.cpp - Independent pieces of work on threads ------------===//
#include "fsdp/Support/ParallelFor.h"
#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

using namespace fsdp;

void fsdp::parallelFor(size_t count, int threads,
                       const std::function<void(size_t)> &work) {
  std::atomic<size_t> next{0};
  std::exception_ptr first;
  std::mutex mutex;
  auto run = [&] {
    try {
      for (size_t i = next++; i < count; i = next++)
        work(i);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      if (!first)
        first = std::current_exception();
      next = count;
    }
  };
  std::vector<std::thread> others;
  try {
    for (int i = 1; i < threads && static_cast<size_t>(i) < count; ++i)
      others.emplace_back(run);
  } catch (const std::system_error &) {
    // The system gives no more threads: those there are do it.
  }
  run();
  for (std::thread &thread : others)
    thread.join();
  if (first)
    std::rethrow_exception(first);
}

int fsdp::availableThreads() {
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) == 0)
    return CPU_COUNT(&mine);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}
