//===- Kernels.h - Twins of kernels and the launches of them ----*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_KERNELS_H
#define FSDP_TEST_FAKECUDA_KERNELS_H

#include "../twins/Twin.h"
#include "Memory.h"

namespace fsdp::fake {

/// Loads a library of twins. Throws std::runtime_error.
void loadTwins(const std::string &path);

/// The number of the twin with this mangled name. Throws if there is none.
uint32_t findTwin(const std::string &name);
const Twin &twin(uint32_t number);

/// What a reader calls a kernel: its name without types.
std::string shortName(const char *mangled);

/// Checks the geometry and the arguments as a GPU would, and more: pointers
/// lead into live memory of the process. Throws std::runtime_error.
void checkLaunch(const Memory &memory, const Process &process, const Launch &l,
                 const std::vector<char> &arguments);
void runLaunch(const Launch &l, const std::vector<char> &arguments);

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_KERNELS_H
