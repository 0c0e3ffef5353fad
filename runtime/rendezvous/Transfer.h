//===- Transfer.h - All bytes through a socket ------------------*- C++ -*-===//
#ifndef FSDP_RUNTIME_RENDEZVOUS_TRANSFER_H
#define FSDP_RUNTIME_RENDEZVOUS_TRANSFER_H

#include <chrono>
#include <cstddef>

namespace fsdp::rt {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

/// Milliseconds for poll until `end`, at most a minute.
int millisecondsUntil(Time end);

/// Waits for what poll calls `events`. False: not before `end`.
bool await(int socket, short events, Time end);

/// Sends or receives all bytes, at a socket that waits or one that does not.
/// False if the other end has gone, or not before `end`.
bool sendAll(int socket, const void *data, size_t bytes,
             Time end = Time::max());
bool receiveAll(int socket, void *data, size_t bytes, Time end = Time::max());

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_RENDEZVOUS_TRANSFER_H
