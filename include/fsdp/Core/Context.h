//===- Context.h - Making and running a context -----------------*- C++ -*-===//
//
// What a host program (fsdp-run, a test) needs around a compiled artifact:
// joining the job, making the context of this rank, running programs, and a
// few helpers across ranks. Generated code does not include this header.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_CORE_CONTEXT_H
#define FSDP_CORE_CONTEXT_H

#include "fsdp/Runtime/Artifact.h"
#include "fsdp/Target/Target.h"
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fsdp::rt {

//===----------------------------------------------------------------------===//
// The job
//===----------------------------------------------------------------------===//

/// This process among all processes of the job.
struct World {
  int rank = 0;
  int size = 1;
};

/// Joins the job that a launcher (mpirun, srun) started; without a launcher
/// the job is this process alone and MPI is not touched. Uses MPI as it is if
/// somebody has already initialised it. May be called again.
World joinWorld();
/// Ends MPI if joinWorld() began it. Every rank calls it before it exits.
void leaveWorld();
/// Prints `message` with the rank and ends every process of the job.
[[noreturn]] void abortWorld(const std::string &message, int exitCode = 1);

void barrier();
void broadcast(void *data, int64_t bytes, int root = 0);
/// Sums over all ranks in the order of ranks, the same bits everywhere.
void allReduceSum(double *values, int count);
/// Rank `root` gets the `bytes` of each rank one after the other; `all` may be
/// null elsewhere.
void gather(const void *mine, int64_t bytes, void *all, int root = 0);

//===----------------------------------------------------------------------===//
// A context
//===----------------------------------------------------------------------===//

/// Bytes of the arena.
struct ArenaRange {
  uint64_t offset, bytes;
};

/// What the host hands a program, and what it takes from it.
struct ProgramExchange {
  std::vector<ArenaRange> inputs, outputs;
};

struct ContextOptions {
  /// Compute threads of this rank.
  int threads = 1;
  /// Sizes of the mesh's axes in order, the first axis slowest. Their product
  /// is the number of ranks.
  std::vector<int64_t> meshAxes;
  /// A collective that takes longer ends the job with a message that names
  /// it. 0: environment FSDP_TIMEOUT, or 300 seconds.
  double timeoutSeconds = 0;
  /// Writes a Chrome trace to PREFIX.<rank>.json; see writeTrace().
  /// Empty: environment FSDP_TRACE, or no trace.
  std::string tracePrefix;
  /// False: whatever is set, no trace.
  bool isTraced = true;
  /// False: no heartbeats beyond those of another context or of none, for an
  /// artifact that has no collectives.
  bool isMonitored = true;
  /// For the trace: by program, by call in the order of issue, what the call is
  /// of. Empty, also for single calls: not known.
  std::vector<std::vector<std::string>> callNames;
  /// What the artifact's code was compiled for, as in its manifest. Empty: not
  /// checked.
  std::string target;
  /// Where a runtime may keep what it has measured of this machine. Empty:
  /// nothing is measured.
  std::string cacheFolder;
  /// By program; a program without an entry exchanges nothing.
  std::vector<ProgramExchange> exchanges;
  /// The programs of a training step in the order in which they run.
  std::vector<int> step;
  /// On a GPU a step is one CUDA graph from the second on, unless a trace times
  /// its launches; false: its calls are issued anew each time. Nothing to a
  /// CPU.
  bool graphs = true;
};

/// What a runtime has of a rank: its arena, streams and prepared work. Each
/// target's runtime has a class of its own (CpuContext, CudaContext), and a
/// process is linked with one of them.
class Context {
public:
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

protected:
  Context() = default;
  ~Context() = default;
};

struct ContextDeleter {
  void operator()(Context *context) const;
};
using ContextPtr = std::unique_ptr<Context, ContextDeleter>;

/// Creates the context of this rank: arena (zeroed), communicators, threads,
/// matmul primitives. Collective over all ranks. Null with `error` set if the
/// artifact does not fit this machine or job.
ContextPtr createContext(const fsdp_artifact &artifact,
                         const ContextOptions &options, std::string &error);

/// Runs program `index` and waits for all its streams. False with `error` set
/// if the data was wrong, for example a token outside the vocabulary.
bool runProgram(Context &c, int index, std::string &error);

/// Gets the number of a call of Runtime.h in its program, from 0 in the order
/// of issue, when all streams are idle after it. May download(); must not
/// throw.
using ObserveCall = std::function<void(int64_t call)>;

/// As runProgram, to the bit, but every call is waited for and then handed to
/// `observe`: slow. On a GPU no step may be on its way.
bool observeProgram(Context &c, int index, const ObserveCall &observe,
                    std::string &error);

//===----------------------------------------------------------------------===//
// Training steps: the programs of ContextOptions::step, one after the other
//===----------------------------------------------------------------------===//

/// Writes at hostAddress() what the program at position `run` of a step takes.
using SetInputs = std::function<void(size_t run)>;

/// Begins a step, the run's `number`th. Calls `set` for every program of it, in
/// order; what the host
/// writes there once this has returned belongs to the next step. Steps run in
/// order; single programs only when all have ended.
void beginStep(Context &c, int64_t number, const SetInputs &set);
/// Waits for the end of the first step that has begun and not ended; then its
/// outputs are at hostAddress(). False with `error` set, which names the
/// program, if the data was wrong.
bool endStep(Context &c, std::string &error);
/// True if the next step may begin while the last one has not ended, two at
/// once. False where the last beginStep() returned when its step was over.
bool stepsOverlap(const Context &c);

/// Writes the trace, if there is one, of all that has run; what runs later is
/// traced no more. A context that dies before writes it itself, and one that
/// cannot be written is then a warning. Between programs. Throws fsdp::Error.
void writeTrace(Context &c);

/// Digest of the algorithms that a library chose for this machine and that
/// decide bits, equal on all ranks. Empty: none was chosen.
std::string algorithmDigest(const Context &c);

/// What the maker of a GPU calls it: "NVIDIA H200"; empty: there is none.
std::string deviceName(const Context &c);

/// Bytes of the arena, as allocated.
uint64_t arenaBytes(const Context &c);

//===----------------------------------------------------------------------===//
// The arena, seen by the host, which need not be able to address it
//===----------------------------------------------------------------------===//

/// Where the host reads and writes the range at `offset`, if some program
/// exchanges it: what is there when a program begins is its input, and after
/// the program its output is there. Null for other ranges, unless the host
/// computes in the arena itself.
std::byte *hostAddress(Context &c, uint64_t offset);

/// Gets a piece of a range: `bytes` of it from byte `first` on.
using TakePiece =
    std::function<void(const std::byte *piece, uint64_t first, uint64_t bytes)>;
/// Writes all of such a piece.
using FillPiece =
    std::function<void(std::byte *piece, uint64_t first, uint64_t bytes)>;

/// Hands the bytes of the arena to `take`, in order, in pieces of whole
/// elements: of a bounded size, or the whole where it lies. Between programs.
void download(Context &c, const ArenaRange &range, const TakePiece &take);
/// Sets the bytes of the arena to what `fill` makes of such pieces.
void upload(Context &c, const ArenaRange &range, const FillPiece &fill);

/// True if matmuls on bf16 use the CPU's bf16 instructions because they are
/// faster than f32; otherwise inputs are widened to f32, with the same
/// roundings. FSDP_NATIVE_BF16=0 switches them off, =1 on where they exist.
bool hasNativeBF16();

/// Workspace of a matmul with `threads` compute threads; -1 if this runtime's
/// library cannot do it. Needs no context.
int64_t gemmWorkspaceBytes(const GemmDesc &desc, int threads);

/// The target whose artifacts this runtime runs.
const Target &runtimeTarget();

} // namespace fsdp::rt

#endif // FSDP_CORE_CONTEXT_H
