//===- Environment.cpp - Which launcher started this process --------------===//
#include "fsdp/Rendezvous/Environment.h"
#include "HostList.h"
#include "fsdp/Support/Error.h"
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sched.h>
#include <unistd.h>

using namespace fsdp;
using namespace fsdp::rt;

namespace {

/// The variables of one launcher; the first launcher whose rank or size is
/// set counts.
struct Launcher {
  const char *rank, *size, *localRank, *localSize;
};
constexpr const char *kSlurmRank = "SLURM_PROCID";
constexpr Launcher kLaunchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {kSlurmRank, "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}};

} // namespace

static int parseVariable(const char *name) {
  const char *text = std::getenv(name);
  const char *end = text + std::strlen(text);
  int value = 0;
  auto result = std::from_chars(text, end, value);
  if (result.ec != std::errc() || result.ptr != end || value < 0)
    throw Error(std::string("environment: ") + name + " = '" + text +
                "' is no count");
  return value;
}

/// A variable, or `otherwise` if it is not set.
static int variableOr(const char *name, int otherwise) {
  return std::getenv(name) ? parseVariable(name) : otherwise;
}

static void requireBelow(const char *rankName, int rank, const char *sizeName,
                         int size) {
  if (rank >= size)
    throw Error(std::string("environment: ") + rankName + " = " +
                std::to_string(rank) + " is not below " + sizeName + " = " +
                std::to_string(size));
}

static bool isSame(const char *one, const char *other) {
  const char *a = std::getenv(one), *b = std::getenv(other);
  return a && b && std::strcmp(a, b) == 0;
}

/// Slurm sets PMI's variables beside its own (srun --mpi=pmi2), and its own
/// alone say which ranks share a machine. Ranks of another launcher within a
/// Slurm job have other places there, or the launcher's own local variables.
static bool isSlurmAsPmi(const Launcher &launcher) {
  return std::strcmp(launcher.rank, "PMI_RANK") == 0 &&
         !std::getenv(launcher.localRank) &&
         isSame("PMI_RANK", "SLURM_PROCID") &&
         isSame("PMI_SIZE", "SLURM_NTASKS");
}

static bool isSlurm(const Launcher &launcher) {
  return std::strcmp(launcher.rank, kSlurmRank) == 0;
}

/// Slurm's variables of a first task are also those of a job's script and of an
/// allocation's shell, which start ranks themselves. A script is no step of its
/// job; the steps of others have numbers above all of srun's, or, as the shell
/// of 'srun --pty', a single task.
static bool isSlurmTask() {
  const char *step = std::getenv("SLURM_STEP_ID");
  const char *tasks = std::getenv("SLURM_NTASKS");
  return step && std::strtoull(step, nullptr, 10) < 0xfffffff0 &&
         !(tasks && std::strcmp(tasks, "1") == 0);
}

/// Where this rank is among those of its machine, of how many.
static void placeLocally(const Launcher &launcher, LaunchEnvironment &place) {
  const char *const tasks = "SLURM_STEP_TASKS_PER_NODE", *node = "SLURM_NODEID";
  const char *sizeName = launcher.localSize;
  // Without local variables the job is taken to run on this machine.
  place.localRank = variableOr(launcher.localRank, place.rank);
  if (isSlurm(launcher) && std::getenv(tasks) && std::getenv(node)) {
    sizeName = tasks;
    place.localSize =
        parseTasksOfHost(std::getenv(tasks), tasks, parseVariable(node), node);
  } else {
    place.localSize = variableOr(launcher.localSize, place.size);
  }
  requireBelow(
      std::getenv(launcher.localRank) ? launcher.localRank : launcher.rank,
      place.localRank, std::getenv(sizeName) ? sizeName : launcher.size,
      place.localSize);
}

std::optional<LaunchEnvironment> rt::detectLaunch() {
  for (const Launcher &launcher : kLaunchers) {
    if (isSlurmAsPmi(launcher))
      continue;
    bool hasRank = std::getenv(launcher.rank);
    bool hasSize = std::getenv(launcher.size);
    if ((isSlurm(launcher) && !isSlurmTask()) || (!hasRank && !hasSize))
      continue;
    if (hasRank != hasSize)
      throw Error(std::string("environment: ") +
                  (hasRank ? launcher.rank : launcher.size) + " is set but " +
                  (hasRank ? launcher.size : launcher.rank) + " is not");
    LaunchEnvironment place;
    place.rankName = launcher.rank;
    place.sizeName = launcher.size;
    place.rank = parseVariable(launcher.rank);
    place.size = parseVariable(launcher.size);
    requireBelow(launcher.rank, place.rank, launcher.size, place.size);
    placeLocally(launcher, place);
    return place;
  }
  return std::nullopt;
}

std::string rt::explainMissingMPI(const LaunchEnvironment &place, int known) {
  if (!place.rankName)
    return "MPI reports " + std::to_string(known) +
           " processes, but no variable states the rank of this one; start "
           "them with mpirun, srun --mpi=pmix or fsdp-run -n " +
           std::to_string(known);
  std::string rank = place.rankName, size = place.sizeName;
  std::string count = std::to_string(place.size);
  return "the environment reports " + count + " ranks (" + rank + " = " +
         std::to_string(place.rank) + ", " + size + " = " + count + "), MPI " +
         std::to_string(known) +
         ": their launcher does not support MPI, over which ranks on CPUs "
         "rendezvous; type 'mpirun -n " +
         count + " fsdp-run …', under Slurm 'srun --mpi=pmix -n " + count +
         " fsdp-run …', or unset " + rank + " and " + size +
         " and type 'fsdp-run … -n " + count + "'";
}

std::string rt::hostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

bool rt::bindToOwnCores(const LaunchEnvironment &place, int threads) {
  cpu_set_t allowed, own;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0 ||
      place.localSize * threads > CPU_COUNT(&allowed))
    return false;
  CPU_ZERO(&own);
  int first = place.localRank * threads, seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed))
      continue;
    if (seen >= first && seen < first + threads)
      CPU_SET(cpu, &own);
    ++seen;
  }
  return sched_setaffinity(0, sizeof own, &own) == 0;
}

void rt::setThreadEnvironment(int threads) {
  // Waiting threads must leave their core to the communication threads.
  setenv("OMP_WAIT_POLICY", "passive", /*overwrite=*/0);
  setenv("OMP_NUM_THREADS", std::to_string(threads).c_str(), /*overwrite=*/1);
}
