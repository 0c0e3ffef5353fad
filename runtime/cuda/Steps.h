//===- Steps.h - Training steps as CUDA graphs ------------------*- C++ -*-===//
//
// The first step of a run is issued call by call: that loads kernels and
// libraries and connects ranks, which must not happen under capture. The second
// is captured, and every step from it on is one launch of what was captured.
//
// Two steps may be on their way: the host prepares and launches one while the
// GPU runs the one before. Each has its own places of the host, of all inputs
// and outputs of all its programs, and a graph holds addresses; so there are
// two graphs, captured together and launched in turn, and none is ever captured
// again or changed. If a rank cannot capture its step, all ranks issue every
// step call by call.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CUDA_STEPS_H
#define FSDP_RUNTIME_CUDA_STEPS_H

#include "CudaContext.h"
#include <deque>

namespace fsdp::rt {

/// One of the graphs, with its places of the host.
class StepGraph {
public:
  StepGraph(CudaContext &c, const std::vector<int> &step,
            const std::vector<ProgramExchange> &exchanges);
  ~StepGraph();
  StepGraph(const StepGraph &) = delete;
  StepGraph &operator=(const StepGraph &) = delete;

  /// Once. Throws fsdp::Error; then nothing is captured.
  void capture();
  /// Takes the inputs of every run from the host's places of single programs,
  /// where `set` writes them, and launches.
  void launch(const SetInputs &set);
  /// Waits for the launch and puts its outputs there. Returns what was wrong
  /// with the data, with the program's name.
  std::string finish();

private:
  std::string findDataErrors() const;

  CudaContext &c;
  const std::vector<int> &step;
  std::unique_ptr<PinnedMemory> memory;
  std::vector<HostPlaces> places; // by run
  cudaGraphExec_t executable = nullptr;
  cudaEvent_t finished = nullptr;
};

/// The steps of a run.
class Steps {
public:
  /// Without `asGraphs` all are issued call by call.
  Steps(CudaContext &c, const ContextOptions &options, bool asGraphs);
  /// Waits for those on their way.
  ~Steps();

  void begin(int64_t number, const SetInputs &set);
  std::string end();
  /// A step that was no graph is over, and may have gone wrong on this rank
  /// alone: the next would meet the others in their last.
  bool overlap() const { return !running.empty() && running.back(); }

private:
  void capture();

  CudaContext &c;
  const std::vector<int> step; // programs in order
  const double timeout;        // seconds
  std::vector<std::unique_ptr<StepGraph>> graphs;
  bool isWarm = false, isCaptured = false;
  size_t launches = 0;
  /// Steps that have begun and not ended; null for one that was no graph.
  std::deque<StepGraph *> running;
  std::string eagerError; // of that one
};

} // namespace fsdp::rt

#endif // FSDP_RUNTIME_CUDA_STEPS_H
