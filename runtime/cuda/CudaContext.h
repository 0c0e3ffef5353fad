//===- CudaContext.h - The CUDA context, seen from inside -------*- C++ -*-===//
//
// One GPU of one rank. Everything that allocates or waits happens when the
// context is made; a program only issues work on streams, so that it may be
// captured in a CUDA graph.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_CUDACONTEXT_H
#define FSDP_RUNTIME_CUDA_CUDACONTEXT_H

#include "CudaTimeline.h"
#include "Progress.h"
#include "fsdp/Artifact/Mesh.h"
#include "fsdp/Core/Context.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Target/CollectivePieces.h"
#include "runtime/collectives/Groups.h"
#include "runtime/core/ObservedCall.h"
#include "runtime/core/RunPrograms.h"
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <map>
#include <nccl.h>
#include <optional>

namespace fsdp::rt {

//===----------------------------------------------------------------------===//
// Status of a library call
//===----------------------------------------------------------------------===//

const char *statusText(cudaError_t status);
const char *statusText(cublasStatus_t status);
const char *statusText(ncclResult_t status);
const char *statusText(cudnnStatus_t status);

/// Throws fsdp::Error that names `what`: for the making of a context.
template <typename Status> void require(Status status, const char *what) {
  if (status != Status(0))
    throw Error(std::string(what) + ": " + statusText(status));
}

/// While it lives this thread captures a CUDA graph of a stream. What a library
/// refuses then it may do in a run without graphs.
class Capturing {
public:
  /// Throws fsdp::Error.
  explicit Capturing(cudaStream_t stream);
  /// Gives up what end() did not end.
  ~Capturing();
  Capturing(const Capturing &) = delete;
  Capturing &operator=(const Capturing &) = delete;

  /// What was captured. Throws fsdp::Error.
  cudaGraph_t end();

private:
  const cudaStream_t stream;
  bool isOpen = true;
};

/// Seconds that a collective may take.
double timeoutOf(const ContextOptions &options);

/// On the step path, where nothing can be returned: ends the job, or throws
/// fsdp::Error under capture, where no work has begun.
[[noreturn]] void failOnStepPath(const std::string &problem);

template <typename Status> void check(Status status, const char *what) {
  if (status != Status(0))
    failOnStepPath(std::string(what) + ": " + statusText(status));
}
/// The same; that another rank has ended comes before what NCCL says of it.
void check(ncclResult_t status, const char *what);

//===----------------------------------------------------------------------===//
// What is prepared
//===----------------------------------------------------------------------===//

/// A matmul with its algorithm.
class GemmPlan {
public:
  GemmPlan(cublasLtHandle_t handle, const GemmDesc &desc);
  ~GemmPlan();
  GemmPlan(const GemmPlan &) = delete;
  GemmPlan &operator=(const GemmPlan &) = delete;

  /// What every algorithm must keep, as text: one that was chosen under other
  /// demands is none for this runtime.
  static std::string demands();
  /// What the library guesses to be fastest, the best guess first; at least
  /// one. Throws fsdp::Error if there is none.
  std::vector<cublasLtMatmulAlgo_t> candidates() const;
  const cublasLtMatmulAlgo_t &chosen() const { return algorithm; }
  /// The first candidate holds until then.
  void use(const cublasLtMatmulAlgo_t &other) { algorithm = other; }

  /// Rank 0's choice holds for all: an algorithm decides bits.
  void shareAlgorithm();
  /// Throws fsdp::Error if this GPU cannot use it.
  void checkAlgorithm() const;
  void run(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias, Ptr out,
           Ptr workspace) const;
  /// The same; false if the library refuses the algorithm.
  bool tryRun(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias, Ptr out,
              Ptr workspace) const;

private:
  void describe(const GemmDesc &desc);
  cublasStatus_t issue(cudaStream_t stream, Ptr lhs, Ptr rhs, Ptr bias, Ptr out,
                       Ptr workspace) const;
  bool isUsable(const cublasLtMatmulHeuristicResult_t &found) const;

