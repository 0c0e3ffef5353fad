//===- Agreement.h - What ranks decide together -----------------*- C++ -*-===//
//
// A rank alone meets an error, gets a signal, sees a full disk; all ranks go on
// or end together. Everything here is collective over the job.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_AGREEMENT_H
#define FSDP_RUNTIME_TRAIN_AGREEMENT_H

#include "fsdp/Core/Context.h"
#include <functional>
#include <string>

namespace fsdp {

/// The ranks on which something went wrong.
struct Failures {
  int count = 0;
  int first = -1; // of these ranks
};

/// `problem`: what is wrong on this rank; empty: nothing.
Failures countFailures(rt::World world, const std::string &problem);

/// Does not return where a rank has failed: the first that did throws
/// fsdp::Error with its problem, which ends the others while they wait.
void requireSuccess(rt::World world, const std::string &problem);

/// What `act` throws on this rank, as text; empty: nothing.
std::string problemOf(const std::function<void()> &act);

/// The text of a rank, on all of them.
std::string broadcastText(std::string text, int root = 0);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_AGREEMENT_H
