//===- Host.cpp - What the host and the GPU hand each other ---------------===//
#include "CudaContext.h"
#include <algorithm>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Memory of the host
//===----------------------------------------------------------------------===//

PinnedMemory::PinnedMemory(uint64_t bytes) {
  void *pinned = nullptr;
  require(cudaMallocHost(&pinned, bytes), "memory for the GPU's copies");
  memory = static_cast<std::byte *>(pinned);
  std::memset(memory, 0, bytes);
}

PinnedMemory::~PinnedMemory() { cudaFreeHost(memory); }

HostMemory::HostMemory(const std::vector<ProgramExchange> &exchanges)
    : exchanges(exchanges) {
  std::map<uint64_t, uint64_t> sizes; // by offset in the arena
  for (const ProgramExchange &exchange : exchanges)
    for (const auto *ranges : {&exchange.inputs, &exchange.outputs})
      for (const ArenaRange &range : *ranges)
        sizes[range.offset] = std::max(sizes[range.offset], range.bytes);
  uint64_t used = kPieceBytes + kHostLine; // data errors
  for (const auto &[offset, bytes] : sizes) {
    places[offset] = used;
    used += linesOf(bytes);
  }
  memory = std::make_unique<PinnedMemory>(used);
}

std::byte *HostMemory::address(uint64_t offset) const {
  auto place = places.find(offset);
  return place == places.end() ? nullptr : memory->address() + place->second;
}

HostPlaces HostMemory::placesOf(size_t program) const {
  HostPlaces result;
  result.dataErrors =
      reinterpret_cast<unsigned *>(memory->address() + kPieceBytes);
  if (program >= exchanges.size())
    return result;
  for (const ArenaRange &range : exchanges[program].inputs)
    result.inputs.push_back({range, address(range.offset)});
  for (const ArenaRange &range : exchanges[program].outputs)
    result.outputs.push_back({range, address(range.offset)});
  return result;
}

//===----------------------------------------------------------------------===//
// Context.h
//===----------------------------------------------------------------------===//

std::byte *rt::hostAddress(Context &context, uint64_t offset) {
  CudaContext &c = cudaContext(context);
  return c.host->address(offset);
}

void rt::download(Context &context, const ArenaRange &range,
                  const TakePiece &take) {
  CudaContext &c = cudaContext(context);
  cudaStream_t stream = c.stream(Stream::Compute);
  for (uint64_t done = 0; done < range.bytes;) {
    uint64_t bytes = std::min(range.bytes - done, HostMemory::kPieceBytes);
    check(cudaMemcpyAsync(c.host->piece(), c.arena + range.offset + done, bytes,
                          cudaMemcpyDeviceToHost, stream),
          "a copy from the GPU");
    check(cudaStreamSynchronize(stream), "a copy from the GPU");
    take(c.host->piece(), done, bytes);
    done += bytes;
  }
}

void rt::upload(Context &context, const ArenaRange &range,
                const FillPiece &fill) {
  CudaContext &c = cudaContext(context);
  cudaStream_t stream = c.stream(Stream::Compute);
  for (uint64_t done = 0; done < range.bytes;) {
    uint64_t bytes = std::min(range.bytes - done, HostMemory::kPieceBytes);
    fill(c.host->piece(), done, bytes);
    check(cudaMemcpyAsync(c.arena + range.offset + done, c.host->piece(), bytes,
                          cudaMemcpyHostToDevice, stream),
          "a copy to the GPU");
    check(cudaStreamSynchronize(stream), "a copy to the GPU");
    done += bytes;
  }
}
