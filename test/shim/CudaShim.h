//===- CudaShim.h - Runs CUDA kernels on the host ---------------*- C++ -*-===//
//
// Lets a C++ compiler build generated CUDA source, unchanged:
//
//   g++ -std=c++17 -ffp-contract=off -x c++ -include CudaShim.h step.cu
//
// A kernel that no GPU has run yet has then still been executed, with its own
// blocks, threads, shuffles and barriers. Blocks run one after the other. The
// threads of a block are coroutines that are switched where one waits for the
// others; one that does not wait is followed by the next without a switch.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_SHIM_CUDASHIM_H
#define FSDP_TEST_SHIM_CUDASHIM_H

#define FSDP_CUDA_SHIM
#define __global__
#define __grid_constant__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
// Blocks run one after the other, so one instance serves them all.
#define __shared__ static

#include "ShimKernel.h"
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <ucontext.h>
#include <utility>
#include <vector>

struct ShimIndex {
  unsigned x = 0, y = 0, z = 0;
};
inline ShimIndex threadIdx, blockIdx;

namespace shim {

/// Calls a body that outlives it. <functional> and <memory> would take a sixth
/// of the time in which a step compiles.
class Body {
public:
  template <typename F>
  Body(const F &body)
      : body(&body),
        call([](const void *f) { (*static_cast<const F *>(f))(); }) {}
  void operator()() const { call(body); }

private:
  const void *body;
  void (*call)(const void *);
};

/// The threads of one block. They run in order on one stack until one of them
/// waits; that one keeps the stack, and those after it go on on another.
class Block {
public:
  ~Block() {
    for (Stack *stack : stacks)
      delete stack;
  }

  /// Runs body() once per thread of an x by y block until all have returned.
  void run(unsigned x, unsigned y, const Body &body) {
    threads.assign(size_t(x) * y, Thread());
    for (size_t i = 0; i < threads.size(); ++i)
      threads[i].index = {unsigned(i) % x, unsigned(i) / x, 0};
    running = &body;
    alive = threads.size();
    for (next = 0; next < threads.size();)
      resume(takeStack());
    while (alive > 0)
      for (size_t i = 0; i < threads.size(); ++i)
        if (!threads[i].done) {
          current = i;
          resume(threads[i].stack);
        }
  }

  /// Waits until every thread that still runs has come here as often.
  void barrier() {
    unsigned mine = passed;
    ++arrived;
    passIfAllHere();
    do
      yield();
    while (passed == mine);
  }

  /// Gives `value` to the others of the warp and takes that of `lane`, which
  /// must make the same exchange.
  template <typename T> T exchange(unsigned mask, T value, unsigned lane) {
    size_t me = current;
    Thread &t = threads[me];
    // Two slots: nobody is two exchanges ahead of a partner.
    unsigned turn = ++t.exchanges;
    std::memcpy(&t.slot[turn % 2], &value, sizeof value);
    yield();
    const Thread &from = threads[me / 32 * 32 + lane];
    bool isPartner = (mask >> lane & 1u) && (mask >> (me % 32) & 1u) &&
                     from.exchanges >= turn && from.exchanges <= turn + 1;
    if (!isPartner) {
      std::fprintf(stderr, "shuffle with a thread that takes no part in it\n");
      std::abort();
    }
    std::memcpy(&value, &from.slot[turn % 2], sizeof value);
    return value;
  }

private:
  static constexpr size_t kStackBytes = 64 << 10;
  struct Stack {
    char memory[kStackBytes];
    ucontext_t start;
    jmp_buf at;
    bool hasStarted = false;
  };
  struct Thread {
    ShimIndex index;
    Stack *stack = nullptr; // of a thread that waits
    bool done = false;
    unsigned exchanges = 0;
    uint64_t slot[2];
  };

  Stack *takeStack() {
    if (unused.empty()) {
      stacks.push_back(new Stack);
      return stacks.back();
    }
    Stack *stack = unused.back();
    unused.pop_back();
    return stack;
  }

  /// Goes on on `stack` until it waits or has nothing more to do. Jumps are
  /// cheaper than swapcontext, which asks the kernel for the signal mask.
  void resume(Stack *stack) {
    onStack = stack;
    if (_setjmp(scheduler))
      return;
    if (stack->hasStarted)
      _longjmp(stack->at, 1);
    stack->hasStarted = true;
    getcontext(&stack->start);
    stack->start.uc_stack.ss_sp = stack->memory;
    stack->start.uc_stack.ss_size = kStackBytes;
    makecontext(&stack->start, enter, 0);
    setcontext(&stack->start);
  }

  /// The life of a stack: threads that have not begun, one after the other,
  /// until there are no more.
  static void enter();
  void runThreads() {
    while (next < threads.size()) {
      current = next++;
      threadIdx = threads[current].index;
      (*running)();
      threads[current].done = true;
      --alive;
      passIfAllHere();
    }
  }

