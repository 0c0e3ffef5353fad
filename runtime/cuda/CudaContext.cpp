//===- CudaContext.cpp - Making a CUDA context and running its programs ---===//
#include "CudaContext.h"
#include "ChooseDevice.h"
#include "CudaProbe.h"
#include "JobMonitor.h"
#include "MatmulChoice.h"
#include "MatmulTable.h"
#include "ReferenceAttention.h"
#include "Steps.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Target/CollectivePieces.h"
#include "fsdp/Target/ReferenceAttentionWorkspaces.h"
#include "kernels/Reduce.h"
#include "runtime/collectives/Groups.h"
#include "runtime/core/DataErrors.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

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
  if (std::string error = checkProgressCounters(a); !error.empty())
    throw Error(error);
  int64_t size = 1;
  for (int64_t axis : options.meshAxes)
    size *= axis;
  if (size != world.size)
    throw Error("the artifact's mesh has " + std::to_string(size) +
                " ranks, but the job has " + std::to_string(world.size));
  for (int32_t i = 0; i < a.collectives; ++i) {
    const CollectiveDesc &desc = a.collective[i];
    if (isReduction(desc.kind) && !canReduce(desc.reduce, desc.in, desc.out))
      throw Error(std::string("collective \"") + desc.serves +
                  "\": no reduction between these types");
  }
}