  cublasLtHandle_t handle;
  uint64_t workspaceBytes;
  bool accumulate;
  cublasLtMatmulDesc_t operation = nullptr;
  /// cuBLASLt is column-major: it computes the transposed product, so its
  /// first operand is rhs.
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
};

/// Fused attention of cuDNN, forward and backward.
class AttentionPlan {
public:
  virtual ~AttentionPlan() = default;
  virtual void forward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out,
                       Ptr lse, Ptr workspace) = 0;
  virtual void backward(cudaStream_t stream, Ptr q, Ptr k, Ptr v, Ptr out,
                        Ptr lse, Ptr dout, Ptr dq, Ptr dk, Ptr dv,
                        Ptr workspace) = 0;
};
/// Throws fsdp::Error if cuDNN cannot do it or wants more workspace than the
/// compiler reserved; then the reference kernel computes it.
std::unique_ptr<AttentionPlan> makeAttentionPlan(cudnnHandle_t handle,
                                                 const AttentionDesc &desc);

/// Places of the host are whole lines, so that none shares one with another.
inline constexpr uint64_t kHostLine = 64;
inline constexpr uint64_t linesOf(uint64_t bytes) {
  return (bytes + kHostLine - 1) / kHostLine * kHostLine;
}

/// Memory of the host that the GPU copies from and to; zeroed.
class PinnedMemory {
public:
  explicit PinnedMemory(uint64_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory &) = delete;
  PinnedMemory &operator=(const PinnedMemory &) = delete;

  std::byte *address() const { return memory; }

private:
  std::byte *memory = nullptr;
};

/// Where the host has what a run of a program takes and gives.
struct HostPlaces {
  struct Place {
    ArenaRange range;
    std::byte *host;
  };
  std::vector<Place> inputs, outputs;
  unsigned *dataErrors = nullptr;
};

/// The places of programs that run one at a time, and room for a piece of
/// anything else.
class HostMemory {
public:
  explicit HostMemory(const std::vector<ProgramExchange> &exchanges);

  /// Null if no program exchanges the range.
  std::byte *address(uint64_t offset) const;
  HostPlaces placesOf(size_t program) const;

  static constexpr uint64_t kPieceBytes = 16 << 20;
  std::byte *piece() const { return memory->address(); }

private:
  const std::vector<ProgramExchange> exchanges;
  std::unique_ptr<PinnedMemory> memory;
  std::map<uint64_t, uint64_t> places; // in `memory`, by offset in the arena
};

/// A communicator of one group of ranks for one stream.
class NcclChannel {
public:
  /// Collective over the job: all ranks make their channels in one order.
  /// `nodeRanks` is that of the group's sums in two levels, or 0.
  NcclChannel(ncclComm_t world, const GroupDesc &group, int nodeRanks,
              const std::vector<int64_t> &meshAxes, int rank);
  ~NcclChannel();
  NcclChannel(const NcclChannel &) = delete;
  NcclChannel &operator=(const NcclChannel &) = delete;

  /// Lets NCCL use the arena in place and at the same place of every rank's,
  /// where programs have the tensors of a collective. Collective over the
  /// group. False where NCCL makes no window, as without direct access between
  /// ranks.
  bool makeWindow(Ptr arena, uint64_t bytes);
  /// Lets NCCL use the own arena in place; false if it cannot.
  bool registerArena(Ptr arena, uint64_t bytes);
  /// Undoes both.
  void deregister();

  void run(CudaContext &c, Stream stream, const CollectiveDesc &desc,
           const Ptr *in, const Ptr *out, const Ptr *workspace) const;

