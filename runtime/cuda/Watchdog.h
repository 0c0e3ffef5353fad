//===- Watchdog.h - Collectives that do not end -----------------*- C++ -*-===//
//
// What a context tells the thread that watches over the job (Health.h): in
// which collective every channel is and for how long, and errors that NCCL has
// found meanwhile. When the job is to end, it aborts the communicators, so that
// nobody waits for a stream that does not come to an end.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_WATCHDOG_H
#define FSDP_RUNTIME_CUDA_WATCHDOG_H

#include "CudaContext.h"
#include "runtime/liveness/Health.h"
#include "runtime/liveness/RankWaits.h"

namespace fsdp::rt {

/// While it lives, the job has a limit for something that all ranks do
/// together, before there is a watchdog.
class LimitedStage : public HealthSubject {
public:
  /// `health` may be null: then there is no limit. `timeout` is in seconds.
  LimitedStage(Health *health, std::string what, double timeout);
  ~LimitedStage() override;
  LimitedStage(const LimitedStage &) = delete;
  LimitedStage &operator=(const LimitedStage &) = delete;

  std::string report() override { return {}; }
  std::string problem() override;
  std::string judge(const RankReports &) override { return {}; }
  std::string whereRanksWait(const RankReports &) override { return {}; }
  void abandon() override {}

private:
  Health *health;
  const std::string what;
  const double timeout;
  int64_t beats = 0;
};

class Watchdog : public HealthSubject {
public:
  /// `timeout` is in seconds, of a collective.
  Watchdog(CudaContext &c, Health &health, std::vector<int64_t> meshAxes,
           double timeout);
  ~Watchdog() override;
  Watchdog(const Watchdog &) = delete;
  Watchdog &operator=(const Watchdog &) = delete;

  /// Held while collectives are issued: communicators are not aborted under
  /// their user's hands. Does not return once the job is ending.
  std::unique_lock<std::timed_mutex> issuing();
  /// Does not return if the job is ending: what aborted collectives have left
  /// is no result.
  void holdIfEnding() const { health.holdIfEnding(); }

  std::string report() override;
  std::string problem() override;
  std::string judge(const RankReports &reports) override;
  std::string whereRanksWait(const RankReports &reports) override;
  void abandon() override;

private:
  RankWaits waitsIn(const RankReports &reports) const;
  std::string nameOf(uint64_t word) const;
  std::string nameOf(const RankWait &wait) const;
  std::string lastCollectives(const RankReports &reports,
                              const std::vector<int> &missing) const;

  CudaContext &c;
  Health &health;
  const std::vector<int64_t> meshAxes;
  const double timeout;
  std::vector<ChannelReport> own; // at the last report
  uint64_t launches = 0;          // at the last report
  std::timed_mutex issue;
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_WATCHDOG_H
