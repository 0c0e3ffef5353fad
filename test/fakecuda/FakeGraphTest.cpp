//===- FakeGraphTest.cpp - Captures and graphs on the stand-in device -----===//
#include "FakeCudaTest.h"
#include <thread>

//===----------------------------------------------------------------------===//
// Help
//===----------------------------------------------------------------------===//

static void begin(cudaStream_t stream) {
  CUDA(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
}

static cudaGraphExec_t end(cudaStream_t stream) {
  cudaGraph_t graph;
  CUDA(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t executable;
  CUDA(cudaGraphInstantiate(&executable, graph, 0));
  CUDA(cudaGraphDestroy(graph));
  CUDA(cudaGraphUpload(executable, stream));
  return executable;
}

static cudaGraphExec_t capture(cudaStream_t stream,
                               const std::function<void()> &issue) {
  begin(stream);
  issue();
  return end(stream);
}

/// `to` waits for what is on `from`.
static void order(cudaStream_t from, cudaStream_t to) {
  cudaEvent_t event = makeEvent();
  CUDA(cudaEventRecord(event, from));
  CUDA(cudaStreamWaitEvent(to, event, 0));
}

/// A call must be refused with this error, and so must the end of the capture,
/// because it is invalid.
static void
expectInvalid(cudaError_t error,
              const std::function<cudaError_t(cudaStream_t)> &call) {
  expectGood([&] {
    cudaStream_t stream = makeStream();
    begin(stream);
    REQUIRE(call(stream) == error);
    REQUIRE(cudaMemsetAsync(allocate(0), 0, 1, stream) ==
            cudaErrorStreamCaptureInvalidated);
    cudaStreamCaptureStatus state;
    CUDA(cudaStreamIsCapturing(stream, &state));
    REQUIRE(state == cudaStreamCaptureStatusInvalidated);
    cudaGraph_t graph;
    REQUIRE(cudaStreamEndCapture(stream, &graph) ==
            cudaErrorStreamCaptureInvalidated);
    // Then the stream is as before.
    CUDA(cudaStreamSynchronize(stream));
  });
}

//===----------------------------------------------------------------------===//
// What a graph does
//===----------------------------------------------------------------------===//

TEST(FakeGraph, WhatIsCapturedRunsWhenItIsLaunched) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(1);
    CUDA(cudaMemsetAsync(memory, 1, 1, stream));
    cudaGraphExec_t graph =
        capture(stream, [&] { CUDA(cudaMemsetAsync(memory, 2, 1, stream)); });
    CUDA(cudaStreamSynchronize(stream));
    REQUIRE(byteAt(memory) == 1);
    for (int launch = 0; launch < 2; ++launch) {
      CUDA(cudaMemsetAsync(memory, 1, 1, stream));
      CUDA(cudaGraphLaunch(graph, stream));
      CUDA(cudaStreamSynchronize(stream));
      REQUIRE(byteAt(memory) == 2);
    }
    CUDA(cudaGraphExecDestroy(graph));
  });
}

TEST(FakeGraph, PinnedBytesAreThoseOfTheLaunch) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    char *memory = allocate(1), *pinned;
    CUDA(cudaMallocHost(reinterpret_cast<void **>(&pinned), 1));
    *pinned = 1;
    cudaGraphExec_t graph = capture(stream, [&] {
      CUDA(cudaMemcpyAsync(memory, pinned, 1, cudaMemcpyHostToDevice, stream));
    });
    for (char byte = 2; byte < 4; ++byte) {
      *pinned = byte;
      CUDA(cudaGraphLaunch(graph, stream));
      CUDA(cudaStreamSynchronize(stream));
      REQUIRE(byteAt(memory) == byte);
    }
  });
}

/// How often the first of two fills comes last, in launches of one graph, if
/// `b` has waited for `a` or not.
static int countFirstLastInGraph(bool waits) {
  cudaStream_t a = makeStream(), b = makeStream();
  cudaGraphExec_t graph = nullptr;
  int count = countFirstLast([&](char *memory) {
    if (!graph)
      graph = capture(a, [&] {
        order(a, b); // the fork
        CUDA(cudaMemsetAsync(memory, 1, 1, a));
        if (waits)
          order(a, b);
        CUDA(cudaMemsetAsync(memory, 2, 1, b));
        order(b, a); // the join
      });
    CUDA(cudaGraphLaunch(graph, a));
  });
  return count;
}

TEST(FakeGraph, OnlyItsEdgesAreOrder) {
  expectGood([] {
    int count = countFirstLastInGraph(/*waits=*/false);
    REQUIRE(count > 0 && count < kTries);
  });
}

TEST(FakeGraph, ACapturedWaitIsAnEdge) {
  expectGood([] { REQUIRE(countFirstLastInGraph(/*waits=*/true) == 0); });
}

TEST(FakeGraph, WhatComesAfterALaunchIsAfterAllOfIt) {
  expectGood([] {
    cudaStream_t stream = makeStream(), forked = makeStream();
    cudaGraphExec_t graph = nullptr;
    REQUIRE(countFirstLast([&](char *memory) {
              if (!graph)
                graph = capture(stream, [&] {
                  order(stream, forked);
                  CUDA(cudaMemsetAsync(memory, 1, 1, forked));
                  order(forked, stream);
                });
              CUDA(cudaGraphLaunch(graph, stream));
              CUDA(cudaMemsetAsync(memory, 2, 1, stream));
            }) == 0);
  });
}

