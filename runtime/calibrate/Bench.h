//===- Bench.h - Calls of a program, timed on all ranks ---------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CALIBRATE_BENCH_H
#define FSDP_RUNTIME_CALIBRATE_BENCH_H

#include "fsdp/Core/Context.h"
#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace fsdp::rt {

/// An artifact without a compiler: its one program is the body at hand. What it
/// calls is added before open().
class Bench {
public:
  /// Operands lie in one part of the arena, results in another, so that values
  /// stay what they were; workspaces in a third, and those of collectives,
  /// which run beside products, in a fourth.
  struct Sizes {
    int64_t in = 0, out = 0, workspace = 0, exchanged = 0;
  };

  explicit Bench(int threads);

  int ranks() const { return world.size; }
  int threadCount() const { return threads; }

  /// Each gives the number that a program calls it by.
  int add(const GemmDesc &desc);
  int add(const AttentionDesc &desc);
  /// Of `bytes` over groups of `size` consecutive ranks, which divides the
  /// number of ranks.
  int add(CollectiveKind kind, ReduceKind reduce, int64_t bytes, int size);

  /// Makes the arena, for operations of these sizes at most. Collective.
  void open(const Sizes &largest);

  /// Where call number `call` of an operation with such operands finds them:
  /// far from the last ones, as in a step, which finds most in memory and not
  /// in the cache.
  struct Place {
    Ptr in, out, workspace, exchanged;
  };
  Place place(const Sizes &sizes, int64_t call) const;

  /// Two bytes that no operation uses, on lines of their own.
  std::pair<Ptr, Ptr> flags() const;

  using Body = std::function<void(Context &, int64_t call)>;
  /// Seconds of one call of `body`, a collective, which is called until `limit`
  /// seconds are over, twice at least: the mean over ranks of the lower
  /// quartile of means of a few calls, since other work on the machine only
  /// ever adds. Collective.
  double collectiveSeconds(double limit, const Body &body);
  /// The same of a call that computes on its own threads alone, each call by
  /// itself. Of one thread its processor time counts: what other programs take
  /// is not in it.
  double computeSeconds(double limit, const Body &body);
  /// Runs `body` once as a program. Collective.
  void run(const std::function<void(Context &)> &body);

  /// The mean over ranks. Collective.
  double mean(double value) const;

  /// Free for a body to use.
  static constexpr int kEvents = 4;

private:
  int addGroup(int size);
  double seconds(double limit, const Body &body, double (*clock)(),
                 size_t together);

  World world;
  int threads;
  std::vector<GemmDesc> gemms;
  std::vector<AttentionDesc> attentions;
  std::vector<int> groupSizes;
  // What the tables point to stays where it is.
  std::deque<AxisRef> axes;
  std::vector<GroupDesc> groups;
  std::deque<CollectiveItem> items;
  std::vector<CollectiveDesc> collectives;
  fsdp_program program{};
  fsdp_artifact artifact{};
  ContextPtr context;
  uint64_t endOfParts() const {
    return uint64_t(parts.in + parts.out + parts.workspace + parts.exchanged);
  }

  Sizes parts; // of the arena
};

/// Of the steady clock.
double nowInSeconds();

/// Rounded up to a cache line.
inline int64_t alignedBytes(int64_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CALIBRATE_BENCH_H
