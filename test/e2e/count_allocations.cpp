//===- count_allocations.cpp - Who asks for memory during a step ----------===//
//
// A library for LD_PRELOAD. It stands between fsdp-run and rt::runProgram, and
// counts per loaded library the allocations of all threads inside each program
// ("inside") and from its end to the start of the next ("after"), and lists
// what is mapped. At exit it writes one JSON object to $FSDP_ALLOCATIONS.RANK.
//
// An allocation belongs to the innermost caller that is not the C or C++
// library: a std::string that grows in the runtime is the runtime's.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Core/Context.h"
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <dnnl.h>
#include <execinfo.h>
#include <mutex>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// The C library's own names, so that nothing has to be looked up before the
// first allocation.
extern "C" {
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
}

namespace {

constexpr int kMaxRuns = 512, kMaxLibraries = 64, kMaxMappings = 1024;

struct Count {
  uint64_t calls, bytes, largest;
};
enum Window { kInside, kAfter };
struct Run {
  int program;
  uint64_t executes; // of oneDNN's primitives
  Count counts[2][kMaxLibraries];
};
struct Mapping {
  int library;
  uint64_t bytes;
};

/// All state is static: counting must not allocate.
std::mutex mutex;
char libraries[kMaxLibraries][64]; // names, which outlive the libraries
Run runs[kMaxRuns];
Mapping mappings[kMaxMappings];
int libraryCount, runCount, mappingCount;
std::atomic<int> current{-1}; // index of the run, from its begin on
std::atomic<int> window{kAfter};

/// Set while this thread counts, because looking at its stack may allocate.
thread_local bool counting __attribute__((tls_model("initial-exec")));

const char *nameOf(const char *path) {
  const char *slash = std::strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/// Whether `path` only passes on what its caller wants.
bool isStandardLibrary(const char *path) {
  const char *name = nameOf(path);
  for (const char *prefix : {"libc.so", "libstdc++.so", "libgcc_s.so",
                             "ld-linux", "libfsdp_count_allocations"})
    if (std::strncmp(name, prefix, std::strlen(prefix)) == 0)
      return true;
  return false;
}

/// The library behind the present call; the caller holds the mutex.
int findLibrary() {
  void *frames[32];
  int depth = backtrace(frames, 32);
  const char *name = "unknown";
  for (int i = 0; i < depth; ++i) {
    Dl_info info;
    if (!dladdr(frames[i], &info) || !info.dli_fname ||
        isStandardLibrary(info.dli_fname))
      continue;
    name = nameOf(info.dli_fname);
    break;
  }
  for (int i = 0; i < libraryCount; ++i)
    if (std::strncmp(libraries[i], name, sizeof libraries[i] - 1) == 0)
      return i;
  if (libraryCount == kMaxLibraries)
    std::abort();
  std::strncpy(libraries[libraryCount], name, sizeof libraries[0] - 1);
  return libraryCount++;
}

/// Calls record(library) unless this thread is already counting.
template <typename Record> void count(Record record) {
  if (counting)
    return;
  counting = true;
  int error = errno;
  {
    std::lock_guard<std::mutex> lock(mutex);
    record(findLibrary());
  }
  errno = error;
  counting = false;
}

void *countAllocation(void *result, uint64_t bytes) {
  if (current < 0)
    return result;
  count([&](int library) {
    Count &c = runs[current].counts[window][library];
    ++c.calls;
    c.bytes += bytes;
    c.largest = std::max(c.largest, bytes);
  });
  return result;
}

void *map(void *address, size_t bytes, int protection, int flags, int file,
          off_t offset) {
  void *result = reinterpret_cast<void *>(
      syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
  count([&](int library) {
    if (mappingCount < kMaxMappings)
      mappings[mappingCount++] = {library, bytes};
  });
  return result;
}

} // namespace

//===----------------------------------------------------------------------===//
// What stands between
//===----------------------------------------------------------------------===//

extern "C" {
void *malloc(size_t bytes) {
  return countAllocation(__libc_malloc(bytes), bytes);
}
void *calloc(size_t count, size_t bytes) {
  return countAllocation(__libc_calloc(count, bytes), count * bytes);
}
void *realloc(void *old, size_t bytes) {
  return countAllocation(__libc_realloc(old, bytes), bytes);
}
void *memalign(size_t alignment, size_t bytes) {
  return countAllocation(__libc_memalign(alignment, bytes), bytes);
}
void *aligned_alloc(size_t alignment, size_t bytes) {
  return countAllocation(__libc_memalign(alignment, bytes), bytes);
}
int posix_memalign(void **result, size_t alignment, size_t bytes) {
  void *memory = countAllocation(__libc_memalign(alignment, bytes), bytes);
  if (!memory)
    return ENOMEM;
  *result = memory;
  return 0;
}
void *mmap(void *address, size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  return map(address, bytes, protection, flags, file, offset);
}
void *mmap64(void *address, size_t bytes, int protection, int flags, int file,
             off64_t offset) noexcept {
  return map(address, bytes, protection, flags, file, offset);
}
}

dnnl_status_t dnnl_primitive_execute(const_dnnl_primitive_t primitive,
                                     dnnl_stream_t stream, int count,
                                     const dnnl_exec_arg_t *arguments) {
  static auto next = reinterpret_cast<decltype(&dnnl_primitive_execute)>(
      dlsym(RTLD_NEXT, "dnnl_primitive_execute"));
  if (current >= 0)
    __atomic_fetch_add(&runs[current].executes, 1, __ATOMIC_RELAXED);
  return next(primitive, stream, count, arguments);
}

bool fsdp::rt::runProgram(Context &c, int index, std::string &error) {
  using Function = bool (*)(Context &, int, std::string &);
  static Function next = [] {
    // This function's own name in the symbol table leads to the next one.
    Dl_info info;
    dladdr(reinterpret_cast<void *>(&fsdp::rt::runProgram), &info);
    return reinterpret_cast<Function>(dlsym(RTLD_NEXT, info.dli_sname));
  }();
  if (runCount == kMaxRuns)
    std::abort();
  runs[runCount].program = index;
  window = kInside;
  current = runCount++;
  bool good = next(c, index, error);
  window = kAfter;
  return good;
}

//===----------------------------------------------------------------------===//
// Begin and end
//===----------------------------------------------------------------------===//

/// The first look at a stack loads the unwinder.
__attribute__((constructor)) static void warmUp() {
  void *frame;
  backtrace(&frame, 1);
}

static void writeCounts(std::FILE *file, const Count *counts) {
  const char *separator = "";
  for (int i = 0; i < libraryCount; ++i) {
    const Count &c = counts[i];
    if (c.calls == 0)
      continue;
    std::fprintf(file, "%s\"%s\": [%lu, %lu, %lu]", separator, libraries[i],
                 c.calls, c.bytes, c.largest);
    separator = ", ";
  }
}

__attribute__((destructor)) static void write() {
  const char *path = std::getenv("FSDP_ALLOCATIONS");
  if (!path || runCount == 0)
    return;
  counting = true;
  current = -1;
  const char *rank = std::getenv("RANK");
  if (!rank)
    rank = std::getenv("OMPI_COMM_WORLD_RANK");
  std::string mine = std::string(path) + "." + (rank ? rank : "0");
  std::FILE *file = std::fopen(mine.c_str(), "w");
  if (!file)
    return;
  std::fprintf(file, "{\"runs\": [");
  for (int i = 0; i < runCount; ++i) {
    std::fprintf(file, "%s\n{\"program\": %d, \"executes\": %lu, \"inside\": {",
                 i ? "," : "", runs[i].program, runs[i].executes);
    writeCounts(file, runs[i].counts[kInside]);
    std::fprintf(file, "}, \"after\": {");
    writeCounts(file, runs[i].counts[kAfter]);
    std::fprintf(file, "}}");
  }
  std::fprintf(file, "],\n\"mappings\": [");
  for (int i = 0; i < mappingCount; ++i)
    std::fprintf(file, "%s[\"%s\", %lu]", i ? ", " : "",
                 libraries[mappings[i].library], mappings[i].bytes);
  std::fprintf(file, "]}\n");
  std::fclose(file);
}
