//===- Kernels.cpp - Host builds of kernels and launches of them ----------===//
#include "Kernels.h"
#include <cstdlib>
#include <cstring>
#include <cxxabi.h>
#include <dlfcn.h>
#include <stdexcept>

using namespace fsdp::fake;

namespace {

struct HostBuilds {
  std::vector<const HostBuild *> all;
  std::map<std::string, uint32_t> byName;
};

HostBuilds &hostBuilds() {
  static HostBuilds t;
  return t;
}

} // namespace

void fsdp_fake_announce(const HostBuild *build) {
  bool isNew =
      hostBuilds()
          .byName.emplace(build->name, uint32_t(hostBuilds().all.size()))
          .second;
  if (!isNew) {
    std::fprintf(stderr, "fakecuda: two host builds of %s\n", build->name);
    std::exit(1);
  }
  hostBuilds().all.push_back(build);
}

void fsdp::fake::loadHostBuilds(const std::string &path) {
  // Lazily: what only the launchers in there call is undefined.
  if (!dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL))
    throw std::runtime_error(std::string("cannot load host builds: ") +
                             dlerror());
}

uint32_t fsdp::fake::findHostBuild(const std::string &name) {
  auto found = hostBuilds().byName.find(name);
  if (found == hostBuilds().byName.end())
    throw std::runtime_error("no host build of the kernel " + name +
                             "; FSDP_FAKECUDA_TWINS names libraries of them");
  return found->second;
}

const HostBuild &fsdp::fake::hostBuild(uint32_t number) {
  return *hostBuilds().all.at(number);
}

std::string fsdp::fake::shortName(const char *mangled) {
  char *full = abi::__cxa_demangle(mangled, nullptr, nullptr, nullptr);
  std::string name = full ? full : mangled;
  std::free(full);
  // A function template has its result in front.
  name = name.substr(0, name.find('('));
  size_t result = name.rfind(' ', name.find('<'));
  return result == std::string::npos ? name : name.substr(result + 1);
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// Limits of every GPU since compute capability 3.
static void checkGeometry(const Launch &l, const std::string &name) {
  uint64_t threads = uint64_t(l.block[0]) * l.block[1] * l.block[2];
  bool fits = threads > 0 && threads <= 1024 && l.block[2] <= 64 &&
              l.grid[0] > 0 && l.grid[0] <= 2147483647u && l.grid[1] > 0 &&
              l.grid[1] <= 65535 && l.grid[2] > 0 && l.grid[2] <= 65535;
  if (!fits)
    throw std::runtime_error(name + ": a grid or block that no GPU takes");
  if (l.block[2] != 1)
    throw std::runtime_error(name + ": the shim has blocks of two dimensions");
}

void fsdp::fake::checkLaunch(const Memory &memory, const Process &process,
                             const Launch &l,
                             const std::vector<char> &arguments) {
  const HostBuild &t = hostBuild(l.kernel);
  std::string name = shortName(t.name);
  checkGeometry(l, name);
  size_t at = 0;
  for (uint32_t i = 0; i < t.count; ++i) {
    uint64_t address = 0;
    if (t.parameters[i].isPointer)
      std::memcpy(&address, arguments.data() + at, sizeof address);
    if (address != 0)
      memory.require(process, address, 0,
                     name + ", argument " + std::to_string(i));
    at += t.parameters[i].bytes;
  }
}

void fsdp::fake::runLaunch(const Launch &l,
                           const std::vector<char> &arguments) {
  const HostBuild &t = hostBuild(l.kernel);
  // Each argument at an address that suits every type.
  std::vector<std::vector<char>> values;
  std::vector<void *> addresses;
  size_t at = 0;
  for (uint32_t i = 0; i < t.count; ++i) {
    const char *from = arguments.data() + at;
    values.emplace_back(from, from + t.parameters[i].bytes);
    addresses.push_back(values.back().data());
    at += t.parameters[i].bytes;
  }
  t.run(l.grid, l.block, addresses.data());
}
