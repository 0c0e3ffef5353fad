//===- WithoutLocks.h - A kernel without file locks -------------*- C++ -*-===//
#ifndef FSDP_TEST_UNIT_RUNTIME_WITHOUTLOCKS_H
#define FSDP_TEST_UNIT_RUNTIME_WITHOUTLOCKS_H

#include <cerrno>
#include <cstddef>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>

namespace fsdp::test {

/// Calls `function` on a thread for which flock fails with ENOSYS, as on some
/// file systems. Returns false if the system cannot pretend that.
template <typename Function> bool withoutLocks(Function function) {
  bool pretends = false;
  std::thread([&] {
    sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_flock, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    sock_fprog filter{4, program};
    pretends = prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
               prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
    if (pretends)
      function();
  }).join();
  return pretends;
}

} // namespace fsdp::test

#endif // FSDP_TEST_UNIT_RUNTIME_WITHOUTLOCKS_H
