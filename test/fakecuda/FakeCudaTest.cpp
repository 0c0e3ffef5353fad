//===- FakeCudaTest.cpp - What programs see of the stand-in device --------===//
//
// Run by fsdp-fake-device. Every body runs in a process of its own, since an
// error of the device ends all work of a process; it says with its exit status
// and on stderr what it saw.
//
//===----------------------------------------------------------------------===//
#include "FakeCudaTest.h"
#include <csignal>
#include <cstring>
#include <cublasLt.h>
#include <thread>
#include <vector>

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

TEST(FakeCuda, PageableBytesAreTakenAtTheCall) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(1);
    char byte = 1;
    CUDA(cudaMemcpyAsync(memory, &byte, 1, cudaMemcpyHostToDevice, stream));
    byte = 2;
    CUDA(cudaStreamSynchronize(stream));
    REQUIRE(byteAt(memory) == 1);
  });
}

TEST(FakeCuda, PinnedBytesAreTakenLate) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(1), *pinned;
    CUDA(cudaMallocHost(reinterpret_cast<void **>(&pinned), 1));
    *pinned = 1;
    CUDA(cudaMemcpyAsync(memory, pinned, 1, cudaMemcpyHostToDevice, stream));
    *pinned = 2;
    CUDA(cudaStreamSynchronize(stream));
    REQUIRE(byteAt(memory) == 2);
    CUDA(cudaFreeHost(pinned));
  });
}

TEST(FakeCuda, TheHostCannotTouchDeviceMemory) {
  auto body = [] {
    volatile char *memory = allocate(1);
    *memory = 1;
  };
  EXPECT_EXIT(body(), testing::KilledBySignal(SIGSEGV), "");
}

TEST(FakeCuda, NewMemoryIsNotZero) {
  expectGood([] { REQUIRE(byteAt(allocate(1)) != 0); });
}

TEST(FakeCuda, WorkOutsideOfMemoryIsAnError) {
  expectBad("fill: 65 bytes at 0x[0-9a-f]* are not in one allocation", [] {
    cudaStream_t stream = makeStream();
    CUDA(cudaMemsetAsync(allocate(64), 0, 65, stream));
    CUDA(cudaStreamSynchronize(stream));
  });
}

TEST(FakeCuda, ACopyIsOfTheKindThatItSays) {
  expectBad("not of the kind it says", [] {
    char byte = 0;
    CUDA(cudaMemcpy(allocate(1), &byte, 1, cudaMemcpyDeviceToDevice));
  });
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

TEST(FakeCuda, StreamsHaveNoOrder) {
  expectGood([] {
    cudaStream_t a = makeStream(), b = makeStream();
    int count = countFirstLast([&](char *memory) {
      CUDA(cudaMemsetAsync(memory, 1, 1, a));
      CUDA(cudaMemsetAsync(memory, 2, 1, b));
    });
    REQUIRE(count > 0 && count < kTries);
  });
}

TEST(FakeCuda, TheLegacyStreamHasNoOrderEither) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    int count = countFirstLast([&](char *memory) {
      CUDA(cudaMemset(memory, 1, 1));
      CUDA(cudaMemsetAsync(memory, 2, 1, stream));
    });
    REQUIRE(count > 0 && count < kTries);
  });
}

TEST(FakeCuda, AWaitMakesOrder) {
  expectGood([] {
    cudaStream_t a = makeStream(), b = makeStream();
    cudaEvent_t event = makeEvent();
    REQUIRE(countFirstLast([&](char *memory) {
              CUDA(cudaMemsetAsync(memory, 1, 1, a));
              CUDA(cudaEventRecord(event, a));
              CUDA(cudaStreamWaitEvent(b, event, 0));
              CUDA(cudaMemsetAsync(memory, 2, 1, b));
            }) == 0);
  });
}

