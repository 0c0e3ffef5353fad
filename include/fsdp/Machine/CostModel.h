//===- CostModel.h - How long things take on a machine ----------*- C++ -*-===//
//
// Everything is a Duration: finite, the same on every machine that evaluates
// it, and of collectives, copies and memory never shorter for more bytes. Only
// + - * / and square roots are used, which IEEE 754 rounds in one way, and the
// library is compiled without contraction.
//
// An exact reduce_scatter of b bytes over n ranks, busbw u, kernel traffic k at
// w, network v, remote peers p = n - ranks of the own node, rounds of r bytes:
//
//   one node        latency + b (n-1)/n / u + k b / w
//   several nodes   latency + sum over rounds of
//                     max(p max(r/n / v, message), r (local-1)/n / u)
//                   + k b / w
//   two levels      latency + b (local-1)/local / u
//                   + max(k b / w, the second level's exchange)
//                   + k s / w,   s = b / local * 4 / bytes of a wire element
//
// where the second level is the exchange of s bytes of f32 partial sums over
// one rank of each node. The kernel of the first level works on a round while
// the next one travels. An exact all_reduce is that and an all_gather.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_MACHINE_COSTMODEL_H
#define FSDP_MACHINE_COSTMODEL_H

#include "fsdp/Machine/Duration.h"
#include "fsdp/Machine/Machine.h"
#include "fsdp/Machine/SoftwareProfile.h"
#include <string_view>

namespace fsdp {

struct CollectiveCall {
  rt::CollectiveKind kind = rt::CollectiveKind::AllGather;
  /// The full message, in the type that travels: at most kMaxTensorBytes.
  int64_t bytes = 0;
  GroupShape shape;
  /// Of an all_gather it says nothing.
  Sums sums = Sums::Exact;
  /// Of an element that travels; partial sums are f32.
  int64_t wireElementBytes = 2;
};

class CostModel {
public:
  explicit CostModel(Machine machine, SoftwareProfile profile = {});

  const Machine &machine() const { return theMachine; }
  const SoftwareProfile &profile() const { return theProfile; }

  /// `batch` products of m x k and k x n, by the machine's rates for products
  /// of this type and layout. Without any: of the time of its operations and
  /// that of its operands and result in memory, the longer. Sizes above 0.
  Duration matmul(int64_t batch, int64_t m, int64_t n, int64_t k, MathType type,
                  Layout layout = Layout::NN) const;
  /// Of `flops` operations that are counted (half of all where attention is
  /// causal, fewer with a window), of that many queries, keys and elements of a
  /// head, which matter where the machine has rates; 0: not known. The backward
  /// pass counts its own operations, which are 2.5 times as many.
  Duration attention(double flops, MathType type, AttentionPass pass,
                     const std::array<int64_t, 3> &sizes = {}) const;
  /// Of a kernel that reads and writes so many bytes: as the machine's kernel
  /// of this name takes, or as its pointwise one, or what its bandwidth allows.
  Duration memory(int64_t bytes,
                  std::string_view kernel = kPointwiseKernel) const;
  /// Of a copy to or from the host's memory. Throws fsdp::Error if the machine
  /// does not say how fast that is.
  Duration hostCopy(int64_t bytes) const;
  /// One rank alone, or no bytes: no time. Throws fsdp::Error that names the
  /// shape, the machine and the key to add where it says nothing about such a
  /// group.
  Duration collective(const CollectiveCall &call) const;

  /// Of every kernel on its stream, beside its work.
  Duration launch() const;
  /// Of the host to issue a kernel; none where a graph does.
  Duration hostIssue() const;
  /// Of the host for every sharded module and pass; none where a graph does.
  Duration hostModule() const;

  /// How long compute takes, of this length alone, wholly beside a collective
  /// or copy on `stream`.
  Duration beside(rt::Stream stream, Duration compute) const;
  /// The same of a collective, wholly beside compute.
  Duration besideCompute(Duration collective) const;

private:
  Machine theMachine;
  SoftwareProfile theProfile;
};

} // namespace fsdp

#endif // FSDP_MACHINE_COSTMODEL_H
