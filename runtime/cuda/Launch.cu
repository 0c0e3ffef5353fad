//===- Launch.cu - Starting kernels ---------------------------------------===//
#include "CudaContext.h"
#include "Device.h"

using namespace fsdp::rt;

unsigned *fsdp::rt::dataErrorFlags(Context &context) {
  CudaContext &c = cudaContext(context);
  return c.dataErrors;
}

void fsdp::rt::gpu::startKernel(Context &context, Stream stream,
                                const char *name, const void *kernel,
                                const Cut &cut, void **parameters) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  CudaTimeline::Span span(c, stream, name, cut.blocks, cut.x, cut.y);
  dim3 grid(static_cast<unsigned>(cut.blocks)), block(cut.x, cut.y);
  check(cudaLaunchKernel(kernel, grid, block, parameters, 0, c.stream(stream)),
        name);
}