TEST(FakeCuda, AWaitIsForTheRecordBeforeIt) {
  expectGood([] {
    cudaStream_t a = makeStream(), b = makeStream();
    cudaEvent_t event = makeEvent();
    int count = countFirstLast([&](char *memory) {
      CUDA(cudaEventRecord(event, a));
      CUDA(cudaStreamWaitEvent(b, event, 0));
      CUDA(cudaMemsetAsync(memory, 1, 1, a));
      // A later record of the same event is none of the wait's business.
      CUDA(cudaEventRecord(event, a));
      CUDA(cudaMemsetAsync(memory, 2, 1, b));
    });
    REQUIRE(count > 0 && count < kTries);
  });
}

//===----------------------------------------------------------------------===//
// Between ranks
//===----------------------------------------------------------------------===//

TEST(FakeCuda, RanksGatherAndExchange) {
  expectGood([] {
    asTwoRanks([](const TestRank &r) {
      int other = 1 - r.rank;
      char *mine = r.memory + size_t(r.rank) * kBytes;
      CUDA(cudaMemsetAsync(mine, 5 + r.rank, kBytes, r.stream));
      // In place; then what the other has given goes back to it.
      NCCL(ncclAllGather(mine, r.memory, kBytes, ncclInt8, r.comm, r.stream));
      char *back = r.memory + 2 * kBytes;
      NCCL(ncclGroupStart());
      NCCL(ncclSend(r.memory + size_t(other) * kBytes, kBytes, ncclInt8, other,
                    r.comm, r.stream));
      NCCL(ncclRecv(back, kBytes, ncclInt8, other, r.comm, r.stream));
      NCCL(ncclGroupEnd());
      CUDA(cudaStreamSynchronize(r.stream));
      REQUIRE(byteAt(r.memory + size_t(other) * kBytes) == 5 + other);
      REQUIRE(byteAt(back) == 5 + r.rank);
      NCCL(ncclCommDestroy(r.comm));
    });
  });
}

TEST(FakeCuda, SizesMustAgree) {
  expectBad("disagree: tensor 0 has 6[34] and 6[34] bytes", [] {
    asTwoRanks([](const TestRank &r) {
      NCCL(ncclAllGather(r.memory + 2 * kBytes, r.memory,
                         kBytes - size_t(r.rank), ncclInt8, r.comm, r.stream));
      CUDA(cudaStreamSynchronize(r.stream));
    });
  });
}

TEST(FakeCuda, SumsOverRanks) {
  expectGood([] {
    asTwoRanks([](const TestRank &r) {
      auto *values = reinterpret_cast<float *>(r.memory);
      float mine[] = {1, 2, 3, 4, 5}, got[5] = {};
      for (float &value : mine)
        value += 10 * float(r.rank);
      CUDA(cudaMemcpyAsync(values, mine, sizeof mine, cudaMemcpyHostToDevice,
                           r.stream));
      // One after the other: what both ranks have, a part each, and what rank
      // 1 alone gets.
      NCCL(ncclGroupStart());
      NCCL(ncclAllReduce(values, values + 16, 2, ncclFloat32, ncclSum, r.comm,
                         r.stream));
      NCCL(ncclReduceScatter(values + 2, values + 18, 1, ncclFloat32, ncclSum,
                             r.comm, r.stream));
      NCCL(ncclReduce(values + 4, values + 19, 1, ncclFloat32, ncclSum, 1,
                      r.comm, r.stream));
      NCCL(ncclGroupEnd());
      // In place, of integers.
      NCCL(ncclAllReduce(values, values, 1, ncclInt64, ncclSum, r.comm,
                         r.stream));
      CUDA(cudaStreamSynchronize(r.stream));
      CUDA(cudaMemcpy(got, values + 16, sizeof got, cudaMemcpyDeviceToHost));
      REQUIRE(got[0] == 12 && got[1] == 14);
      REQUIRE(got[2] == (r.rank == 0 ? 16 : 18));
      REQUIRE((got[3] == 20) == (r.rank == 1));
      int64_t first[2], sum;
      float both[2][2] = {{1, 2}, {11, 12}};
      std::memcpy(first, both, sizeof first);
      CUDA(cudaMemcpy(&sum, values, sizeof sum, cudaMemcpyDeviceToHost));
      REQUIRE(sum == first[0] + first[1]);
    });
  });
}

