//===- SoftwareProfile.h - What runs on a machine ---------------*- C++ -*-===//
//
// Two frameworks on one machine differ in their attention library, in whether
// pointwise chains are one kernel, in how they use fp8 and in who launches. A
// profile says that beside the machine; docs/machines.md explains every key. No
// MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MACHINE_SOFTWAREPROFILE_H
#define FSDP_MACHINE_SOFTWAREPROFILE_H

#include "fsdp/Config/Spelling.h"
#include <string>
#include <vector>

namespace fsdp {

enum class PointwiseKernels { Fused, Eager };
template <> struct Spellings<PointwiseKernels> {
  static constexpr Spelling<PointwiseKernels> all[] = {
      {PointwiseKernels::Fused, "fused", "a chain of ops is one kernel"},
      {PointwiseKernels::Eager, "eager", "every op is one"}};
};

enum class Fp8Recipe { None, Tensorwise, Rowwise };
template <> struct Spellings<Fp8Recipe> {
  static constexpr Spelling<Fp8Recipe> all[] = {
      {Fp8Recipe::None, "none", "matmuls are in the compute type"},
      {Fp8Recipe::Tensorwise, "tensorwise", "one scale for a tensor"},
      {Fp8Recipe::Rowwise, "rowwise", "one scale for a row"}};
};

enum class LaunchFrom { Graph, Host };
template <> struct Spellings<LaunchFrom> {
  static constexpr Spelling<LaunchFrom> all[] = {
      {LaunchFrom::Graph, "graph", "a step is one launch"},
      {LaunchFrom::Host, "host", "the host issues every kernel"}};
};

struct SoftwareProfile {
  std::string name, description;

  /// Shares of the peak; 0: the machine's.
  struct Attention {
    double forward = 0, backward = 0;
  } attention;

  /// Factors on what the machine file says that is reached.
  struct Scale {
    double matmul = 1, fp8 = 1, memory = 1;
    /// On the time of collectives.
    double collective = 1;
  } scale;

  struct Kernels {
    PointwiseKernels pointwise = PointwiseKernels::Fused;
    Fp8Recipe fp8 = Fp8Recipe::None;
  } kernels;

  struct Launch {
    LaunchFrom from = LaunchFrom::Graph;
    /// Of the host, for every module that is sharded by itself, and pass.
    double moduleSeconds = 0;
  } launch;
};

/// As loadMachine, readMachine, builtInMachines, toToml and fingerprintOf.
SoftwareProfile loadProfile(const std::string &nameOrPath);
SoftwareProfile readProfile(const std::string &text, const std::string &path);
std::vector<std::string> builtInProfiles();
std::string toToml(const SoftwareProfile &profile);
std::string fingerprintOf(const SoftwareProfile &profile);

} // namespace fsdp

#endif // FSDP_MACHINE_SOFTWAREPROFILE_H
