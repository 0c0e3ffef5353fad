//===- Problem.h - What a schedule is to be found for -----------*- C++ -*-===//
//
// The programs of one rank after fsdp-address, before anything is planned, as
// data: ops in their order, values, what each op is to the passes that
// schedule and lower it, and what it costs. Everything that those passes ask
// is here, so that a solver needs no IR. All of it comes from the ops'
// interfaces and records (fsdp/Schedule/ProblemOf.h), or from text
// (ProblemText.h). Names are numbers of texts, lists are parts of one array:
// Llama 3.1 405B has 12,000 ops.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_SCHEDULE_PROBLEM_H
#define FSDP_SCHEDULE_PROBLEM_H

#include "fsdp/Runtime/Types.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace fsdp::problem {

/// The number of an op, a value or a name.
using Id = uint32_t;
inline constexpr Id kNone = ~Id(0);

/// Elements [begin, begin + count) of an array.
struct Span {
  Id begin = 0, count = 0;
  Id end() const { return begin + count; }
};

enum class Phase : uint8_t { Forward, Again, Backward, Update };

/// What becomes of an op.
enum class OpKind : uint8_t {
  Constant,   ///< Part of the kernels that read it.
  Seed,       ///< A constant too; begins the backward pass.
  Read,       ///< Its result is a tensor of the model where that lies.
  View,       ///< Its result is its operand.
  Box,        ///< So is a box of it, or a copy where that cannot be read.
  Kernel,     ///< Pointwise or by rows: fuses, and computes what is used.
  Work,       ///< One operation of the runtime with buffers for its results.
  AddProduct, ///< A product that, where `detail` is 1, is added to its last
              ///< operand, in place if it may be.
  Pad,        ///< A fill and a copy.
  Join,       ///< Copies one after another, of what is not produced there.
  Collective,
  Gradient,   ///< Sets the gradient of a tensor of the model.
  Accumulate, ///< Adds to a tensor of the model.
  Write,      ///< Sets one.
  Clear,      ///< Sets several to zero.
  Update,     ///< The optimizer.
  Return,     ///< Operand i becomes result i of the program.
};
inline constexpr int kOpKinds = 17;

/// What passes may do with an op, beside what its kind says.
enum OpFlag : uint16_t {
  kAddressed = 1,      ///< A plan can name it.
  kPure = 2,           ///< It goes where nobody uses it.
  kMovesElements = 4,  ///< It computes nothing, and is recomputed with others.
  kClonedWithUser = 8, ///< A clone that reads it gets one of its own.
  kMovable = 16,       ///< It goes along where a collective moves.
  kReadByLibrary = 32, ///< A library reads its operands: they are aligned.
  kNarrows = 64,       ///< f32 to bf16 and nothing else.
  kContiguous = 128,   ///< Of a Join: its parts lie one after another.
  kCanRecompute = 256, ///< A plan may decide to compute it again.
  kRegathered = 512,   ///< Of a Work: from its result the backward pass gathers
                       ///< its operand again, as `detail` says.
  kAdjacent = 1024,    ///< Of a Join: its parts are tensors of the model that
                       ///< lie side by side, so that they are its result.
};
inline constexpr int kOpFlags = 11;

struct Op {
  OpKind kind = OpKind::Work;
  Phase phase = Phase::Forward;
  uint16_t flags = 0;
  /// With the phase, its address (dist::Origin): the path of a module, what the
  /// op is called there, and its number among those. Without an address the
  /// name is the mnemonic.
  Id path = kNone, name = kNone;
  uint32_t index = 1;
  /// The block of the model that it lies in ("layers.3"), or none.
  Id block = kNone;
  Span operands; ///< In Program::operands.
  Span results;  ///< Values, one after another.
  Span states;   ///< In Program::states: the tensors of the model it names.
  /// Of a Kernel in Problem::kernels, of a Collective and of what is
  /// kRegathered in Program::collectives; of a Box the byte of the operand at
  /// which it begins, or -1 where its elements do not lie one after another.
  int64_t detail = 0;
  int64_t flops = 0, bytes = 0; ///< bytes: read and written.
  /// What a library needs beside operands and results. Of a Collective it
  /// depends on what travels together (workspaceOf).
  int64_t workspace = 0;
  /// In Problem::maths; none where it is memory that takes the time.
  Id math = kNone;

  bool is(OpFlag flag) const { return (flags & flag) != 0; }
};

struct Value {
  int64_t bytes = 0;
  Id def = kNone; ///< The op, or none: an argument.
};

/// How a tensor of a kernel lies in its space (nn::KernelAccess).
enum class Access : uint8_t { Element, Row, Column, Scalar };
enum class Form : uint8_t { Element, Row, Columns };

struct KernelRead {
  uint16_t operand = 0;
  Access access = Access::Element;
  bool inReduction = false;
  /// Bit i: to compute result i. 0: whatever is used.
  uint32_t forResults = 0;
  bool operator==(const KernelRead &other) const;
};

/// Rows that a sum over rows takes at a time (fsdp/Runtime/KernelMath.h).
inline constexpr int64_t kRowBlock = 32;
/// Columns of all sums over rows of one kernel (nn::kMostSumColumns).
inline constexpr int64_t kMostSumColumns = 16384;

/// What nn-fuse and exec-lower need of a kernel; equal ones are one.
struct Kernel {
  int64_t rows = 0, columns = 0; ///< 0: exec-lower has no kernel for it.
  bool canFuse = false;
  bool sumsRows = false; ///< Over rows, and a kernel of these rows can do it.
  bool isExpensive = false; ///< Its results by element need exp or the like.
  std::vector<KernelRead> reads; ///< In order of the first reads.
  std::vector<Form> results;
  bool operator==(const Kernel &other) const;
};