TEST(FakeCuda, RanksAddTheSame) {
  expectBad("disagree: reductions in number, kind, type, root or size", [] {
    asTwoRanks([](const TestRank &r) {
      NCCL(ncclReduce(r.memory, r.memory + 2 * kBytes, 1, ncclFloat32, ncclSum,
                      r.rank, r.comm, r.stream));
      CUDA(cudaStreamSynchronize(r.stream));
    });
  });
}

TEST(FakeCuda, MemoryOfTransfersIsRegistered) {
  expectBad("what is sent: memory that is not registered", [] {
    asTwoRanks([](const TestRank &r) {
      NCCL(ncclAllGather(allocate(kBytes), r.memory, kBytes, ncclInt8, r.comm,
                         r.stream));
      CUDA(cudaStreamSynchronize(r.stream));
    });
  });
}

TEST(FakeCuda, PlacesInASymmetricWindowAreTheSame) {
  expectBad("disagree: places in a symmetric window", [] {
    asTwoRanks([](const TestRank &r) {
      char *memory = allocate(4 * kBytes);
      ncclWindow_t window = nullptr;
      NCCL(ncclCommWindowRegister(r.comm, memory, 4 * kBytes, &window,
                                  NCCL_WIN_COLL_SYMMETRIC));
      NCCL(ncclAllGather(memory + size_t(r.rank) * kBytes, memory + 2 * kBytes,
                         kBytes, ncclInt8, r.comm, r.stream));
      CUDA(cudaStreamSynchronize(r.stream));
    });
  });
}

TEST(FakeCuda, ADeadlockIsReported) {
  expectBad(
      "deadlock(.|\n)*call 0 waits for rank 1, whose call 0 does not answer it",
      [] {
        asTwoRanks([](const TestRank &r) {
          // Both receive before they send.
          NCCL(ncclRecv(r.memory, kBytes, ncclInt8, 1 - r.rank, r.comm,
                        r.stream));
          NCCL(ncclSend(r.memory, kBytes, ncclInt8, 1 - r.rank, r.comm,
                        r.stream));
          CUDA(cudaStreamSynchronize(r.stream));
        });
      });
}

TEST(FakeCuda, AWaitForARankThatHasEndedIsADeadlock) {
  expectBad("deadlock(.|\n)*communicator [0-9]*, call 0 waits for rank 1 of "
            "communicator [0-9]*, whose process has ended",
            [] {
              asTwoRanks([](const TestRank &r) {
                if (r.rank == 1)
                  std::exit(0);
                NCCL(ncclRecv(r.memory, kBytes, ncclInt8, 1, r.comm, r.stream));
                CUDA(cudaStreamSynchronize(r.stream));
              });
            });
}

TEST(FakeCuda, AnAbortEndsAWait) {
  expectGood([] {
    asTwoRanks([](const TestRank &r) {
      if (r.rank == 1)
        std::exit(0);
      NCCL(ncclRecv(r.memory, kBytes, ncclInt8, 1, r.comm, r.stream));
      REQUIRE(cudaStreamQuery(r.stream) == cudaErrorNotReady);
      NCCL(ncclCommAbort(r.comm));
      CUDA(cudaStreamSynchronize(r.stream));
    });
  });
}

// As a watchdog does, while the host of the stream waits.
TEST(FakeCuda, AnAbortEndsTheWaitOfAnotherThread) {
  expectGood([] {
    int isDone[2];
    REQUIRE(pipe(isDone) == 0);
    asTwoRanks([&](const TestRank &r) {
      char byte = 0;
      if (r.rank == 1) {
        REQUIRE(read(isDone[0], &byte, 1) == 1);
        std::exit(0);
      }
      NCCL(ncclRecv(r.memory, kBytes, ncclInt8, 1, r.comm, r.stream));
      std::thread watchdog([&] {
        usleep(50 * 1000);
        ncclResult_t found = ncclSuccess;
        NCCL(ncclCommGetAsyncError(r.comm, &found));
        NCCL(found);
        NCCL(ncclCommAbort(r.comm));
      });
      CUDA(cudaStreamSynchronize(r.stream));
      watchdog.join();
      REQUIRE(write(isDone[1], &byte, 1) == 1);
    });
  });
}