static void createStreams(CudaContext &c) {
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
static void createArena(CudaContext &c) {
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

static void createLibraries(CudaContext &c) {
  require(cublasLtCreate(&c.blas), "cuBLASLt");
  if (c.artifact->attentions > 0)
    require(cudnnCreate(&c.dnn), "cuDNN");
  for (int32_t i = 0; i < c.artifact->gemms; ++i)
    c.gemms.push_back(std::make_unique<GemmPlan>(c.blas, c.artifact->gemm[i]));
}

/// The plan of cuDNN for an attention of the artifact; null if the reference
/// kernel is to compute it, or if there is none: then `problem` says why.
static std::unique_ptr<AttentionPlan>
findAttentionPlan(CudaContext &c, const AttentionDesc &desc,
                  std::string &problem) {
  if (desc.plain)
    return nullptr;
  try {
    return makeAttentionPlan(c.dnn, desc);
  } catch (const Error &error) {
    if (problem.empty())
      problem = error.what();
    return nullptr;
  }
}

/// Where a rank has no plan, all ranks take the reference kernel: bits must not
/// depend on the rank. It needs less workspace than is reserved.
static void createAttentions(CudaContext &c) {
  auto count = size_t(c.artifact->attentions);
  if (count == 0)
    return;
  std::string problem;
  std::vector<double> missing(count);
  for (size_t i = 0; i < count; ++i) {
    const AttentionDesc &desc = c.artifact->attention[i];
    c.attentions.push_back(findAttentionPlan(c, desc, problem));
    missing[i] = !desc.plain && !c.attentions[i];
  }
  allReduceSum(missing.data(), int(count));
  bool canGoOn = true;
  for (size_t i = 0; i < count; ++i)
    if (missing[i] > 0) {
      c.attentions[i] = nullptr;
      canGoOn &= c.artifact->attention[i].headDim <= kReferenceHeadDim;
    }
  try {
    requireOnAll(c.world, problem);
  } catch (const Error &error) {
    if (!canGoOn)
      throw;
    if (c.world.rank == 0)
      printMessage(kRunWarning,
                   std::string(error.what()) +
                       "; the runtime's reference attention, which is slow, "
                       "computes it on all ranks");
  }
}

double rt::timeoutOf(const ContextOptions &options) {
  return options.timeoutSeconds > 0 ? options.timeoutSeconds
                                    : collectiveTimeout();
}

/// Calls `make`, which may fail on some ranks and not on others; then throws on
/// all.
template <typename Make> static void together(const World &world, Make make) {
  std::string problem;
  try {
    make();
  } catch (const Error &error) {
    problem = error.what();
  }
  requireOnAll(world, problem);
}

/// All ranks write progress counters or none does: one without them would look
/// as if it had come to no collective.
static void createProgress(CudaContext &c) {
  Progress::WriteValue *write = nullptr;
  together(c.world, [&] { write = Progress::findWrite(); });
  double missing = write ? 0 : 1;
  allReduceSum(&missing, 1);
  if (missing == 0)
    together(c.world, [&] {
      c.progress = std::make_unique<Progress>(c.channels.size(), write);
    });
  else if (c.world.rank == 0)
    std::fprintf(stderr,
                 "fsdp-run: warning: %g of %d GPUs or their drivers have no "
                 "64-bit stream memory operations: FSDP_TIMEOUT does not end "
                 "collectives that hang; ranks that die or stop are noticed\n",
                 missing, c.world.size);
}

/// A rank that is alone waits for nobody.
static void createProbe(CudaContext &c, const ContextOptions &options) {
  LivenessMonitor *monitor = jobMonitor();
  if (!monitor || !c.worldCommunicator)
    return;
  createProgress(c);
  c.probe = std::make_unique<CudaProbe>(c, *monitor, options.meshAxes,
                                        timeoutOf(options));
}

/// Ranks talk to each other on the way, so all go on or none does.
static void create(CudaContext &c, const ContextOptions &options) {
  Seat seat;
  together(c.world, [&] {
    checkArtifact(*c.artifact, options, c.world);
    seat = chooseDevice(c.world, options.target);
  });
  requireOwnDevices(c.world, seat);
  together(c.world, [&] {
    createStreams(c);
    createArena(c);
    c.host = std::make_unique<HostMemory>(options.exchanges);
    createLibraries(c);
  });
  createAttentions(c);
  together(c.world, [&] {
    if (c.world.rank == 0)
      chooseAlgorithms(c, options.cacheFolder);
  });
  for (auto &gemm : c.gemms)
    gemm->shareAlgorithm();
  together(c.world, [&] {
    for (auto &gemm : c.gemms)
      gemm->checkAlgorithm();
  });
  createChannels(c, options);
  createProbe(c, options);
  if (std::string file = tracePath(options.tracePrefix, c.world.rank);
      options.isTraced && !file.empty())
    c.timeline =
        std::make_unique<CudaTimeline>(file, c.world.rank, options.callNames);
  // Each launch lies between two events whose times are read, which a graph's
  // have not.
  together(c.world, [&] {
    c.steps =
        std::make_unique<Steps>(c, options, options.graphs && !c.timeline);
  });
}

ContextPtr rt::createContext(const fsdp_artifact &artifact,
                             const ContextOptions &options,
                             std::string &error) {
  auto *c = new CudaContext;
  ContextPtr context(c);
  c->artifact = &artifact;
  c->world = joinWorld();
  error.clear();
  try {
    create(*c, options);
  } catch (const Error &e) {
    error = e.what();
    // The end of a communicator may wait for ranks that have not failed; the
    // job ends without it.
    if (c->world.size > 1)
      static_cast<void>(context.release());
    return nullptr;
  }
  return context;
}

CudaContext::CudaContext() = default;

CudaContext::~CudaContext() {
  // What is left at the end cannot be reported to anybody. Steps that are on
  // their way are waited for while the probe reads their counters.
  steps.reset();
  probe.reset();
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

void ContextDeleter::operator()(Context *context) const {
  delete static_cast<CudaContext *>(context);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// No stream begins before the program's inputs are in the arena.
static void beginProgram(CudaContext &c, int index, const HostPlaces &host,
                         const char *name) {
  cudaStream_t compute = c.stream(Stream::Compute);
  for (const auto &[range, from] : host.inputs)
    check(cudaMemcpyAsync(c.arena + range.offset, from, range.bytes,
                          cudaMemcpyHostToDevice, compute),
          "inputs");
  if (c.timeline)
    c.timeline->beginProgram(compute, index, name);
  if (c.progress)
    c.progress->beginProgram(index);
  check(cudaEventRecord(c.begun, compute), name);
  for (int s = 1; s < kStreams; ++s)
    check(cudaStreamWaitEvent(c.streams[s], c.begun, 0), name);
}

/// After the work of all streams, what the host wants to know.
static void endProgram(CudaContext &c, const HostPlaces &host,
                       const char *name) {
  cudaStream_t compute = c.stream(Stream::Compute);
  for (int s = 1; s < kStreams; ++s) {
    check(cudaEventRecord(c.ended[s], c.streams[s]), name);
    check(cudaStreamWaitEvent(compute, c.ended[s], 0), name);
  }
  if (c.timeline)
    c.timeline->endProgram(compute);
  for (const auto &[range, to] : host.outputs)
    check(cudaMemcpyAsync(to, c.arena + range.offset, range.bytes,
                          cudaMemcpyDeviceToHost, compute),
          "outputs");
  check(cudaMemcpyAsync(host.dataErrors, c.dataErrors, sizeof *c.dataErrors,
                        cudaMemcpyDeviceToHost, compute),
        name);
  check(cudaMemsetAsync(c.dataErrors, 0, sizeof *c.dataErrors, compute), name);
}

void rt::issueProgram(CudaContext &c, int index, const HostPlaces &host) {
  const fsdp_program &program = c.artifact->program[index];
  ProfilerRange range(program.name);
  beginProgram(c, index, host, program.name);
  program.run(c);
  endProgram(c, host, program.name);
}

bool rt::runProgram(Context &context, int index, std::string &error) {
  CudaContext &c = cudaContext(context);
  HostPlaces host = c.host->placesOf(size_t(index));
  issueProgram(c, index, host);
  check(cudaStreamSynchronize(c.stream(Stream::Compute)),
        c.artifact->program[index].name);
  if (c.probe)
    c.probe->holdIfEnding();
  if (c.timeline)
    c.timeline->collect();
  error = describeDataErrors(*host.dataErrors);
  return error.empty();
}

bool rt::observeProgram(Context &context, int index, const ObserveCall &observe,
                        std::string &error) {
  CudaContext &c = cudaContext(context);
  return runObserved(c, c.observer, index, observe, error);
}

ObservedCall::ObservedCall(Context &context) : context(context) {
  CudaContext &c = cudaContext(context);
  if (c.observer)
    c.observer->beginCall();
  if (c.timeline)
    c.timeline->beginCall();
}

ObservedCall::~ObservedCall() {
  CudaContext &c = cudaContext(context);
  if (c.timeline)
    c.timeline->endCall();
  if (!c.observer)
    return;
  c.observer->endCall([&c] {
    for (cudaStream_t stream : c.streams)
      check(cudaStreamSynchronize(stream), "a call that is looked at");
  });
}

const Target &rt::runtimeTarget() { return kCudaTarget; }

void rt::writeTrace(Context &context) {
  CudaContext &c = cudaContext(context);
  if (c.timeline)
    c.timeline->write();
}

std::string rt::algorithmDigest(const Context &context) {
  const auto &c = static_cast<const CudaContext &>(context);
  if (c.gemms.empty())
    return "";
  std::vector<cublasLtMatmulAlgo_t> algorithms;
  for (const auto &gemm : c.gemms)
    algorithms.push_back(gemm->chosen());
  return digestOf(c.artifact->gemm, algorithms);
}

std::string rt::deviceName(const Context &) { return nameOfDevice(); }

uint64_t rt::arenaBytes(const Context &context) {
  const CudaContext &c = cudaContext(context);
  return c.artifact->arena_bytes;
}

bool rt::hasNativeBF16() { return true; }

Ptr rt::at(Context &context, uint64_t offset) {
  CudaContext &c = cudaContext(context);
  return c.arena + offset;
}

void rt::record(Context &context, int event, Stream stream) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  check(cudaEventRecord(c.events[size_t(event)], c.stream(stream)), "record");
}

void rt::wait(Context &context, int event, Stream stream) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  check(cudaStreamWaitEvent(c.stream(stream), c.events[size_t(event)], 0),
        "wait");
}

void rt::copy(Context &context, Stream stream, Ptr from, Ptr to,
              int64_t bytes) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  CudaTimeline::Span span(c, stream, "copy", bytes);
  check(cudaMemcpyAsync(to, from, size_t(bytes), cudaMemcpyDeviceToDevice,
                        c.stream(stream)),
        "copy");
}

void rt::fillZero(Context &context, Stream stream, Ptr out, int64_t bytes) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  CudaTimeline::Span span(c, stream, "fill_zero", bytes);
  check(cudaMemsetAsync(out, 0, size_t(bytes), c.stream(stream)), "fill_zero");
}

