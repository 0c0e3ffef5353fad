//===- Wire.h - Between the stand-in libraries and the device ---*- C++ -*-===//
//
// The libraries in client/ turn calls of CUDA, cuBLASLt and NCCL into these
// messages; the server in device/ executes them. Both are built together, so
// messages are plain structures as they lie in memory.
//
// A message is a Header, the structure of its call, and for some calls bytes
// after it. Calls that issue work are not answered unless the header asks for
// it; all others get an Answer: their result, or the text of an error.
//
// Streams, events, communicators and graphs have numbers given by the process
// that makes them. Addresses are the same in all processes.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_FAKECUDA_WIRE_H
#define FSDP_TEST_FAKECUDA_WIRE_H

#include "fsdp/Runtime/Types.h"

namespace fsdp::fake {

/// The environment variable with the name of the device's socket.
inline constexpr const char *kSocketVariable = "FSDP_FAKECUDA_SOCKET";

/// The stream of a process that nobody makes.
inline constexpr uint32_t kLegacyStream = 0;

/// A shard of the address space for the device's memory: outside of what the
/// kernel gives to programs, so that every process can map it.
inline constexpr uint64_t kFirstAddress = uint64_t(1) << 45;
inline constexpr uint64_t kEndOfAddresses = uint64_t(1) << 46;
inline constexpr uint64_t kPage = 4096;

inline constexpr uint64_t pagesOf(uint64_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

enum class Call : uint32_t {
  // Answered.
  Hello,
  Allocate,
  Free,
  FindKernel,
  CopyOut,
  Synchronize,
  IsDone,
  EventSynchronize,
  EventIsDone,
  EventElapsed,
  UniqueId,
  CommInit,
  CommSplit,
  CommDestroy,
  BeginCapture,
  EndCapture,
  CaptureInfo,
  Instantiate,
  // Not answered, but while the process captures.
  CreateStream,
  DestroyStream,
  DestroyEvent,
  Record,
  Wait,
  Launch,
  CopyIn,
  Copy,
  Fill,
  Write,
  Gemm,
  Attention,
  CommAbort,
  Register,
  Deregister,
  Group,
  GraphLaunch,
  DestroyGraph,
  DestroyExecutable,
  // Of planted faults.
  Hang,
  StaleCopy,
  Planted,
};

inline constexpr bool isAnswered(Call call) {
  return call <= Call::Instantiate;
}

struct Header {
  Call call;
  uint32_t thread; // of the process
  /// Also a call that issues work is answered: what is captured can be refused.
  bool isAsked;
  uint64_t bytes; // of all that follows
};

/// A refused call has the number of an error of CUDA before its text, and
/// the process goes on.
enum class Status : int32_t { Done, NotYet, OutOfMemory, Refused, Failed };

struct Answer {
  Status status;
  uint64_t bytes; // of the result, or of the text of an error
};

struct Hello {
  int32_t rank; // of the job, -1 if the environment does not say
};

struct Allocate {
  uint64_t bytes;
  bool isHost; // pinned: the host may use it too
};
/// The memory's file comes along with the answer.
struct Allocated {
  uint64_t address;
};
struct Free {
  uint64_t address;
};

/// Also of a synchronisation: of one stream, or with `all` of the process.
struct StreamCall {
  uint32_t stream;
  int32_t priority;
  bool all;
};
struct EventCall {
  uint32_t event, stream;
};

/// The answer: a float of milliseconds.
struct EventPair {
  uint32_t first, last;
};

/// After it: the mangled name. The answer: KernelInfo and a byte count for
/// every argument.
struct FindKernel {};
struct KernelInfo {
  uint32_t kernel, arguments;
};
/// After it: the arguments' bytes, one after the other.
struct Launch {
  uint32_t stream, kernel;
  uint32_t grid[3], block[3];
};

/// What else is refused while a stream is captured, as in cudart: things of all
/// threads, those of the capturing one, or nothing.
enum class CaptureMode : uint32_t { Global, ThreadLocal, Relaxed };
struct BeginCapture {
  uint32_t stream;
  CaptureMode mode;
};
/// `graph` is the number of what becomes of it.
struct EndCapture {
  uint32_t stream, graph;
};
/// Asked with a StreamCall.
struct CaptureInfo {
  enum class State : uint32_t { None, Active, Invalidated };
  State state;
  uint64_t id;
};
/// Nodes have the priorities of the streams that they were captured on, or the
/// one of the stream that a graph is launched on.
struct Instantiate {
  uint32_t graph, executable;
  bool keepsPriorities;
};
/// Also of DestroyGraph and DestroyExecutable.
struct GraphCall {
  uint32_t graph, stream;
};

/// A kernel that never ends.
struct Hang {
  uint32_t stream;
};
/// The process has planted a fault itself.
struct Planted {};

/// CopyIn has the bytes after it; CopyOut gets them as the answer when the
/// stream has come so far.
struct HostCopy {
  uint32_t stream;
  uint64_t address, bytes;
};
struct Copy {
  uint32_t stream;
  uint64_t from, to, bytes;
};
struct Fill {
  uint32_t stream;
  uint32_t value;
  uint64_t address, bytes;
};

/// A word of pinned memory.
struct Write {
  uint32_t stream;
  uint64_t address, value;
};

struct Gemm {
  uint32_t stream;
  rt::GemmDesc desc;
  uint64_t lhs, rhs, bias, out, workspace, workspaceBytes;
  /// Of an algorithm that another one beats, and of one with bits of its own.
  bool isSlow, isOther;
};

/// Addresses in the order of AttentionPlan's functions.
struct Attention {
  uint32_t stream;
  bool isBackward;
  rt::AttentionDesc desc;
  uint64_t q, k, v, out, lse, dout, dq, dk, dv, workspace;
};

struct UniqueId {
  uint64_t value;
};
struct CommInit {
  uint64_t id;
  uint32_t comm;
  int32_t rank, size;
};
/// A negative colour takes part in the split and in no new communicator.
struct CommSplit {
  uint32_t parent, comm;
  int32_t color, key;
};
struct CommPlace {
  int32_t rank, size;
};
/// Also of CommAbort.
struct CommDestroy {
  uint32_t comm;
};
struct Registration {
  uint32_t comm;
  bool isSymmetric; // a window of all ranks
  uint64_t address, bytes;
};

/// All but sends and receives are of all ranks of the communicator.
enum class TransferKind : uint32_t {
  AllGather,
  Send,
  Receive,
  Reduce,
  ReduceScatter,
  AllReduce
};
/// What a reduction adds.
enum class SumType : uint32_t { None, F32, I64 };
struct Transfer {
  TransferKind kind;
  int32_t peer; // of a send or receive; the root of a Reduce
  uint64_t from, to;
  uint64_t bytes; // of what a rank gives, for a ReduceScatter of what it gets
  SumType sum = SumType::None;
};
/// After it: the transfers of one group call on one communicator.
struct Group {
  uint32_t stream, comm;
};

} // namespace fsdp::fake

#endif // FSDP_TEST_FAKECUDA_WIRE_H