//===----------------------------------------------------------------------===//
// Words of pinned memory
//===----------------------------------------------------------------------===//

using WriteValue = int(cudaStream_t, unsigned long long, uint64_t, unsigned);

static WriteValue *findWriteValue() {
  void *found = nullptr;
  cudaDriverEntryPointQueryResult result{};
  CUDA(cudaGetDriverEntryPointByVersion("cuStreamWriteValue64", &found,
                                        CUDART_VERSION, cudaEnableDefault,
                                        &result));
  REQUIRE(result == cudaDriverEntryPointSuccess);
  return reinterpret_cast<WriteValue *>(found);
}

TEST(FakeCuda, AWordIsWrittenAtItsPlaceInAStream) {
  expectGood([] {
    WriteValue *writeValue = findWriteValue();
    cudaStream_t stream = makeStream();
    uint64_t *word;
    CUDA(cudaMallocHost(reinterpret_cast<void **>(&word), sizeof *word));
    auto address = reinterpret_cast<uintptr_t>(word);
    for (uint64_t i = 1; i <= kTries; ++i) {
      REQUIRE(writeValue(stream, address, i, 0) == 0);
      REQUIRE(writeValue(stream, address, i << 40, 0) == 0);
      CUDA(cudaStreamSynchronize(stream));
      REQUIRE(*word == i << 40);
    }
  });
}

TEST(FakeCuda, AWordIsPinnedMemory) {
  expectBad("cuStreamWriteValue64 elsewhere than to a word", [] {
    auto address = reinterpret_cast<uintptr_t>(allocate(8));
    CUDA(cudaError_t(findWriteValue()(makeStream(), address, 1, 0)));
  });
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

namespace {
/// C = A B of square matrices, all column-major.
struct Product {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t operation;
  cublasLtMatrixLayout_t layout;
  cublasLtMatmulPreference_t preference;
  cublasLtMatmulAlgo_t algorithm;
  /// What C is multiplied by before the product is added to it.
  float beta = 0;

  explicit Product(uint64_t size) {
    REQUIRE(!cublasLtCreate(&handle));
    REQUIRE(
        !cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    REQUIRE(!cublasLtMatrixLayoutCreate(&layout, CUDA_R_32F, size, size,
                                        int64_t(size)));
    REQUIRE(!cublasLtMatmulPreferenceCreate(&preference));
    allow(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
    cublasLtMatmulHeuristicResult_t result;
    REQUIRE(choose(1, &result) == 1);
    algorithm = result.algo;
  }
  void allow(uint32_t reductions) const {
    REQUIRE(!cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
        sizeof reductions));
  }
  template <typename T>
  void set(cublasLtMatmulDescAttributes_t name, T value) const {
    REQUIRE(
        !cublasLtMatmulDescSetAttribute(operation, name, &value, sizeof value));
  }
  /// How many algorithms there are, at most `count`; 0 if none is chosen.
  int choose(int count, cublasLtMatmulHeuristicResult_t *results) const {
    int found = 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
        handle, operation, layout, layout, layout, layout, preference, count,
        results, &found);
    return status == CUBLAS_STATUS_SUCCESS ? found : 0;
  }
  cublasStatus_t run(const cublasLtMatmulAlgo_t &with, char *a, char *b,
                     char *c, cudaStream_t stream, void *workspace = nullptr,
                     size_t workspaceBytes = 0) const {
    float one = 1;
    return cublasLtMatmul(handle, operation, &one, a, layout, b, layout, &beta,
                          c, layout, c, layout, &with, workspace,
                          workspaceBytes, stream);
  }
};
} // namespace

TEST(FakeCuda, AMatmulIsComputed) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *a = allocate(16), *b = allocate(16), *c = allocate(16);
    const float x[] = {1, 2, 3, 4}, y[] = {5, 6, 7, 8};
    CUDA(cudaMemcpyAsync(a, x, 16, cudaMemcpyHostToDevice, stream));
    CUDA(cudaMemcpyAsync(b, y, 16, cudaMemcpyHostToDevice, stream));
    Product product(2);
    REQUIRE(!product.run(product.algorithm, a, b, c, stream));
    CUDA(cudaStreamSynchronize(stream));
    float z[4];
    CUDA(cudaMemcpy(z, c, 16, cudaMemcpyDeviceToHost));
    // [1 3; 2 4] [5 7; 6 8]
    REQUIRE(z[0] == 23 && z[1] == 34 && z[2] == 31 && z[3] == 46);
    product.beta = 1;
    REQUIRE(!product.run(product.algorithm, a, b, c, stream));
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaMemcpy(z, c, 16, cudaMemcpyDeviceToHost));
    REQUIRE(z[0] == 46 && z[1] == 68 && z[2] == 62 && z[3] == 92);
    product.beta = 2;
    REQUIRE(product.run(product.algorithm, a, b, c, stream) ==
            CUBLAS_STATUS_NOT_SUPPORTED);
  });
}

