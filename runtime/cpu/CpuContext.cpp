//===- CpuContext.cpp - Making a context and running its programs ---------===//
#include "CpuContext.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Support/Explain.h"
#include "runtime/core/Job.h"
#include "runtime/rendezvous/Rendezvous.h"
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
  if (std::string error = checkProgressCounters(a); !error.empty())
    return error;
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

/// Heartbeats go through the control pages of the arenas where all ranks have
/// mapped them, and through sockets elsewhere. Collective.
static std::unique_ptr<HeartbeatTransport> connectHeartbeats(const Arena &arena,
                                                             const World &world,
                                                             bool areShared,
                                                             size_t channels) {
  if (areShared) {
    std::vector<std::byte *> pages;
    for (int r = 0; r < world.size; ++r)
      pages.push_back(arena.control(r));
    auto heartbeats = makeSharedHeartbeats(pages, world.rank, channels);
    barrier(); // every rank shows at its first look that it has begun
    return heartbeats;
  }
  Listener listener;
  Invitation invitation{};
  if (world.rank == 0) {
    listener = listenAt("", 0);
    invitation = inviteRanks(listener);
  }
  broadcast(&invitation, sizeof invitation);
  return makeTcpHeartbeats(world.rank, world.size,
                           connectInvited(invitation, listener, world.rank,
                                          world.size, joinTimeout()),
                           channels);
}

/// Collective.
static void createMonitor(CpuContext &c, const ContextOptions &options,
                          double heartbeat, double timeout) {
  const fsdp_artifact &a = *c.artifact;
  World world = c.world;
  ContextChannels channels;
  channels.artifact = &a;
  channels.count = size_t(kStreams) * size_t(a.groups);
  channels.ranksOf = [&a, axes = options.meshAxes](int rank, size_t channel) {
    return groupRanks(a.group[channel % size_t(a.groups)], axes, rank);
  };
  bool fit = channels.count <= Arena::kMaxChannels;
  for (int r = 0; r < world.size; ++r)
    fit &= c.arena.control(r) != nullptr;
  bool areShared = job::everyone(fit);
  c.progress = std::make_unique<HostProgress>(
      channels,
      areShared ? c.arena.control(world.rank) + Arena::kProgressAt : nullptr);
  if (world.size == 1 || heartbeat == 0 || !options.isMonitored)
    return;
  LivenessLimits limits = livenessLimits(heartbeat, timeout);
  limits.lossGrace = kSpeechSeconds;
  limits.begin = joinTimeout();
  try {
    c.monitor = std::make_unique<LivenessMonitor>(
        world.rank, world.size, limits,
        connectHeartbeats(c.arena, world, areShared, channels.count),
        c.progress.get(), [](int about, const std::string &message) {
          job::abortFor(about, message, kLostJobStatus);
        });
  } catch (const std::exception &error) {
    abortWorld(std::string("heartbeats: ") + error.what() +
               "; FSDP_HEARTBEAT=0 trains without");
  }
}

static void createChannels(CpuContext &c, const ContextOptions &options,
                           double timeout) {
  const fsdp_artifact &a = *c.artifact;
  int maxItems = 1;
  std::vector<bool> isUsed(size_t(a.groups), false);
  std::vector<int> nodeRanks = nodeRanksOfGroups(a);
  for (int32_t i = 0; i < a.collectives; ++i) {
    maxItems = std::max(maxItems, int(a.collective[i].items));
    isUsed[size_t(a.collective[i].group)] = true;
  }
  for (int32_t g = 0; g < a.groups; ++g)
    c.places.push_back(
        coordinateOf(a.group[g], options.meshAxes, c.world.rank));
  ChannelSetting setting{c.arena,  options.meshAxes, timeout,
                         maxItems, *c.progress,      c.monitor.get()};
  for (int s = 0; s < kStreams; ++s)
    for (int32_t g = 0; g < a.groups; ++g)
      c.channels.push_back(isUsed[size_t(g)]
                               ? std::make_unique<Channel>(
                                     setting, a.group[g], nodeRanks[size_t(g)],
                                     int(c.channels.size()), Stream(s))
                               : nullptr);
  c.maxPointers = 3 * maxItems;
  c.startWorker(Stream::Gather);
  c.startWorker(Stream::Reduce);
}

void CpuContext::startWorker(Stream stream) {
  workers[int(stream)] =
      std::make_unique<StreamWorker>(stream, events, timeline, maxPointers);
}

ContextPtr fsdp::rt::createContext(const fsdp_artifact &artifact,
                                   const ContextOptions &options,
                                   std::string &error) {
  World world = joinWorld();
  error = check(artifact, options, world);
  if (!error.empty())
    return nullptr;
  auto *c = new CpuContext;
  ContextPtr context(c);
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
      c->attentions.push_back(desc.plain ? nullptr
                                         : std::make_unique<BlockedAttention>(
                                               desc, options.threads));
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
      error = "another rank could not create its context";
    return nullptr;
  }
  c->events.create(artifact.events);
  std::string file = tracePath(options.tracePrefix, world.rank);
  if (options.isTraced && !file.empty())
    c->timeline.enable(file, world.rank, options.callNames);
  createMonitor(*c, options, heartbeat, timeout);
  createChannels(*c, options, timeout);
  return context;
}

