//===- Channels.cpp - Communicators of the groups that programs use -------===//
#include "CudaContext.h"
#include "JobMonitor.h"
#include "fsdp/Target/CollectivePieces.h"
#include "runtime/collectives/Groups.h"
#include <algorithm>
#include <cstdlib>

using namespace fsdp;
using namespace fsdp::rt;

/// A program decides nothing, so one run of it that issues no work knows all
/// its channels.
static ChannelSurvey surveyPrograms(CudaContext &c) {
  ChannelSurvey survey(size_t(kStreams) * size_t(c.artifact->groups));
  c.survey = &survey;
  for (int32_t i = 0; i < c.artifact->programs; ++i)
    c.artifact->program[i].run(c);
  c.survey = nullptr;
  return survey;
}

/// Whether all ranks have registered the arena in one way, for all channels;
/// else no rank has: NCCL wants a buffer registered by all ranks of a
/// communicator or by none.
template <typename Register>
static bool registerOnAll(CudaContext &c, const Register &registerArena) {
  double missing = 0;
  for (auto &channel : c.channels)
    missing += channel && !registerArena(*channel);
  allReduceSum(&missing, 1);
  for (auto &channel : c.channels)
    if (channel && missing > 0)
      channel->deregister();
  return missing == 0;
}

/// Where NCCL cannot use the arena in place it copies through buffers of its
/// own, which is slower and as right.
static void registerArena(CudaContext &c) {
  uint64_t bytes = c.artifact->arena_bytes;
  bool isDone = registerOnAll(c, [&](NcclChannel &channel) {
    return channel.makeWindow(c.arena, bytes);
  });
  isDone = isDone || registerOnAll(c, [&](NcclChannel &channel) {
             return channel.registerArena(c.arena, bytes);
           });
  if (!isDone && c.world.rank == 0)
    std::fprintf(stderr, "fsdp-run: warning: NCCL cannot register the arena "
                         "here: transfers go through its own buffers\n");
}

/// NCCL connects the ranks.
static void connectChannels(CudaContext &c, const ContextOptions &options,
                            const ChannelSurvey &isUsed) {
  const fsdp_artifact &a = *c.artifact;
  StageLimit stage(jobMonitor(), "the creation of NCCL's communicators",
                   timeoutOf(options));
  ncclUniqueId id{};
  if (c.world.rank == 0)
    require(ncclGetUniqueId(&id), "NCCL");
  broadcast(&id, sizeof id);
  require(
      ncclCommInitRank(&c.worldCommunicator, c.world.size, id, c.world.rank),
      "NCCL");
  std::vector<int> nodeRanks = nodeRanksOfGroups(a);
  for (size_t i = 0; i < isUsed.size(); ++i) {
    size_t group = i % size_t(a.groups);
    if (isUsed[i])
      c.channels[i] = std::make_unique<NcclChannel>(
          c.worldCommunicator, a.group[group], nodeRanks[group],
          options.meshAxes, c.world.rank);
  }
  registerArena(c);
}

void rt::createChannels(CudaContext &c, const ContextOptions &options) {
  const fsdp_artifact &a = *c.artifact;
  for (int32_t g = 0; g < a.groups; ++g)
    c.places.push_back(
        coordinateOf(a.group[g], options.meshAxes, c.world.rank));
  ChannelSurvey isUsed = surveyPrograms(c);
  c.channels.resize(isUsed.size());
  if (std::find(isUsed.begin(), isUsed.end(), true) == isUsed.end())
    return;
  // Several communicators at once need an order of launch that is the same on
  // all ranks: that of the program.
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", /*overwrite=*/0);
  connectChannels(c, options, isUsed);
}