TEST(FakeCuda, AnAlgorithmIsForOneProduct) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(64);
    Product small(2), large(4);
    REQUIRE(small.run(large.algorithm, memory, memory, memory, stream) ==
            CUBLAS_STATUS_NOT_SUPPORTED);
  });
}

TEST(FakeCuda, AMatmulKeepsTheAlignmentOfItsAlgorithm) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(64);
    Product product(2);
    REQUIRE(product.run(product.algorithm, memory + 16, memory, memory,
                        stream) == CUBLAS_STATUS_NOT_SUPPORTED);
  });
}

TEST(FakeCuda, PartialSumsKeepTheirType) {
  expectGood([] {
    cublasLtMatmulHeuristicResult_t result;
    Product product(2);
    for (uint32_t reductions :
         {uint32_t(CUBLASLT_REDUCTION_SCHEME_MASK),
          uint32_t(CUBLASLT_REDUCTION_SCHEME_INPLACE),
          uint32_t(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)}) {
      product.allow(reductions);
      REQUIRE(product.choose(1, &result) == 0);
    }
    product.allow(CUBLASLT_REDUCTION_SCHEME_NONE);
    REQUIRE(product.choose(1, &result) == 1);
  });
}

TEST(FakeCuda, AnAlgorithmKnowsTheAlignmentOfTheBias) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(64);
    cublasLtMatmulHeuristicResult_t result;
    Product product(2);
    product.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
    product.set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_32F);
    REQUIRE(product.choose(1, &result) == 0);
    product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory + 16);
    REQUIRE(product.choose(1, &result) == 1);
    product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory + 8);
    REQUIRE(product.run(result.algo, memory, memory, memory, stream) ==
            CUBLAS_STATUS_NOT_SUPPORTED);
    product.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, memory + 48);
    REQUIRE(!product.run(result.algo, memory, memory, memory, stream));
  });
}

TEST(FakeCuda, TheFirstOfSeveralAlgorithmsDoesNotWork) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(64);
    cublasLtMatmulHeuristicResult_t results[4];
    Product product(2);
    REQUIRE(product.choose(4, results) == 3);
    REQUIRE(results[0].state != CUBLAS_STATUS_SUCCESS);
    REQUIRE(product.run(results[0].algo, memory, memory, memory, stream) ==
            CUBLAS_STATUS_NOT_SUPPORTED);
    for (int i : {1, 2}) {
      REQUIRE(results[i].state == CUBLAS_STATUS_SUCCESS);
      REQUIRE(!product.run(results[i].algo, memory, memory, memory, stream));
    }
  });
}

TEST(FakeCuda, WorkspaceBytesNeedAWorkspace) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(64);
    Product product(2);
    const cublasLtMatmulAlgo_t &algorithm = product.algorithm;
    REQUIRE(product.run(algorithm, memory, memory, memory, stream, nullptr,
                        1) == CUBLAS_STATUS_NOT_SUPPORTED);
    REQUIRE(
        !product.run(algorithm, memory, memory, memory, stream, nullptr, 0));
  });
}
