//===- Kernels.h - Host builds of kernels and their launches ----*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_KERNELS_H
#define FSDP_TEST_FAKECUDA_KERNELS_H

#include "../host-builds/HostBuild.h"
#include "Memory.h"

namespace fsdp::fake {

/// Loads a library of host builds. Throws std::runtime_error.
void loadHostBuilds(const std::string &path);

/// The number of the host build with this mangled name. Throws if there is
/// none.
uint32_t findHostBuild(const std::string &name);
const HostBuild &hostBuild(uint32_t number);

/// What a reader calls a kernel: its name without types.
std::string shortName(const char *mangled);

/// Checks the geometry and the arguments as a GPU would, and more: pointers
/// lead into live memory of the process. Throws std::runtime_error.
void checkLaunch(const Memory &memory, const Process &process, const Launch &l,
                 const std::vector<char> &arguments);
void runLaunch(const Launch &l, const std::vector<char> &arguments);

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_KERNELS_H
