//===- HostList.h - What Slurm lists by machine -----------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_RENDEZVOUS_HOSTLIST_H
#define FSDP_RUNTIME_RENDEZVOUS_HOSTLIST_H

#include <string>

namespace fsdp::rt {

/// What a job must know of the machines that it runs on.
struct HostList {
  std::string first;
  bool hasOthers;
};

/// Reads a list like "node[01-04,7],other". Throws fsdp::Error that begins with
/// `variable` if it is none.
HostList parseHostList(const std::string &text, const std::string &variable);

/// Entry `host` (from 0) of a list like "8(x2),4": 8, 8, 4. `variable` and
/// `hostVariable` are where they come from: throws fsdp::Error that names these
/// if the list is none or has no such entry.
int parseTasksOfHost(const std::string &text, const std::string &variable,
                     int host, const std::string &hostVariable);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RENDEZVOUS_HOSTLIST_H