void ContextDeleter::operator()(Context *context) const {
  delete static_cast<CpuContext *>(context);
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

static void joinWorkers(CpuContext &c) {
  for (auto &worker : c.workers)
    if (worker)
      worker->join();
}

bool fsdp::rt::runProgram(Context &context, int index, std::string &error) {
  CpuContext &c = cpuContext(context);
  omp_set_num_threads(c.threads);
  {
    const fsdp_program &program = c.artifact->program[index];
    int64_t begin = c.timeline.on() ? now() : 0;
    c.timeline.beginProgram(index);
    c.progress->beginProgram(index);
    program.run(c);
    joinWorkers(c);
    if (c.timeline.on())
      c.timeline.add(
          {program.name, {}, begin, now(), Timeline::kSteps, nullptr});
  }
  error = describeDataErrors(c.dataErrors.exchange(0));
  return error.empty();
}

bool fsdp::rt::observeProgram(Context &context, int index,
                              const ObserveCall &observe, std::string &error) {
  CpuContext &c = cpuContext(context);
  return runObserved(c, c.observer, index, observe, error);
}

ObservedCall::ObservedCall(Context &context) : context(context) {
  CpuContext &c = cpuContext(context);
  if (c.observer)
    c.observer->beginCall();
  if (c.timeline.on())
    c.timeline.beginCall();
}

ObservedCall::~ObservedCall() {
  CpuContext &c = cpuContext(context);
  if (c.timeline.on())
    c.timeline.endCall();
  if (c.observer)
    c.observer->endCall([&c] { joinWorkers(c); });
}

void fsdp::rt::beginStep(Context &context, int64_t number,
                         const SetInputs &set) {
  CpuContext &c = cpuContext(context);
  int64_t begin = now();
  c.stepError = runPrograms(c, *c.artifact, c.step, set);
  c.timeline.addStep(number, begin);
}

bool fsdp::rt::endStep(Context &context, std::string &error) {
  CpuContext &c = cpuContext(context);
  error = c.stepError;
  return error.empty();
}

bool fsdp::rt::stepsOverlap(const Context &) { return false; }

void fsdp::rt::writeTrace(Context &context) {
  CpuContext &c = cpuContext(context);
  c.timeline.write();
}

/// What oneDNN chooses follows from the instruction set, which the artifact's
/// fingerprint contains.
std::string fsdp::rt::algorithmDigest(const Context &) { return ""; }

const Target &fsdp::rt::runtimeTarget() { return kCpuTarget; }

std::string fsdp::rt::deviceName(const Context &) { return ""; }

uint64_t fsdp::rt::arenaBytes(const Context &context) {
  const CpuContext &c = cpuContext(context);
  return c.arena.size();
}

std::byte *fsdp::rt::hostAddress(Context &context, uint64_t offset) {
  CpuContext &c = cpuContext(context);
  return at(c, offset);
}

void fsdp::rt::download(Context &context, const ArenaRange &range,
                        const TakePiece &take) {
  CpuContext &c = cpuContext(context);
  take(at(c, range.offset), 0, range.bytes);
}

void fsdp::rt::upload(Context &context, const ArenaRange &range,
                      const FillPiece &fill) {
  CpuContext &c = cpuContext(context);
  fill(at(c, range.offset), 0, range.bytes);
}

Ptr fsdp::rt::at(Context &context, uint64_t offset) {
  CpuContext &c = cpuContext(context);
  return c.arena.base() + offset;
}

ComputeCall::ComputeCall(CpuContext &c, Stream stream, const char *what)
    : ObservedCall(c) {
  if (stream != Stream::Compute)
    abortWorld(std::string(what) + " can only run on the compute stream");
}

void fsdp::rt::record(Context &context, int event, Stream stream) {
  CpuContext &c = cpuContext(context);
  uint64_t number = c.events.issue(event);
  if (StreamWorker *worker = c.worker(stream))
    worker->record(event, number);
  else
    c.events.complete(event, number);
}

void fsdp::rt::wait(Context &context, int event, Stream stream) {
  CpuContext &c = cpuContext(context);
  uint64_t number = c.events.lastIssued(event);
  if (StreamWorker *worker = c.worker(stream)) {
    worker->wait(event, number);
    return;
  }
  Timeline::Span span(c.timeline, stream, "wait", event);
  c.events.wait(event, number);
}

void fsdp::rt::collective(Context &context, Stream stream, int index, Ptrs in,
                          Ptrs out, Ptrs workspace) {
  CpuContext &c = cpuContext(context);
  ObservedCall call(c);
  const CollectiveDesc &desc = c.artifact->collective[index];
  Channel &channel = c.channel(stream, desc.group);
  uint64_t counter = c.progress->next(index);
  if (StreamWorker *worker = c.worker(stream)) {
    worker->collective(channel, desc, counter, in, out, workspace);
    return;
  }
  Timeline::Span span(c.timeline, stream, desc.serves, desc.items);
  channel.run(desc, counter, in.begin(), out.begin(), workspace.begin());
}

void fsdp::rt::copy(Context &context, Stream stream, Ptr from, Ptr to,
                    int64_t bytes) {
  CpuContext &c = cpuContext(context);
  ObservedCall call(c);
  if (StreamWorker *worker = c.worker(stream)) {
    worker->copy(from, to, bytes);
    return;
  }
  Timeline::Span span(c.timeline, stream, "copy", bytes);
  std::memcpy(to, from, size_t(bytes));
}
