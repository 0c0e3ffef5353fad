//===- Launch.cu - Starting kernels ---------------------------------------===//
#include "CudaContext.h"
#include "Device.h"

using namespace fsdp::rt;

unsigned *fsdp::rt::dataErrorFlags(Context &context) {
  CudaContext &c = cudaContext(context);
  return c.dataErrors;
}

Coordinate fsdp::rt::placeIn(Context &context, int group) {
  return cudaContext(context).places[size_t(group)];
}

void fsdp::rt::gpu::startKernel(Context &context, Stream stream,
                                const char *name, const void *kernel,
                                const LaunchShape &shape, void **parameters) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  CudaTimeline::Span span(c, stream, name, shape.blocks, shape.x, shape.y);
  dim3 grid(static_cast<unsigned>(shape.blocks)), block(shape.x, shape.y);
  check(cudaLaunchKernel(kernel, grid, block, parameters, 0, c.stream(stream)),
        name);
}
