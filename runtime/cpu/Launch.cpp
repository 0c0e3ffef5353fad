//===- Launch.cpp - Emitted kernels over rows or columns ------------------===//
#include "CpuContext.h"
#include "runtime/onednn/Parallel.h"

using namespace fsdp::rt;

void fsdp::rt::launch(Context &context, Stream stream, const char *name,
                      RowKernel kernel, int64_t rows, int64_t cols, Ptrs args) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a kernel");
  Timeline::Span span(c.timeline, stream, name, rows, cols);
  const Ptr *pointers = args.begin();
  parallelFor(c.threads, rows, cols, 1, [=](int64_t begin, int64_t end, int) {
    kernel(begin, end, pointers);
  });
}

void fsdp::rt::launchColumns(Context &context, Stream stream, const char *name,
                             RowKernel kernel, int64_t rows, int64_t cols,
                             Ptrs args) {
  CpuContext &c = cpuContext(context);
  ComputeCall call(c, stream, "a kernel");
  Timeline::Span span(c.timeline, stream, name, rows, cols);
  const Ptr *pointers = args.begin();
  // Pieces of whole cache lines: threads do not share the lines they write.
  parallelFor(c.threads, cols, rows, 32, [=](int64_t begin, int64_t end, int) {
    kernel(begin, end, pointers);
  });
}