  /// What NCCL's own threads have found. Any thread.
  ncclResult_t asynchronousError() const;
  /// Ends what runs and waits. The channel must not be used or destroyed then.
  void abort() const { ncclCommAbort(communicator); }

private:
  void allGather(cudaStream_t stream, const CollectiveDesc &desc, const Ptr *in,
                 const Ptr *out) const;
  void reduceFast(cudaStream_t stream, const CollectiveDesc &desc,
                  const Ptr *in, const Ptr *out) const;
  void reduceParts(cudaStream_t stream, const CollectiveDesc &desc, int item,
                   Ptr in, Ptr out) const;
  int64_t roundsOf(const CollectiveDesc &desc) const;
  Part partInRound(const CollectiveDesc &desc, int item, int r,
                   int64_t round) const;
  void exchange(cudaStream_t stream, const CollectiveDesc &desc, int64_t round,
                const Ptr *in, const Ptr *workspace) const;
  void exchangeItem(cudaStream_t stream, const CollectiveDesc &desc, int item,
                    int64_t round, Ptr in, Ptr space) const;
  Ptr received(const CollectiveDesc &desc, int item, Ptr space) const;
  void exchangeInside(cudaStream_t stream, const CollectiveDesc &desc, int item,
                      int64_t round, Ptr in, Ptr space) const;
  void addInside(CudaContext &c, Stream stream, const CollectiveDesc &desc,
                 int64_t round, const Ptr *in, const Ptr *workspace) const;
  void exchangeBetween(cudaStream_t stream, const CollectiveDesc &desc,
                       int64_t round, const Ptr *workspace) const;
  void fillPadding(CudaContext &c, Stream stream, const CollectiveDesc &desc,
                   const Ptr *out) const;
  void gatherParts(cudaStream_t stream, const CollectiveDesc &desc,
                   const Ptr *out) const;
  void gatherPart(cudaStream_t stream, const CollectiveDesc &desc, int item,
                  int peer, int mine, int theirs, Ptr out) const;
  void swap(cudaStream_t stream, const CollectiveDesc &desc, int peer, Ptr send,
            int64_t sendBytes, Ptr receive, int64_t receiveBytes) const;
  void addOwnParts(CudaContext &c, Stream stream, const CollectiveDesc &desc,
                   int64_t round, const Ptr *in, const Ptr *out,
                   const Ptr *workspace) const;
  int size() const { return int(ranks.size()); }

  std::vector<int> ranks; // of the job, in the group's order
  RankTree tree;
  int me = 0; // position in `ranks`
  std::optional<NodeLevels> levels;
  ncclComm_t communicator = nullptr;
  ncclWindow_t window = nullptr;
  void *registration = nullptr;
};

//===----------------------------------------------------------------------===//
// The context
//===----------------------------------------------------------------------===//

/// The pairs of a stream and a group that have a collective, as
/// CudaContext::channels.
using ChannelSurvey = std::vector<bool>;

class Steps;
class CudaProbe;

class CudaContext : public Context {
public:
  CudaContext();
  ~CudaContext();

  const fsdp_artifact *artifact = nullptr;
  World world;
  Ptr arena = nullptr;
  cudaStream_t streams[kStreams] = {};
  std::vector<cudaEvent_t> events;
  unsigned *dataErrors = nullptr; // on the device
  std::unique_ptr<HostMemory> host;
  /// Marks what a program waits for when it begins: its inputs. Then, by
  /// stream, what the host waits for at its end.
  cudaEvent_t begun = nullptr, ended[kStreams] = {};

  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  ncclComm_t worldCommunicator = nullptr;
  std::vector<std::unique_ptr<GemmPlan>> gemms;
  std::vector<std::unique_ptr<AttentionPlan>> attentions; // null: the reference
  /// This rank's place in every group.
  std::vector<Coordinate> places;
  /// By (stream, group): a communicator carries one total order. Null for a
  /// group without a collective.
  std::vector<std::unique_ptr<NcclChannel>> channels;

  /// Null without a trace.
  std::unique_ptr<CudaTimeline> timeline;

  std::unique_ptr<Steps> steps;

  /// Null without heartbeats, or where a GPU cannot write counters.
  std::unique_ptr<Progress> progress;
  /// Null without a channel, or for a rank that is alone.
  std::unique_ptr<CudaProbe> probe;

  /// Null but while a program is observed.
  CallObserver *observer = nullptr;
  /// Set while a program is asked for its channels and issues nothing.
  ChannelSurvey *survey = nullptr;

  cudaStream_t stream(Stream s) const { return streams[int(s)]; }
  /// Position in `channels`.
  size_t channelOf(Stream s, int group) const {
    return size_t(s) * size_t(artifact->groups) + size_t(group);
  }
};

/// Every context of this runtime is one.
inline CudaContext &cudaContext(Context &context) {
  return static_cast<CudaContext &>(context);
}
inline const CudaContext &cudaContext(const Context &context) {
  return static_cast<const CudaContext &>(context);
}

/// Connects the ranks by the communicators that programs use, with the arena
/// registered. Collective. Throws fsdp::Error.
void createChannels(CudaContext &c, const ContextOptions &options);

/// Issues a program with its inputs and outputs and waits for nothing, so that
/// it may be captured.
void issueProgram(CudaContext &c, int index, const HostPlaces &host);

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_CUDACONTEXT_H