void rt::shardOf(Context &context, Stream stream, int group, int64_t bytes,
                 int64_t partBytes, Ptr in, Ptr out) {
  CudaContext &c = cudaContext(context);
  ObservedCall call(c);
  Part part = pieceAt(bytes, partBytes, c.places[size_t(group)].index);
  if (part.count > 0)
    copy(c, stream, in + part.offset, out, part.count);
  if (part.count < partBytes)
    fillZero(c, stream, out + part.count, partBytes - part.count);
}

void rt::gemm(Context &context, Stream stream, int index, Ptr lhs, Ptr rhs,
              Ptr bias, Ptr out, Ptr workspace) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  const GemmDesc &d = c.artifact->gemm[index];
  CudaTimeline::Span span(c, stream, gemmName(d), d.batch, d.m, d.n, d.k);
  c.gemms[size_t(index)]->run(c.stream(stream), lhs, rhs, bias, out, workspace);
}

void rt::gemmAdd(Context &context, Stream stream, int index, Ptr lhs, Ptr rhs,
                 Ptr sum, Ptr workspace) {
  gemm(context, stream, index, lhs, rhs, /*bias=*/nullptr, sum, workspace);
}

void rt::attention(Context &context, Stream stream, int index, Ptr q, Ptr k,
                   Ptr v, Ptr starts, Ptr out, Ptr lse, Ptr workspace) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  const AttentionDesc &d = c.artifact->attention[index];
  if (!c.attentions[size_t(index)])
    return referenceAttention(c, stream, d, q, k, v, starts, out, lse);
  CudaTimeline::Span span(c, stream, "attention", d.batch, d.heads, d.qLen,
                          d.headDim);
  c.attentions[size_t(index)]->forward(c.stream(stream), q, k, v, out, lse,
                                       workspace);
}

