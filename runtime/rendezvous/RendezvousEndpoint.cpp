//===- RendezvousEndpoint.cpp - Where the ranks of a job meet -------------===//
#include "HostList.h"
#include "Rendezvous.h"
#include "fsdp/Support/Error.h"
#include <charconv>
#include <cstdlib>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

static std::string variable(const char *name) {
  const char *text = std::getenv(name);
  return text ? text : "";
}

/// A variable that holds a port; 0 if it is not set.
static int portVariable(const char *name) {
  std::string text = variable(name);
  if (text.empty())
    return 0;
  int value = 0;
  const char *end = text.data() + text.size();
  auto result = std::from_chars(text.data(), end, value);
  if (result.ec != std::errc() || result.ptr != end || value < 1 ||
      value > 65535)
    throw Error(std::string("environment: ") + name + " = '" + text +
                "' is no port");
  return value;
}

static bool isStartedBy(const LaunchEnvironment &place, const char *rankName) {
  return place.rankName && std::strcmp(place.rankName, rankName) == 0;
}

/// What the launcher calls the job. Only its own variables are asked: one that
/// it inherited need not be on all machines.
static std::string jobName(const LaunchEnvironment &place) {
  if (std::string name = variable(kJobVariable); !name.empty())
    return name;
  if (isStartedBy(place, "RANK"))
    return variable("TORCHELASTIC_RUN_ID");
  if (isStartedBy(place, "SLURM_PROCID"))
    return variable("SLURM_JOB_ID") + "." + variable("SLURM_STEP_ID");
  return variable("PMIX_NAMESPACE");
}

/// FNV-1a, which is the same on all machines.
static uint64_t digestOf(const std::string &text) {
  uint64_t digest = 14695981039346656037U;
  for (char c : text)
    digest = (digest ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return digest;
}

static std::string hostOf(const LaunchEnvironment &place) {
  const char *const here = "127.0.0.1";
  if (std::string address = variable("MASTER_ADDR"); !address.empty())
    return address;
  if (isStartedBy(place, "SLURM_PROCID"))
    for (const char *name : {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"})
      if (std::string text = variable(name); !text.empty()) {
        HostList hosts = parseHostList(text, name);
        return hosts.hasOthers ? hosts.first : here;
      }
  if (place.localSize == place.size)
    return here;
  throw Error("the job has ranks on several machines (" +
              std::to_string(place.localSize) + " of " +
              std::to_string(place.size) +
              " on this one); set MASTER_ADDR to the address of rank 0's");
}

static int portOf(const std::string &name) {
  if (int port = portVariable(kPortVariable))
    return port;
  if (int port = portVariable("MASTER_PORT"))
    return port < 65535 ? port + 1 : port - 1;
  // All such jobs of a machine would have one port and meet each other.
  if (name.empty())
    throw Error("the launcher of this job sets no name and no port, so its "
                "ranks could join another job; set " +
                std::string(kJobVariable) +
                " to a name that no other job has, the same for all ranks");
  // Below the ports that systems give to clients.
  constexpr int first = 20000, count = 10000;
  return first + static_cast<int>(digestOf(name) % count);
}

RendezvousEndpoint rt::rendezvousEndpoint(const LaunchEnvironment &place) {
  std::string name = jobName(place);
  return {hostOf(place), portOf(name),
          digestOf(name + "/" + std::to_string(place.size))};
}
