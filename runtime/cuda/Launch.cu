//===- Launch.cu - Starting kernels ---------------------------------------===//
#include "CudaContext.h"
#include "Device.h"

using namespace fsdp::rt;

unsigned *fsdp::rt::dataErrorFlags(Context &c) { return c.dataErrors; }

void fsdp::rt::gpu::startKernel(Context &c, Stream stream, const char *name,
                                const void *kernel, const Cut &cut,
                                void **parameters) {
  if (c.survey)
    return;
  ObservedCall call(c);
  Timeline::Span span(c, stream, name, cut.blocks, cut.x, cut.y);
  dim3 grid(static_cast<unsigned>(cut.blocks)), block(cut.x, cut.y);
  check(cudaLaunchKernel(kernel, grid, block, parameters, 0, c.stream(stream)),
        name);
}
