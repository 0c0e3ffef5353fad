//===- RankVariable.h - Variables that name a rank --------------*- C++ -*-===//
#ifndef FSDP_TEST_FAKECUDA_RANKVARIABLE_H
#define FSDP_TEST_FAKECUDA_RANKVARIABLE_H

#include <cstdlib>
#include <cstring>

namespace fsdp::fake {

/// True if the variable says `all`, or the number of this process's rank.
inline bool namesThisRank(const char *variable) {
  const char *named = std::getenv(variable), *rank = std::getenv("RANK");
  return named && (std::strcmp(named, "all") == 0 ||
                   (rank && std::strcmp(named, rank) == 0));
}

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_RANKVARIABLE_H
