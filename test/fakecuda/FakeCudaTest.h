//===- FakeCudaTest.h - What tests of the stand-in device share -*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_FAKECUDATEST_H
#define FSDP_TEST_FAKECUDA_FAKECUDATEST_H

#include <cuda_runtime_api.h>
#include <functional>
#include <gtest/gtest.h>
#include <nccl.h>
#include <sys/wait.h>
#include <unistd.h>

/// Ends the process with a message if something fails.
#define REQUIRE(condition)                                                     \
  if (!(condition)) {                                                          \
    std::fprintf(stderr, "not true: %s\n", #condition);                        \
    std::exit(1);                                                              \
  }
#define CUDA(call)                                                             \
  if (cudaError_t status = call; status != cudaSuccess) {                      \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));       \
    std::exit(2);                                                              \
  }
#define NCCL(call)                                                             \
  if (ncclResult_t status = call; status != ncclSuccess) {                     \
    std::fprintf(stderr, "%s: %s\n", #call, ncclGetErrorString(status));       \
    std::exit(2);                                                              \
  }

inline void expectGood(const std::function<void()> &body) {
  EXPECT_EXIT((body(), std::exit(0)), testing::ExitedWithCode(0), "");
}
/// A call must fail with such a text.
inline void expectBad(const char *text, const std::function<void()> &body) {
  EXPECT_EXIT((body(), std::exit(0)), testing::ExitedWithCode(2), text);
}

/// How often a random order is tried: an order that is one of two
/// stays away 40 times in a row once in 2^40.
inline constexpr int kTries = 40;

inline cudaStream_t makeStream() {
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

inline cudaEvent_t makeEvent() {
  cudaEvent_t event;
  CUDA(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  return event;
}

inline char *allocate(size_t bytes) {
  void *memory;
  CUDA(cudaMalloc(&memory, bytes));
  return static_cast<char *>(memory);
}

inline char byteAt(const char *memory) {
  char byte;
  CUDA(cudaMemcpy(&byte, memory, 1, cudaMemcpyDeviceToHost));
  return byte;
}

/// How often the last of two fills with 1 and 2, issued by `issue`, was the
/// one with 1.
inline int countFirstLast(const std::function<void(char *)> &issue) {
  char *memory = allocate(1);
  int count = 0;
  for (int i = 0; i < kTries; ++i) {
    issue(memory);
    CUDA(cudaDeviceSynchronize());
    count += byteAt(memory) == 1;
  }
  return count;
}

//===----------------------------------------------------------------------===//
// Between ranks
//===----------------------------------------------------------------------===//

inline constexpr size_t kBytes = 64;

/// What a rank of a test has.
struct TestRank {
  int rank;
  ncclComm_t comm;
  char *memory; // two pieces of kBytes for every rank, registered
  cudaStream_t stream;
};

inline TestRank join(int rank, int idPipe[2]) {
  setenv("RANK", std::to_string(rank).c_str(), 1);
  TestRank r;
  r.rank = rank;
  ncclUniqueId id;
  // Rank 0 hands the identifier to the other.
  if (rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    REQUIRE(write(idPipe[1], &id, sizeof id) == sizeof id);
  } else {
    REQUIRE(read(idPipe[0], &id, sizeof id) == sizeof id);
  }
  NCCL(ncclCommInitRank(&r.comm, 2, id, rank));
  void *memory, *handle;
  NCCL(ncclMemAlloc(&memory, 4 * kBytes));
  NCCL(ncclCommRegister(r.comm, memory, 4 * kBytes, &handle));
  r.memory = static_cast<char *>(memory);
  r.stream = makeStream();
  return r;
}

/// Runs `body` as two ranks; ends as the worse of them does.
inline void asTwoRanks(const std::function<void(const TestRank &)> &body) {
  int idPipe[2];
  REQUIRE(pipe(idPipe) == 0);
  pid_t other = fork();
  body(join(other == 0 ? 1 : 0, idPipe));
  if (other == 0)
    std::exit(0);
  int state = 0;
  REQUIRE(waitpid(other, &state, 0) == other);
  REQUIRE(WIFEXITED(state) && WEXITSTATUS(state) == 0);
}

#endif // FSDP_TEST_FAKECUDA_FAKECUDATEST_H