TEST(FakeGraph, TransfersOfRanksMeetInEveryLaunch) {
  expectGood([] {
    asTwoRanks([](const TestRank &r) {
      char *mine = r.memory, *theirs = r.memory + kBytes;
      cudaGraphExec_t graph = capture(r.stream, [&] {
        NCCL(ncclGroupStart());
        NCCL(ncclSend(mine, kBytes, ncclInt8, 1 - r.rank, r.comm, r.stream));
        NCCL(ncclRecv(theirs, kBytes, ncclInt8, 1 - r.rank, r.comm, r.stream));
        NCCL(ncclGroupEnd());
      });
      for (int launch = 0; launch < 3; ++launch) {
        CUDA(cudaMemsetAsync(mine, 10 * launch + r.rank, kBytes, r.stream));
        CUDA(cudaGraphLaunch(graph, r.stream));
        CUDA(cudaStreamSynchronize(r.stream));
        REQUIRE(byteAt(theirs) == 10 * launch + 1 - r.rank);
      }
      NCCL(ncclCommDestroy(r.comm));
    });
  });
}

//===----------------------------------------------------------------------===//
// What is refused under capture
//===----------------------------------------------------------------------===//

TEST(FakeGraph, ACapturedStreamIsNotAwaitedOrAsked) {
  expectInvalid(cudaErrorStreamCaptureUnsupported, cudaStreamSynchronize);
  expectInvalid(cudaErrorStreamCaptureUnsupported, cudaStreamQuery);
  expectInvalid(cudaErrorStreamCaptureUnsupported,
                [](cudaStream_t) { return cudaDeviceSynchronize(); });
}

TEST(FakeGraph, ACapturedEventIsNotAwaitedOrAsked) {
  for (auto *call : {cudaEventSynchronize, cudaEventQuery})
    expectInvalid(cudaErrorCapturedEvent, [&](cudaStream_t stream) {
      cudaEvent_t event = makeEvent();
      CUDA(cudaEventRecord(event, stream));
      return call(event);
    });
}

TEST(FakeGraph, TheLegacyStreamIsNotUsed) {
  expectInvalid(cudaErrorStreamCaptureImplicit, [](cudaStream_t) {
    return cudaMemset(reinterpret_cast<void *>(64), 0, 1);
  });
}

TEST(FakeGraph, NothingIsAllocated) {
  void *memory;
  expectInvalid(cudaErrorStreamCaptureUnsupported,
                [&](cudaStream_t) { return cudaMalloc(&memory, 1); });
  expectInvalid(cudaErrorStreamCaptureUnsupported,
                [&](cudaStream_t) { return cudaMallocHost(&memory, 1); });
}

TEST(FakeGraph, AnotherThreadMayAllocate) {
  expectGood([] {
    cudaStream_t stream = makeStream();
    begin(stream);
    std::thread([] { allocate(1); }).join();
    end(stream);
  });
}

TEST(FakeGraph, PageableMemoryIsNotCopied) {
  static char byte;
  static char *memory;
  expectGood([] {
    memory = allocate(1);
    cudaStream_t stream = makeStream();
    begin(stream);
    REQUIRE(cudaMemcpyAsync(memory, &byte, 1, cudaMemcpyHostToDevice, stream) ==
            cudaErrorStreamCaptureUnsupported);
  });
}

TEST(FakeGraph, WorkBeforeTheCaptureIsNotAwaited) {
  expectInvalid(cudaErrorStreamCaptureIsolation, [](cudaStream_t stream) {
    cudaEvent_t event = makeEvent();
    CUDA(cudaEventRecord(event, makeStream()));
    return cudaStreamWaitEvent(stream, event, 0);
  });
}

TEST(FakeGraph, CapturesDoNotMeet) {
  expectInvalid(cudaErrorStreamCaptureMerge, [](cudaStream_t stream) {
    cudaStream_t other = makeStream();
    begin(other);
    cudaEvent_t event = makeEvent();
    CUDA(cudaEventRecord(event, other));
    return cudaStreamWaitEvent(stream, event, 0);
  });
}

TEST(FakeGraph, ARecordOfACaptureIsNoRecordAfterIt) {
  expectBad("event whose record was captured", [] {
    cudaStream_t stream = makeStream();
    cudaEvent_t event = makeEvent();
    capture(stream, [&] { CUDA(cudaEventRecord(event, stream)); });
    CUDA(cudaStreamWaitEvent(stream, event, 0));
    CUDA(cudaStreamSynchronize(stream));
  });
}

//===----------------------------------------------------------------------===//
// Ends of a capture
//===----------------------------------------------------------------------===//

static cudaError_t endOf(cudaStream_t stream) {
  cudaGraph_t graph;
  return cudaStreamEndCapture(stream, &graph);
}

TEST(FakeGraph, AForkedStreamMustBeJoined) {
  expectGood([] {
    cudaStream_t stream = makeStream(), forked = makeStream();
    begin(stream);
    order(stream, forked);
    REQUIRE(endOf(stream) == cudaErrorStreamCaptureUnjoined);
  });
}

TEST(FakeGraph, WorkAfterTheJoinMustBeJoinedToo) {
  expectGood([] {
    cudaStream_t stream = makeStream(), forked = makeStream();
    char *memory = allocate(1);
    begin(stream);
    order(stream, forked);
    order(forked, stream);
    CUDA(cudaMemsetAsync(memory, 1, 1, forked));
    REQUIRE(endOf(stream) == cudaErrorStreamCaptureUnjoined);
  });
}

TEST(FakeGraph, ACaptureEndsWhereItBegan) {
  expectInvalid(cudaErrorStreamCaptureUnmatched, [](cudaStream_t stream) {
    cudaStream_t forked = makeStream();
    order(stream, forked);
    return endOf(forked);
  });
  expectGood([] {
    cudaStream_t stream = makeStream();
    REQUIRE(endOf(stream) == cudaErrorIllegalState);
    begin(stream);
    std::thread([&] {
      REQUIRE(endOf(stream) == cudaErrorStreamCaptureWrongThread);
    }).join();
    end(stream);
  });
}
