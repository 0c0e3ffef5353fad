//===- Context.cpp - Making a CUDA context and running its programs -------===//
#include "../api/DataErrors.h"
#include "../collectives/Pieces.h"
#include "CudaContext.h"
#include "PlainAttention.h"
#include "fsdp/Runtime/Launch.h"
#include "kernels/Reduce.h"
#include <nvtx3/nvToolsExt.h>

using namespace fsdp;
using namespace fsdp::rt;

const char *rt::statusText(cudaError_t status) {
  return cudaGetErrorString(status);
}
const char *rt::statusText(cublasStatus_t status) {
  return cublasLtGetStatusString(status);
}
const char *rt::statusText(ncclResult_t status) {
  return ncclGetErrorString(status);
}
const char *rt::statusText(cudnnStatus_t status) {
  return cudnnGetErrorString(status);
}

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

/// What can be known before anything is made. The same on every rank.
static void checkArtifact(const fsdp_artifact &a, const ContextOptions &options,
                          const World &world) {
  if (a.abi != FSDP_ARTIFACT_ABI)
    throw Error("the artifact was compiled for version " +
                std::to_string(a.abi) +
                " of the runtime's interface, this is version " +
                std::to_string(FSDP_ARTIFACT_ABI));
  int64_t size = 1;
  for (int64_t axis : options.meshAxes)
    size *= axis;
  if (size != world.size)
    throw Error("the artifact's mesh has " + std::to_string(size) +
                " ranks, but the job has " + std::to_string(world.size));
  for (int32_t i = 0; i < a.collectives; ++i) {
    const CollectiveDesc &desc = a.collective[i];
    if (desc.kind != CollectiveKind::AllGather &&
        !canReduce(desc.reduce, desc.in, desc.out))
      throw Error(std::string("collective \"") + desc.serves +
                  "\": no reduction between these types");
  }
}

/// The GPU of this rank: as many as ranks of this machine are needed.
static void chooseDevice(const World &world) {
  auto place = detectLaunch();
  int local = place ? place->localRank : 0, count = 0;
  require(cudaGetDeviceCount(&count), "cannot use a GPU");
  if (local >= count)
    throw Error("rank " + std::to_string(world.rank) + " needs GPU " +
                std::to_string(local) + ", but this machine has " +
                std::to_string(count));
  require(cudaSetDevice(local), "cannot use the GPU");
}

static void createStreams(Context &c) {
  // Communication kernels go first: they free what compute waits for.
  int least = 0, greatest = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &greatest), "streams");
  for (int s = 0; s < kStreams; ++s)
    require(cudaStreamCreateWithPriority(
                &c.streams[s], cudaStreamNonBlocking,
                Stream(s) == Stream::Compute ? least : greatest),
            "streams");
  auto createEvent = [](cudaEvent_t &event) {
    require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "events");
  };
  c.events.resize(size_t(c.artifact->events));
  for (cudaEvent_t &event : c.events)
    createEvent(event);
  createEvent(c.begun);
  for (cudaEvent_t &event : c.ended)
    createEvent(event);
}

/// The arena comes from NCCL, so that transfers can use it in place. The legacy
/// stream would not be ordered with ours, which do not wait for it.
static void createArena(Context &c) {
  void *memory = nullptr;
  uint64_t bytes = c.artifact->arena_bytes;
  cudaStream_t stream = c.stream(Stream::Compute);
  require(ncclMemAlloc(&memory, bytes), "the arena");
  c.arena = static_cast<Ptr>(memory);
  require(cudaMemsetAsync(memory, 0, bytes, stream), "the arena");
  require(cudaMalloc(reinterpret_cast<void **>(&c.dataErrors),
                     sizeof *c.dataErrors),
          "error flags");
  require(cudaMemsetAsync(c.dataErrors, 0, sizeof *c.dataErrors, stream),
          "error flags");
  require(cudaStreamSynchronize(stream), "the arena");
}