/// What takes the time of an op that a library computes.
enum class MathKind : uint8_t { Product, Attention, AttentionGradient };
inline constexpr int kMathKinds = 3;

struct Math {
  MathKind kind = MathKind::Product;
  rt::DType type = rt::DType::F32; ///< Of the operands.
  /// Of a Product: `batch` of m x k and k x n. Of attention: heads of all
  /// sequences, and of each the queries, the keys and the elements of one.
  int64_t batch = 1, m = 0, n = 0, k = 0;
  /// Of a Product: as GemmDesc says.
  bool transposeLhs = false, transposeRhs = false;
  /// Of attention: operations on scores that are visible, so half of all where
  /// it is causal, and less with a window.
  int64_t flops = 0;
  bool operator==(const Math &other) const;
};

/// Ranks that lie along one mesh axis: `size` of them, `stride` apart.
struct GroupAxis {
  int64_t size = 1, stride = 1;
  bool operator==(const GroupAxis &other) const {
    return size == other.size && stride == other.stride;
  }
};
using RankGroup = std::vector<GroupAxis>;

struct Collective {
  rt::CollectiveKind kind = rt::CollectiveKind::AllGather;
  rt::ReduceKind reduce = rt::ReduceKind::Sum;
  rt::DType in = rt::DType::F32, out = rt::DType::F32;
  bool isFast = false; ///< Its sum is the library's.
  int64_t ranks = 1;
  int64_t nodeRanks = 0; ///< As in rt::CollectiveDesc.
  Id group = kNone;      ///< In Problem::groups; none: consecutive ranks.
  int64_t wireBytes = 0; ///< That one rank sends, in elements of type `in`.
  Id parameter = kNone;  ///< The first that it moves, a name.
  Id order = 0;          ///< Of that one in the module.
  /// What must be equal for two to travel together: mesh, axes, dimension,
  /// reduction, types. A number.
  Id key = 0;
  Span items; ///< In Program::items, one for each operand.
  /// Of a gather that the backward pass repeats in another way: the collective
  /// that it is then, and the value, a shard of its result, that it gathers.
  Id again = kNone, shard = kNone;

  bool isGather() const { return kind == rt::CollectiveKind::AllGather; }
};

/// A straight-line program.
struct Program {
  Id name = kNone;
  std::vector<Op> ops;
  std::vector<Value> values; ///< Arguments first.
  std::vector<Id> arguments; ///< Names of ranges.
  std::vector<Id> results;
  std::vector<Id> operands; ///< Values.
  std::vector<Id> states;   ///< Names.
  std::vector<Collective> collectives;
  std::vector<rt::CollectiveItem> items;
  /// Bytes of outputs that no other program uses, aligned.
  int64_t ownOutputBytes = 0;

  Id operand(const Op &op, Id i) const {
    return operands[op.operands.begin + i];
  }
  const Collective &collective(const Op &op) const {
    return collectives[op.detail];
  }
  /// What it is as a clone for the backward pass, if it `isAgain`.
  const Collective &collective(const Op &op, bool isAgain) const {
    const Collective &one = collective(op);
    return isAgain && one.again != kNone ? collectives[one.again] : one;
  }
  /// Tells the gather that `op`, which is kRegathered, gathers again of `op`.
  void linkRegathered(const Op &op);
};

/// Runs of programs that make a step.
struct StepRun {
  Id step = kNone, program = kNone; ///< Names.
  int64_t times = 1;
};

/// The blocks of one structure: equal but for names. The first and the last of
/// a class of the model have neighbours of their own and are apart.
struct BlockClass {
  std::vector<Id> blocks; ///< Names.
};

struct Problem {
  /// Whose workspaces it has: the name of an rt::Target.
  std::string target;
  /// Of parameters, state, inputs and outputs that programs share.
  int64_t persistentBytes = 0;
  std::vector<Program> programs;
  /// Ranks of the job, and the tokens of all of them in a step (for a model
  /// without tokens the rows).
  int64_t ranks = 1, tokens = 0;
  std::vector<StepRun> steps;
  std::vector<Kernel> kernels;
  std::vector<Math> maths;       ///< Equal ones are one.
  std::vector<RankGroup> groups; ///< Equal ones are one.

  std::string_view text(Id name) const { return names[name]; }
  size_t numNames() const { return names.size(); }
  /// The number of a text, a new one if it has none.
  Id intern(std::string_view text);
  /// kNone if it has no number.
  Id find(std::string_view text) const;
  Id internKernel(const Kernel &kernel);
  Id internMath(const Math &math);
  Id internGroup(const RankGroup &group);

private:
  std::vector<std::string> names;
  std::unordered_map<std::string, Id> numbers;
  std::unordered_map<uint64_t, std::vector<Id>> kernelsByHash;
};

std::string_view phaseName(Phase phase);

/// "fwd layers.3.attention.wq linear"; the mnemonic where it has no address.
std::string addressOf(const Problem &problem, const Op &op, bool again = false);

/// That of the bucket `bucket` of such collectives: "fwd layers.3 all_gather".
std::string bucketAddressOf(const Problem &problem, const Op &op, bool again,
                            const std::string &bucket);

/// Bytes that `target` needs for item `item` of a collective that moves
/// `items` together; 0 for a gather.
int64_t workspaceOf(const std::string &target, const Collective &collective,
                    const std::vector<rt::CollectiveItem> &items, size_t item);

/// The blocks of a program by structure, those with most members first.
std::vector<BlockClass> blockClassesOf(const Problem &problem,
                                       const Program &program);

} // namespace fsdp::problem

#endif // FSDP_SCHEDULE_PROBLEM_H
