//===- Machine.h - What a kind of machine can do ----------------*- C++ -*-===//
//
// A machine file says how fast a rank computes, reads its memory and talks to
// other ranks; docs/machines.md explains every key. It is chosen by name or
// path and never measured while a program is compiled, so that the same input
// gives the same plan everywhere. CostModel.h turns it into times.
//
// Units: bytes, seconds, bytes per second (10^9 B/s is a GB/s), flop per
// second, and shares between 0 and 1. Collectives are measured as nccl-tests
// does: bytes are the full message (what an all_gather gives, a reduce_scatter
// takes, an all_reduce holds), algbw is bytes / seconds, busbw is algbw
// (n-1)/n, and algbw 2(n-1)/n for an all_reduce.
//
// A number that is 0 is not stated. No MLIR here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MACHINE_MACHINE_H
#define FSDP_MACHINE_MACHINE_H

#include "fsdp/Config/Spelling.h"
#include "fsdp/Runtime/Types.h"
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace fsdp {

enum class MathType { F32, BF16, FP8 };
template <> struct Spellings<MathType> {
  static constexpr Spelling<MathType> all[] = {
      {MathType::F32, "f32"}, {MathType::BF16, "bf16"}, {MathType::FP8, "fp8"}};
};

/// Which operands of a product lie transposed, as GemmDesc says.
enum class Layout { NN, NT, TN, TT };
template <> struct Spellings<Layout> {
  static constexpr Spelling<Layout> all[] = {{Layout::NN, "nn"},
                                             {Layout::NT, "nt"},
                                             {Layout::TN, "tn"},
                                             {Layout::TT, "tt"}};
};
constexpr Layout layoutOf(bool transposeLhs, bool transposeRhs) {
  return transposeLhs ? (transposeRhs ? Layout::TT : Layout::TN)
                      : (transposeRhs ? Layout::NT : Layout::NN);
}

enum class AttentionPass { Forward, Backward };
template <> struct Spellings<AttentionPass> {
  static constexpr Spelling<AttentionPass> all[] = {
      {AttentionPass::Forward, "forward"},
      {AttentionPass::Backward, "backward"}};
};

/// How the last, partly filled wave of a matmul's tiles counts.
enum class WaveFilling { None, SquareRoot, Linear };
template <> struct Spellings<WaveFilling> {
  static constexpr Spelling<WaveFilling> all[] = {
      {WaveFilling::None, "none", "not at all"},
      {WaveFilling::SquareRoot, "sqrt", "the rate falls with the square root"},
      {WaveFilling::Linear, "linear", "it takes as long as a full one"}};
};

/// Whose sums over ranks: the project's own, in one fixed order, as an exchange
/// of the pieces and a local kernel; the same in two levels, inside nodes and
/// then between them; or the library's (NCCL's), in its own order.
enum class Sums { Exact, ExactTwoLevels, Fast };
template <> struct Spellings<Sums> {
  static constexpr Spelling<Sums> all[] = {
      {Sums::Exact, "exact"},
      {Sums::ExactTwoLevels, "exact_two_levels"},
      {Sums::Fast, "fast"}};
};

template <> struct Spellings<rt::CollectiveKind> {
  using Kind = rt::CollectiveKind;
  static constexpr Spelling<Kind> all[] = {
      {Kind::AllGather, rt::kCollectiveNames[0]},
      {Kind::ReduceScatter, rt::kCollectiveNames[1]},
      {Kind::AllReduce, rt::kCollectiveNames[2]}};
};

/// A group of ranks: as many in each of so many nodes.
struct GroupShape {
  int64_t ranksPerNode = 1, nodes = 1;

  int64_t ranks() const { return ranksPerNode * nodes; }
};
inline bool operator==(GroupShape a, GroupShape b) {
  return a.ranksPerNode == b.ranksPerNode && a.nodes == b.nodes;
}

/// Kernels that are no single op: fused ones that add and multiply, those that
/// compute exp or the like for every element, and of these those in bf16, which
/// move half the bytes for it; copies, casts of f32 to bf16, and the optimizer.
inline constexpr const char *kPointwiseKernel = "pointwise";
inline constexpr const char *kExpensiveKernel = "expensive";
inline constexpr const char *kExpensiveBF16Kernel = "expensive_bf16";
inline constexpr const char *kCopyKernel = "copy";
inline constexpr const char *kNarrowKernel = "narrow";
inline constexpr const char *kUpdateKernel = "update";

struct Machine {
  std::string name, description;

  struct Device {
    int64_t memoryBytes = 0;
    int64_t ranksPerNode = 0;
    /// Units that a kernel's tiles are spread over: SMs, or cores.
    int64_t multiprocessors = 0;
    /// Between a rank and the host's memory, one way.
    double hostBytesPerSecond = 0;
  } device;

  /// Peak flop/s of dense matmuls by type, and the share of that at which the
  /// clock runs under load.
  struct Compute {
    double f32 = 0, bf16 = 0, fp8 = 0;
    double clockShare = 1;
  } compute;

  /// Matmuls reach share * K / (K + k_half) of the peak, less what the last
  /// wave of tiles leaves empty.
  struct Matmul {
    double share = 0;
    double kHalf = 0;
    int64_t tileRows = 0, tileColumns = 0;
    WaveFilling waveFilling = WaveFilling::None;
  } matmul;

  /// Shares of the peak that fused attention reaches.
  struct Attention {
    double forward = 0, backward = 0;
  } attention;

  struct Memory {
    double bytesPerSecond = 0;
    /// What kernels reach of it.
    double share = 0;
  } memory;

  struct Launch {
    /// Of every kernel on the device, beside what its work takes.
    double kernelSeconds = 0;
    /// Of the host, to issue one kernel where no graph does.
    double hostSeconds = 0;
  } launch;

  /// While a collective of a stream runs, compute takes 1 + this times as long.
  struct Slowdown {
    double gather = 0, reduce = 0, copy = 0;
    /// While compute runs, a collective takes 1 + this times as long.
    double collective = 0;
  } slowdown;

  /// What exact sums take (CostModel.h has the formula).
  struct Exact {
    double latencySeconds = 0;
    /// Inside a node, busbw.
    double busBytesPerSecond = 0;
    /// What the local kernel moves in memory, per byte of the message.
    double kernelBytes = 0;
    double kernelBytesPerSecond = 0;
    /// Of one rank to other nodes.
    double networkBytesPerSecond = 0;
    /// Least time of one message to another node.
    double messageSeconds = 0;
    /// What a rank exchanges at once. 0: all of a message.
    int64_t roundBytes = 0;
  } exact;

  /// A rank's own part of the network between nodes, as rings reach it.
  struct Network {
    double bytesPerSecond = 0;
  } network;

  /// (x, y) with x ascending. y between two of them is a power of x.
  using Points = std::vector<std::pair<double, double>>;

  /// Shares of a bandwidth that small messages reach.
  struct Ramp {
    std::string name;
    Points points; // bytes per rank, share
  };
  std::vector<Ramp> ramps;

  /// NCCL's model of rings, for groups without a curve.
  struct Protocol {
    std::string name;
    double baseSeconds = 0, hopSeconds = 0;
    /// Of a step between nodes, and of one where a node has one rank.
    double networkHopSeconds = 0, loneNetworkHopSeconds = 0;
    /// Least time of a step inside a node, where there are several.
    double overheadSeconds = 0;
    /// Of a ring's bandwidth, and what it cannot pass: in one node, in two, in
    /// more.
    double share = 1;
    double nodeLimit = 0, twoNodeLimit = 0, networkLimit = 0;
    /// On the latency of an all_reduce over several nodes.
    double allReduceLatency = 1;
  };
  struct Ring {
    /// Of a ring inside a node, busbw.
    double busBytesPerSecond = 0;
    /// What bounds the ring between nodes beside the network; 0: nothing.
    double networkLimit = 0;
    /// A ramp, where all ranks of several nodes take part; "": none.
    std::string ramp;
    std::vector<Protocol> protocols;
  } ring;

  /// What was measured for three sizes, elements.
  struct Rate {
    std::array<double, 3> sizes;
    double flopsPerSecond = 0;
  };
  using Rates = std::vector<Rate>;
  /// Matmuls of one type and layout; sizes are m, n and k.
  struct Product {
    MathType type = MathType::F32;
    Layout layout = Layout::NN;
    Rates rates;
  };
  std::vector<Product> products;
  /// Attention in one direction; sizes are queries, keys and the elements of a
  /// head. Operations are counted as CostModel::attention does.
  struct AttentionRates {
    MathType type = MathType::F32;
    AttentionPass pass = AttentionPass::Forward;
    Rates rates;
  };
  std::vector<AttentionRates> attentions;
  /// A kernel that no library computes, by the bytes that it reads and writes.
  /// The name is that of an op of the model ("cross_entropy"), or one of those
  /// below.
  struct Kernel {
    std::string name;
    Points points; // bytes, seconds
  };
  std::vector<Kernel> kernels;

  /// A measured collective, or one that has been fitted, of one group shape.
  struct Curve {
    rt::CollectiveKind collective = rt::CollectiveKind::AllGather;
    Sums sums = Sums::Fast; // of all_gather: Fast
    GroupShape shape;
    /// Either bytes and seconds,
    Points points;
    /// or a straight line for each protocol, of which the least counts.
    struct Line {
      std::string name;
      double latencySeconds = 0, bytesPerSecond = 0;
      std::string ramp;
    };
    std::vector<Line> lines;
  };
  std::vector<Curve> curves;
};

/// The machine of a built-in name, or of a file: what has a '/' or ends in
/// ".toml" is a path. Throws fsdp::Error that names file, line, key and remedy.
Machine loadMachine(const std::string &nameOrPath);
/// The same of a file's text; `path` is what messages call it.
Machine readMachine(const std::string &text, const std::string &path);

/// Names of the machines that are built in, sorted.
std::vector<std::string> builtInMachines();

/// The machine as a file without a base, in one order and spelling:
/// readMachine gives an equal machine. A machine built by hand must be one that
/// a file could state.
std::string toToml(const Machine &machine);

/// XXH3 of all that the machine's times and sizes depend on, so not of its name
/// and description: sixteen hexadecimal digits.
std::string fingerprintOf(const Machine &machine);

} // namespace fsdp

#endif // FSDP_MACHINE_MACHINE_H
