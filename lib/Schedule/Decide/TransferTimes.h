//===- TransferTimes.h - What rules ask about transfers ---------*- C++ -*-===//
#ifndef FSDP_LIB_SCHEDULE_DECIDE_TRANSFERTIMES_H
#define FSDP_LIB_SCHEDULE_DECIDE_TRANSFERTIMES_H

#include "fsdp/Schedule/CommunicationPlan.h"
#include "fsdp/Simulation/Durations.h"

namespace fsdp::problem {

/// How long transfers travel, and what computes between them where each stands
/// alone, right before it is needed or behind what gives it.
class TransferTimes {
public:
  /// All outlive it.
  TransferTimes(const Problem &problem, const Candidate &base,
                const Transfers &transfers, const simulation::Costs &costs);

  const Transfers &transfers() const { return moved; }

  /// Of [begin, end) as one bucket.
  Duration travel(TransferKind kind, Id begin, Id end) const;
  int64_t bytes(TransferKind kind, Id begin, Id end) const;
  /// Of the work from transfer `i` of a pass to the next: time and kernels.
  Duration compute(TransferKind kind, Id i) const {
    return between[int(kind)][i];
  }
  uint32_t kernels(TransferKind kind, Id i) const {
    return count[int(kind)][i];
  }

  /// What the compute stream can do before the first gather of the forward pass
  /// is over: what is before it, and all casts of shards. Then what it does
  /// between the last gather and the first reduction, and after the last
  /// reduction, with collectives that are no transfers.
  Duration beforeGathers() const { return before; }
  Duration betweenPasses() const { return middle; }
  Duration afterReductions() const { return after; }

private:
  Candidate alone(const Candidate &base) const;
  void findCompute(const Candidate &base);
  bool moves(const Sequence &sequence, const Step &step) const;
  bool begin(const Sequence &sequence, const Step &step, Id *last) const;

  const Problem &problem;
  const Program &program;
  const Transfers &moved;
  const simulation::Costs &costs;
  std::vector<Duration> between[kTransferKinds];
  std::vector<uint32_t> count[kTransferKinds];
  Duration before, middle, after;
};

} // namespace fsdp::problem

#endif // FSDP_LIB_SCHEDULE_DECIDE_TRANSFERTIMES_H