static void createLibraries(Context &c) {
  require(cublasLtCreate(&c.blas), "cuBLASLt");
  require(cudnnCreate(&c.dnn), "cuDNN");
  for (int32_t i = 0; i < c.artifact->gemms; ++i)
    c.gemms.push_back(std::make_unique<GemmPlan>(c.blas, c.artifact->gemm[i]));
  for (int32_t i = 0; i < c.artifact->attentions; ++i)
    c.attentions.push_back(
        c.artifact->attention[i].plain
            ? nullptr
            : makeAttentionPlan(c.dnn, c.artifact->attention[i]));
}

static void createChannels(Context &c, const ContextOptions &options) {
  ncclUniqueId id{};
  if (c.world.rank == 0)
    require(ncclGetUniqueId(&id), "NCCL");
  broadcast(&id, sizeof id);
  require(
      ncclCommInitRank(&c.worldCommunicator, c.world.size, id, c.world.rank),
      "NCCL");
  const fsdp_artifact &a = *c.artifact;
  std::vector<bool> isUsed(size_t(a.groups), false);
  for (int32_t i = 0; i < a.collectives; ++i)
    isUsed[size_t(a.collective[i].group)] = true;
  for (int32_t g = 0; g < a.groups; ++g)
    c.places.push_back(
        coordinateOf(a.group[g], options.meshAxes, c.world.rank));
  for (int s = 0; s < kStreams; ++s)
    for (int32_t g = 0; g < a.groups; ++g)
      c.channels.push_back(
          isUsed[size_t(g)]
              ? std::make_unique<Channel>(c.worldCommunicator, a.group[g],
                                          options.meshAxes, c.world.rank,
                                          c.arena, a.arena_bytes)
              : nullptr);
}

/// True if no rank has an error.
static bool everyone(bool mine) {
  double failed = mine ? 0 : 1;
  allReduceSum(&failed, 1);
  return failed == 0;
}

ContextPtr rt::createContext(const fsdp_artifact &artifact,
                             const ContextOptions &options,
                             std::string &error) {
  ContextPtr c(new Context);
  c->artifact = &artifact;
  c->world = joinWorld();
  error.clear();
  try {
    checkArtifact(artifact, options, c->world);
    chooseDevice(c->world);
    createStreams(*c);
    createArena(*c);
    c->host = std::make_unique<HostMemory>(options.exchanges);
    createLibraries(*c);
  } catch (const Error &e) {
    error = e.what();
  }
  // From here on ranks talk to each other, so all go on or none does.
  if (!everyone(error.empty())) {
    if (error.empty())
      error = "another rank could not make its context";
    return nullptr;
  }
  try {
    for (auto &gemm : c->gemms)
      gemm->agreeOnAlgorithm();
    createChannels(*c, options);
  } catch (const Error &e) {
    error = e.what();
    return nullptr;
  }
  return c;
}

Context::~Context() {
  // What is left at the end cannot be reported to anybody.
  channels.clear();
  if (worldCommunicator)
    ncclCommDestroy(worldCommunicator);
  attentions.clear();
  gemms.clear();
  if (dnn)
    cudnnDestroy(dnn);
  if (blas)
    cublasLtDestroy(blas);
  for (cudaEvent_t event : events)
    if (event)
      cudaEventDestroy(event);
  if (begun)
    cudaEventDestroy(begun);
  for (cudaEvent_t event : ended)
    if (event)
      cudaEventDestroy(event);
  for (cudaStream_t s : streams)
    if (s)
      cudaStreamDestroy(s);
  if (dataErrors)
    cudaFree(dataErrors);
  if (arena)
    ncclMemFree(arena);
}

void ContextDeleter::operator()(Context *c) const { delete c; }

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// No stream begins before the program's inputs are in the arena.
static void beginProgram(Context &c, size_t index, const char *name) {
  cudaStream_t compute = c.stream(Stream::Compute);
  c.host->push(index, c.arena, compute);
  check(cudaEventRecord(c.begun, compute), name);
  for (int s = 1; s < kStreams; ++s)
    check(cudaStreamWaitEvent(c.streams[s], c.begun, 0), name);
}