void rt::attentionGrad(Context &context, Stream stream, int index, Ptr q, Ptr k,
                       Ptr v, Ptr out, Ptr lse, Ptr dout, Ptr starts, Ptr dq,
                       Ptr dk, Ptr dv, Ptr workspace) {
  CudaContext &c = cudaContext(context);
  if (c.survey)
    return;
  ObservedCall call(c);
  const AttentionDesc &d = c.artifact->attention[index];
  if (!c.attentions[size_t(index)])
    return referenceAttentionGrad(c, stream, d, q, k, v, out, lse, dout, starts,
                                  dq, dk, dv, workspace);
  CudaTimeline::Span span(c, stream, "attention_grad", d.batch, d.heads, d.qLen,
                          d.headDim);
  c.attentions[size_t(index)]->backward(c.stream(stream), q, k, v, out, lse,
                                        dout, dq, dk, dv, workspace);
}

void rt::collective(Context &context, Stream stream, int index, Ptrs in,
                    Ptrs out, Ptrs workspace) {
  CudaContext &c = cudaContext(context);
  const CollectiveDesc &desc = c.artifact->collective[index];
  size_t channel = c.channelOf(stream, desc.group);
  if (c.survey) {
    (*c.survey)[channel] = true;
    return;
  }
  ObservedCall call(c);
  CudaTimeline::Span span(c, stream, desc.serves, desc.items);
  ProfilerRange range(desc.serves);
  std::unique_lock<std::timed_mutex> issuing;
  if (c.probe)
    issuing = c.probe->issuing();
  if (c.progress)
    c.progress->enter(channel, c.stream(stream), index);
  c.channels[channel]->run(c, stream, desc, in.begin(), out.begin(),
                           workspace.begin());
  if (c.progress)
    c.progress->leave(channel, c.stream(stream));
}
