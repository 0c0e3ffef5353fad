//===- Context.cpp - Making a context and running its programs ------------===//
#include "CpuContext.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Explain.h"
#include "runtime/collectives/MPIPulse.h"
#include "runtime/core/Job.h"
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <omp.h>
#include <stdexcept>

using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Creation
//===----------------------------------------------------------------------===//

static double timeoutFor(const ContextOptions &options) {
  return options.timeoutSeconds > 0 ? options.timeoutSeconds
                                    : collectiveTimeout();
}

/// What can be known before anything is made. The same on every rank.
static std::string check(const fsdp_artifact &a, const ContextOptions &options,
                         const World &world) {
  if (a.abi != FSDP_ARTIFACT_ABI)
    return "the artifact was compiled for version " + std::to_string(a.abi) +
           " of the runtime's interface, this is version " +
           std::to_string(FSDP_ARTIFACT_ABI);
  if (options.threads < 1)
    return "threads must be at least 1";
  int64_t size = 1;
  for (int64_t axis : options.meshAxes)
    size *= axis;
  if (size != world.size)
    return "the artifact's mesh has " + std::to_string(size) +
           " ranks, but the job has " + std::to_string(world.size);
  for (int32_t i = 0; i < a.collectives; ++i) {
    const CollectiveDesc &desc = a.collective[i];
    if (desc.fast || !isSupported(desc))
      return std::string("collective \"") + desc.serves + "\": " +
             (desc.fast ? "its sum is left to NCCL, which a CPU does not have"
                        : "no reduction between these types");
  }
  return {};
}

static void createChannels(Context &c, const ContextOptions &options,
                           double timeout) {
  const fsdp_artifact &a = *c.artifact;
  int maxItems = 1;
  std::vector<bool> isUsed(size_t(a.groups), false);
  for (int32_t i = 0; i < a.collectives; ++i) {
    maxItems = std::max(maxItems, int(a.collective[i].items));
    isUsed[size_t(a.collective[i].group)] = true;
  }
  for (int32_t g = 0; g < a.groups; ++g)
    c.places.push_back(
        coordinateOf(a.group[g], options.meshAxes, c.world.rank));
  ChannelSetting setting{c.arena,  options.meshAxes, timeout,
                         maxItems, *c.progress,      *c.heartbeat};
  for (int s = 0; s < kStreams; ++s)
    for (int32_t g = 0; g < a.groups; ++g)
      c.channels.push_back(
          isUsed[size_t(g)]
              ? std::make_unique<Channel>(setting, a.group[g],
                                          int(c.channels.size()), Stream(s))
              : nullptr);
  c.maxPointers = 3 * maxItems;
  c.startWorker(Stream::Gather);
  c.startWorker(Stream::Reduce);
}

void Context::startWorker(Stream stream) {
  workers[int(stream)] =
      std::make_unique<StreamWorker>(stream, events, trace, maxPointers);
}

ContextPtr fsdp::rt::createContext(const fsdp_artifact &artifact,
                                   const ContextOptions &options,
                                   std::string &error) {
  World world = joinWorld();
  error = check(artifact, options, world);
  if (!error.empty())
    return nullptr;
  ContextPtr c(new Context);
  c->artifact = &artifact;
  c->threads = options.threads;
  c->step = options.step;
  c->world = world;
  double timeout = 0, heartbeat = 0;
  try {
    timeout = timeoutFor(options);
    heartbeat = heartbeatLimit();
    for (int32_t i = 0; i < artifact.gemms; ++i)
      c->gemms.push_back(
          std::make_unique<Gemm>(artifact.gemm[i], options.threads));
    for (int32_t i = 0; i < artifact.attentions; ++i) {
      const AttentionDesc &desc = artifact.attention[i];
      c->attentions.push_back(
          desc.plain ? nullptr
                     : std::make_unique<AttentionPlan>(desc, options.threads));
      if (!desc.plain)
        c->attentions.back()->prepare();
    }
    error = c->arena.create(artifact.arena_bytes, world);
  } catch (const std::exception &e) {
    error = explain(e);
  }
  // From here on ranks talk to each other, so all go on or none does.
  if (!job::everyone(error.empty())) {
    if (error.empty())
      error = "another rank could not make its context";
    return nullptr;
  }
  c->events.create(artifact.events);
  std::string file = tracePath(options.tracePrefix, world.rank);
  if (options.isTraced && !file.empty())
    c->trace.enable(file, world.rank, options.callNames);
  c->progress = std::make_unique<LastCollectives>(
      artifact, c->arena, world, size_t(kStreams) * size_t(artifact.groups));
  c->heartbeat = std::make_unique<Heartbeat>(c->arena, world, heartbeat,
                                             *c->progress, createMPIPulse);
  createChannels(*c, options, timeout);
  return c;
}