/// Behind the work of all streams, what the host wants to know.
static void endProgram(Context &c, size_t index, const char *name) {
  cudaStream_t compute = c.stream(Stream::Compute);
  for (int s = 1; s < kStreams; ++s) {
    check(cudaEventRecord(c.ended[s], c.streams[s]), name);
    check(cudaStreamWaitEvent(compute, c.ended[s], 0), name);
  }
  c.host->pull(index, c.arena, compute);
  unsigned *errors = c.host->dataErrors();
  check(cudaMemcpyAsync(errors, c.dataErrors, sizeof *errors,
                        cudaMemcpyDeviceToHost, compute),
        name);
  check(cudaMemsetAsync(c.dataErrors, 0, sizeof *errors, compute), name);
}

bool rt::runProgram(Context &c, int index, std::string &error) {
  const fsdp_program &program = c.artifact->program[index];
  nvtxRangePushA(program.name);
  beginProgram(c, size_t(index), program.name);
  program.run(c);
  endProgram(c, size_t(index), program.name);
  nvtxRangePop();
  check(cudaStreamSynchronize(c.stream(Stream::Compute)), program.name);
  error = describeDataErrors(*c.host->dataErrors());
  return error.empty();
}

Target rt::runtimeTarget() { return Target::Cuda; }

uint64_t rt::arenaBytes(const Context &c) { return c.artifact->arena_bytes; }

bool rt::hasNativeBF16() { return true; }

Ptr rt::at(Context &c, uint64_t offset) { return c.arena + offset; }

void rt::record(Context &c, int event, Stream stream) {
  check(cudaEventRecord(c.events[size_t(event)], c.stream(stream)), "record");
}

void rt::wait(Context &c, int event, Stream stream) {
  check(cudaStreamWaitEvent(c.stream(stream), c.events[size_t(event)], 0),
        "wait");
}

void rt::copy(Context &c, Stream stream, Ptr from, Ptr to, int64_t bytes) {
  check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToDevice,
                        c.stream(stream)),
        "copy");
}

void rt::fillZero(Context &c, Stream stream, Ptr out, int64_t bytes) {
  check(cudaMemsetAsync(out, 0, size_t(bytes), c.stream(stream)), "fill_zero");
}

void rt::shardOf(Context &c, Stream stream, int group, int64_t bytes,
                 int64_t partBytes, Ptr in, Ptr out) {
  Part part = pieceAt(bytes, partBytes, c.places[size_t(group)].index);
  if (part.count > 0)
    copy(c, stream, in + part.offset, out, part.count);
  if (part.count < partBytes)
    fillZero(c, stream, out + part.count, partBytes - part.count);
}

void rt::gemm(Context &c, Stream stream, int index, Ptr lhs, Ptr rhs, Ptr bias,
              Ptr out, Ptr workspace) {
  c.gemms[size_t(index)]->run(c.stream(stream), lhs, rhs, bias, out, workspace);
}

void rt::attention(Context &c, Stream stream, int index, Ptr q, Ptr k, Ptr v,
                   Ptr out, Ptr lse, Ptr workspace) {
  const AttentionDesc &d = c.artifact->attention[index];
  if (d.plain)
    return plainAttention(c, stream, d, q, k, v, out, lse);
  c.attentions[size_t(index)]->forward(c.stream(stream), q, k, v, out, lse,
                                       workspace);
}

void rt::attentionGrad(Context &c, Stream stream, int index, Ptr q, Ptr k,
                       Ptr v, Ptr out, Ptr lse, Ptr dout, Ptr dq, Ptr dk,
                       Ptr dv, Ptr workspace) {
  const AttentionDesc &d = c.artifact->attention[index];
  if (d.plain)
    return plainAttentionGrad(c, stream, d, q, k, v, out, lse, dout, dq, dk, dv,
                              workspace);
  c.attentions[size_t(index)]->backward(c.stream(stream), q, k, v, out, lse,
                                        dout, dq, dk, dv, workspace);
}

void rt::collective(Context &c, Stream stream, int index, Ptrs in, Ptrs out,
                    Ptrs workspace) {
  const CollectiveDesc &desc = c.artifact->collective[index];
  size_t channel =
      size_t(stream) * size_t(c.artifact->groups) + size_t(desc.group);
  nvtxRangePushA(desc.serves);
  c.channels[channel]->run(c, stream, desc, in.begin(), out.begin(),
                           workspace.begin());
  nvtxRangePop();
}