  void passIfAllHere() {
    if (arrived < alive || alive == 0)
      return;
    arrived = 0;
    ++passed;
  }

  void leave() {
    if (!_setjmp(onStack->at))
      _longjmp(scheduler, 1);
  }
  void yield() {
    size_t me = current;
    threads[me].stack = onStack;
    leave();
    threadIdx = threads[me].index;
  }

  std::vector<Thread> threads;
  size_t current = 0;            // the thread that runs
  size_t next = 0;               // the first that has not begun
  size_t alive = 0, arrived = 0; // arrived at the barrier
  unsigned passed = 0;           // barriers
  std::vector<Stack *> stacks;   // owned
  std::vector<Stack *> unused;
  Stack *onStack = nullptr;
  jmp_buf scheduler;
  const Body *running = nullptr;
};

inline Block block;

inline void Block::enter() {
  for (;;) {
    block.runThreads();
    block.unused.push_back(block.onStack);
    block.leave();
  }
}

} // namespace shim

namespace shim {

/// A GPU ends a kernel whose access is not aligned to its size.
inline void checkAlignment(const void *p, size_t bytes) {
  if (reinterpret_cast<uintptr_t>(p) % bytes == 0)
    return;
  std::fprintf(stderr, "an access of %zu bytes at %p\n", bytes, p);
  std::abort();
}
template <typename W> W load(const void *p) {
  checkAlignment(p, alignof(W));
  W words;
  std::memcpy(&words, p, sizeof words);
  return words;
}
template <typename W> void store(void *p, const W &words) {
  checkAlignment(p, alignof(W));
  std::memcpy(p, &words, sizeof words);
}

} // namespace shim

inline void __syncthreads() { shim::block.barrier(); }

// Threads run one at a time, so nothing comes between read and write.
template <typename T> T atomicMax(T *to, T value) {
  T old = *to;
  *to = old > value ? old : value;
  return old;
}
template <typename T> T atomicAdd(T *to, T value) {
  T old = *to;
  *to = old + value;
  return old;
}
template <typename T> T atomicOr(T *to, T value) {
  T old = *to;
  *to = old | value;
  return old;
}

/// The thread `offset` of the own group of `width` threads, in the warp.
inline unsigned shimLane(unsigned offset, int width) {
  return threadIdx.x % 32 / unsigned(width) * unsigned(width) + offset;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int step, int width) {
  return shim::block.exchange(
      mask, value, shimLane((threadIdx.x % width) ^ unsigned(step), width));
}

#include "fsdp/Runtime/CudaRows.h"

/// Where a program defines it, kernels of generated code are handed to it
/// instead of being run: `run` takes the kernel's `count` buffers.
extern "C" __attribute__((weak)) void
fsdp_shim_observe(const char *name, size_t count, const ShimKernel *run);

namespace fsdp::rt::gpu {

template <typename... T>
void start(Context &, Stream, const char *name, void (*kernel)(T *...),
           const LaunchShape &shape, Ptrs args);
template <typename... P>
void startWith(Context &, Stream, const char *, void (*kernel)(P...),
               const LaunchShape &shape, typename Same<P>::type... args);

// Who calls kernels alone has no use for what programs call, which takes longer
// to compile than kernels do.
#ifndef FSDP_SHIM_KERNELS_ALONE
template <typename... T, size_t... I>
void callKernel(void (*kernel)(T *...), const Ptr *args,
                std::index_sequence<I...>) {
  kernel(reinterpret_cast<T *>(args[I])...);
}

/// Runs thread() as every thread of every block.
template <typename Thread>
void runBlocks(const LaunchShape &shape, const Thread &thread) {
  for (blockIdx.x = 0; blockIdx.x < shape.blocks; ++blockIdx.x) {
    if (!shape.independent) {
      shim::block.run(shape.x, shape.y, thread);
      continue;
    }
    for (threadIdx = {}; threadIdx.x < shape.x; ++threadIdx.x)
      thread();
  }
}

template <typename... T>
void start(Context &, Stream, const char *name, void (*kernel)(T *...),
           const LaunchShape &shape, Ptrs args) {
  if (args.size() != sizeof...(T)) {
    std::fprintf(stderr, "%s takes another number of buffers\n", name);
    std::abort();
  }
  ShimKernel run([=](const Ptr *buffers) {
    runBlocks(shape, [&] {
      callKernel(kernel, buffers, std::index_sequence_for<T...>());
    });
  });
  if (fsdp_shim_observe)
    fsdp_shim_observe(name, args.size(), &run);
  else
    run(args.begin());
}

template <typename... P>
void startWith(Context &, Stream, const char *, void (*kernel)(P...),
               const LaunchShape &shape, typename Same<P>::type... args) {
  runBlocks(shape, [&] { kernel(args...); });
}

#endif // FSDP_SHIM_KERNELS_ALONE

} // namespace fsdp::rt::gpu

#endif // FSDP_TEST_SHIM_CUDASHIM_H
