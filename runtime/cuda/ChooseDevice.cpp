//===- ChooseDevice.cpp - The GPU of a rank -------------------------------===//
#include "ChooseDevice.h"
#include "CudaContext.h"
#include "JobMonitor.h"
#include "fsdp/Core/Variables.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Target/Target.h"
#include <cstdlib>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

static std::string versionText(int version) {
  return std::to_string(version / 1000) + "." +
         std::to_string(version % 1000 / 10);
}

/// A driver runs what was built for its own major version or an older one.
static void checkDriver() {
  int driver = 0, runtime = 0;
  require(cudaDriverGetVersion(&driver), "cannot use a GPU");
  require(cudaRuntimeGetVersion(&runtime), "cannot use a GPU");
  if (driver == 0)
    throw Error("there is no NVIDIA driver on " + hostName() +
                ", which the artifact's target needs");
  if (driver / 1000 < runtime / 1000)
    throw Error("the NVIDIA driver on " + hostName() + " is for CUDA " +
                versionText(driver) + ", this build needs CUDA " +
                versionText(runtime) + "; install a newer driver" +
                (driver >= 12000 ? ", or build with a CUDA Toolkit " +
                                       std::to_string(driver / 1000)
                                 : ""));
}

/// Where there are fewer GPUs than ranks. Slurm may show each task one of its
/// own, always as the first.
static int deviceOf(int local, int count, int rank) {
  if (local < count)
    return local;
  if (wantsSharedGpu())
    return local % count;
  if (count == 1)
    return 0;
  throw Error("rank " + std::to_string(rank) + " is number " +
              std::to_string(local) + " of the ranks on " + hostName() +
              ", which has " + std::to_string(count) +
              " GPUs; start fewer ranks there, or set FSDP_SHARE_GPU=1 for "
              "ranks that share one");
}

static int attribute(cudaDeviceAttr name, int device) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, name, device), "cannot use the GPU");
  return value;
}

/// "sm_90" runs on 9.0 and later, "sm_90a" on 9.0 alone. What is later than its
/// major version is compiled by the driver, from the text in the library.
static void checkArchitecture(const std::string &target, int device) {
  const std::string prefix = kCudaTarget.architecture;
  if (target.rfind(prefix, 0) != 0)
    return;
  char *end = nullptr;
  long wanted = std::strtol(target.c_str() + prefix.size(), &end, 10);
  int major = attribute(cudaDevAttrComputeCapabilityMajor, device);
  int minor = attribute(cudaDevAttrComputeCapabilityMinor, device);
  long has = 10 * major + minor;
  bool isExact = *end == 'a';
  if (isExact ? has == wanted : has >= wanted)
    return;
  throw Error("the artifact's code is for " +
              target.substr(0, target.find(',')) + ", the GPU on " +
              hostName() + " is " + prefix + std::to_string(has) +
              "; compile the artifact for it");
}

/// The place of a GPU on the machine's bus.
static int64_t placeOf(int device) {
  int64_t domain = attribute(cudaDevAttrPciDomainId, device);
  int64_t bus = attribute(cudaDevAttrPciBusId, device);
  return domain << 32 | bus << 16 | attribute(cudaDevAttrPciDeviceId, device);
}

Seat rt::chooseDevice(const World &world, const std::string &target) {
  checkDriver();
  auto place = detectLaunch();
  int local = place ? place->localRank : 0, count = 0;
  require(cudaGetDeviceCount(&count), "cannot use a GPU");
  int device = deviceOf(local, count, world.rank);
  require(cudaSetDevice(device), "cannot use the GPU");
  checkArchitecture(target, device);
  Seat seat;
  hostName().copy(seat.host, sizeof seat.host - 1);
  // NCCL takes ranks on one GPU for a mistake, unless they seem to be on
  // different machines.
  if (wantsSharedGpu())
    setenv("NCCL_HOSTID",
           (hostName() + "-" + std::to_string(world.rank)).c_str(),
           /*overwrite=*/0);
  else if (place && count < place->localSize)
    seat.gpu = placeOf(device);
  return seat;
}

/// Empty if every rank has its own GPU.
static std::string findShared(const std::vector<Seat> &seats) {
  for (size_t a = 0; a < seats.size(); ++a)
    for (size_t b = a + 1; b < seats.size(); ++b) {
      const Seat &one = seats[a], &other = seats[b];
      if (one.gpu >= 0 && one.gpu == other.gpu &&
          std::strcmp(one.host, other.host) == 0)
        return "ranks " + std::to_string(a) + " and " + std::to_string(b) +
               " have the same GPU of " + one.host +
               "; start fewer ranks there, or set FSDP_SHARE_GPU=1";
    }
  return {};
}

void rt::requireOwnDevices(const World &world, const Seat &mine) {
  std::vector<Seat> seats(world.rank == 0 ? size_t(world.size) : 0);
  gather(&mine, sizeof mine, seats.data());
  requireOnAll(world, findShared(seats));
}

std::string rt::nameOfDevice() {
  int device = 0;
  cudaDeviceProp properties{};
  require(cudaGetDevice(&device), "the GPU");
  require(cudaGetDeviceProperties(&properties, device), "the GPU");
  return properties.name;
}