void ContextDeleter::operator()(Context *c) const { delete c; }

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void joinWorkers(Context &c) {
  for (auto &worker : c.workers)
    if (worker)
      worker->join();
}

bool fsdp::rt::runProgram(Context &c, int index, std::string &error) {
  omp_set_num_threads(c.threads);
  {
    const fsdp_program &program = c.artifact->program[index];
    int64_t begin = c.trace.on() ? now() : 0;
    c.trace.beginProgram(index);
    c.progress->beginProgram(index);
    program.run(c);
    joinWorkers(c);
    if (c.trace.on())
      c.trace.add({program.name, {}, begin, now(), Trace::kSteps, nullptr});
  }
  error = describeDataErrors(c.dataErrors.exchange(0));
  return error.empty();
}

bool fsdp::rt::observeProgram(Context &c, int index, const ObserveCall &observe,
                              std::string &error) {
  return runObserved(c, c.observer, index, observe, error);
}

ObservedCall::ObservedCall(Context &c) : c(c) {
  if (c.observer)
    c.observer->beginCall();
  if (c.trace.on())
    c.trace.beginCall();
}

ObservedCall::~ObservedCall() {
  if (c.trace.on())
    c.trace.endCall();
  if (c.observer)
    c.observer->endCall([this] { joinWorkers(c); });
}

void fsdp::rt::beginStep(Context &c, int64_t number, const SetInputs &set) {
  int64_t begin = now();
  c.stepError = runPrograms(c, *c.artifact, c.step, set);
  c.trace.addStep(number, begin);
}

bool fsdp::rt::endStep(Context &c, std::string &error) {
  error = c.stepError;
  return error.empty();
}

bool fsdp::rt::stepsOverlap(const Context &) { return false; }

void fsdp::rt::writeTrace(Context &c) { c.trace.write(); }

Target fsdp::rt::runtimeTarget() { return Target::Cpu; }

std::string fsdp::rt::deviceName(const Context &) { return ""; }

uint64_t fsdp::rt::arenaBytes(const Context &c) { return c.arena.size(); }

std::byte *fsdp::rt::hostAddress(Context &c, uint64_t offset) {
  return at(c, offset);
}

void fsdp::rt::download(Context &c, const ArenaRange &range,
                        const TakePiece &take) {
  take(at(c, range.offset), 0, range.bytes);
}

void fsdp::rt::upload(Context &c, const ArenaRange &range,
                      const FillPiece &fill) {
  fill(at(c, range.offset), 0, range.bytes);
}

Ptr fsdp::rt::at(Context &c, uint64_t offset) {
  return c.arena.base() + offset;
}

ComputeCall::ComputeCall(Context &c, Stream stream, const char *what)
    : ObservedCall(c) {
  if (stream != Stream::Compute)
    abortWorld(std::string(what) + " can only run on the compute stream");
}

void fsdp::rt::record(Context &c, int event, Stream stream) {
  uint64_t number = c.events.issue(event);
  if (StreamWorker *worker = c.worker(stream))
    worker->record(event, number);
  else
    c.events.complete(event, number);
}

void fsdp::rt::wait(Context &c, int event, Stream stream) {
  uint64_t number = c.events.lastIssued(event);
  if (StreamWorker *worker = c.worker(stream)) {
    worker->wait(event, number);
    return;
  }
  Trace::Span span(c.trace, stream, "wait", event);
  c.events.wait(event, number);
}

void fsdp::rt::collective(Context &c, Stream stream, int index, Ptrs in,
                          Ptrs out, Ptrs workspace) {
  ObservedCall call(c);
  const CollectiveDesc &desc = c.artifact->collective[index];
  Channel &channel = c.channel(stream, desc.group);
  uint64_t word = c.progress->next(index);
  if (StreamWorker *worker = c.worker(stream)) {
    worker->collective(channel, desc, word, in, out, workspace);
    return;
  }
  Trace::Span span(c.trace, stream, desc.serves, desc.items);
  channel.run(desc, word, in.begin(), out.begin(), workspace.begin());
}

void fsdp::rt::copy(Context &c, Stream stream, Ptr from, Ptr to,
                    int64_t bytes) {
  ObservedCall call(c);
  if (StreamWorker *worker = c.worker(stream)) {
    worker->copy(from, to, bytes);
    return;
  }
  Trace::Span span(c.trace, stream, "copy", bytes);
  std::memcpy(to, from, size_t(bytes));
}
