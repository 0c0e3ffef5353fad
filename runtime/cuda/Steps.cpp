//===- Steps.cpp - Training steps as CUDA graphs --------------------------===//
#include "Steps.h"
#include "CudaProbe.h"
#include "JobMonitor.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "runtime/core/DataErrors.h"
#include <cstring>
#include <set>
#include <utility>

using namespace fsdp;
using namespace fsdp::rt;

/// What failed, for a message. Nobody knows which call of a graph it was.
static const char *const kStep =
    "a training step, which is one CUDA graph (with --no-graph the message "
    "names the call)";

//===----------------------------------------------------------------------===//
// One graph
//===----------------------------------------------------------------------===//

static uint64_t bytesFor(const std::vector<ArenaRange> &ranges) {
  uint64_t bytes = 0;
  for (const ArenaRange &range : ranges)
    bytes += linesOf(range.bytes);
  return bytes;
}

StepGraph::StepGraph(CudaContext &c, const std::vector<int> &step,
                     const std::vector<ProgramExchange> &exchanges)
    : c(c), step(step) {
  uint64_t bytes = 0;
  for (int program : step) {
    const ProgramExchange &exchange = exchanges.at(size_t(program));
    bytes += bytesFor(exchange.inputs) + bytesFor(exchange.outputs) +
             kHostLine; // data errors
  }
  memory = std::make_unique<PinnedMemory>(bytes);
  std::byte *next = memory->address();
  auto take = [&next](uint64_t size) {
    return std::exchange(next, next + linesOf(size));
  };
  // What an earlier program of the step gives is in the arena; the host still
  // has that of the step before.
  std::set<uint64_t> given;
  for (int program : step) {
    const ProgramExchange &exchange = exchanges.at(size_t(program));
    HostPlaces &place = places.emplace_back();
    place.dataErrors = reinterpret_cast<unsigned *>(take(kHostLine));
    for (const ArenaRange &range : exchange.inputs)
      if (!given.count(range.offset))
        place.inputs.push_back({range, take(range.bytes)});
    for (const ArenaRange &range : exchange.outputs) {
      place.outputs.push_back({range, take(range.bytes)});
      given.insert(range.offset);
    }
  }
  require(cudaEventCreateWithFlags(&finished, cudaEventDisableTiming),
          "events");
}

StepGraph::~StepGraph() {
  if (executable)
    cudaGraphExecDestroy(executable);
  if (finished)
    cudaEventDestroy(finished);
}

/// Nodes keep the priorities of their streams.
void StepGraph::capture() {
  cudaStream_t compute = c.stream(Stream::Compute);
  Capturing capturing(compute);
  for (size_t run = 0; run < step.size(); ++run)
    issueProgram(c, step[run], places[run]);
  std::unique_ptr<CUgraph_st, decltype(&cudaGraphDestroy)> graph(
      capturing.end(), cudaGraphDestroy);
  constexpr const char *what = "preparing the CUDA graph of a training step";
  require(cudaGraphInstantiate(&executable, graph.get(),
                               cudaGraphInstantiateFlagUseNodePriority),
          what);
  require(cudaGraphUpload(executable, compute), what);
}

void StepGraph::launch(const SetInputs &set) {
  for (size_t run = 0; run < step.size(); ++run) {
    set(run);
    for (const auto &[range, to] : places[run].inputs)
      std::memcpy(to, c.host->address(range.offset), range.bytes);
  }
  if (c.progress)
    c.progress->countLaunch();
  cudaStream_t compute = c.stream(Stream::Compute);
  check(cudaGraphLaunch(executable, compute), kStep);
  check(cudaEventRecord(finished, compute), kStep);
}

std::string StepGraph::finish() {
  check(cudaEventSynchronize(finished), kStep);
  if (c.probe)
    c.probe->holdIfEnding();
  for (const HostPlaces &place : places)
    for (const auto &[range, from] : place.outputs)
      std::memcpy(c.host->address(range.offset), from, range.bytes);
  return findDataErrors();
}

std::string StepGraph::findDataErrors() const {
  for (size_t run = 0; run < step.size(); ++run)
    if (std::string error = describeDataErrors(*places[run].dataErrors);
        !error.empty())
      return describeRun(*c.artifact, step[run], error);
  return {};
}

//===----------------------------------------------------------------------===//
// All steps
//===----------------------------------------------------------------------===//

Steps::Steps(CudaContext &c, const ContextOptions &options, bool asGraphs)
    : c(c), step(options.step), timeout(timeoutOf(options)) {
  constexpr int kOnTheirWay = 2;
  if (asGraphs && !step.empty())
    for (int i = 0; i < kOnTheirWay; ++i)
      graphs.push_back(std::make_unique<StepGraph>(c, step, options.exchanges));
}

Steps::~Steps() {
  // After an error, whose message is all that is left to say.
  if (!running.empty())
    cudaStreamSynchronize(c.stream(Stream::Compute));
}

/// The host waits for each step before the next if steps are no graphs. So all
/// ranks have graphs or none has.
void Steps::capture() {
  std::string problem;
  try {
    for (auto &graph : graphs)
      graph->capture();
  } catch (const Error &error) {
    problem = error.what();
  }
  try {
    // A rank that does not come here is in no collective.
    StageLimit stage(jobMonitor(), "the agreement of all ranks on CUDA graphs",
                     timeout);
    requireOnAll(c.world, problem);
    isCaptured = true;
  } catch (const Error &error) {
    if (c.world.rank == 0)
      printMessage(kRunWarning,
                   std::string(error.what()) +
                       "; this run issues the calls of every step one by one, "
                       "as with --no-graph: the same bits, and more work for "
                       "the host");
    graphs.clear();
    // Some ranks have come further in what they captured than others.
    if (c.progress)
      c.progress->restart();
  }
}

void Steps::begin(int64_t number, const SetInputs &set) {
  if (!graphs.empty() && isWarm && !isCaptured)
    capture();
  if (graphs.empty() || !isWarm) {
    int64_t begin = now();
    eagerError = runPrograms(c, *c.artifact, step, set);
    if (c.timeline)
      c.timeline->addStep(number, begin);
    isWarm = true;
    running.push_back(nullptr);
    return;
  }
  // The places of the next graph would be those of one that runs.
  if (running.size() == graphs.size())
    abortWorld("a training step began while as many as there are graphs were "
               "on their way");
  running.push_back(graphs[launches++ % graphs.size()].get());
  running.back()->launch(set);
}

std::string Steps::end() {
  StepGraph *first = running.front();
  running.pop_front();
  return first ? first->finish() : eagerError;
}

//===----------------------------------------------------------------------===//
// Context.h
//===----------------------------------------------------------------------===//

void rt::beginStep(Context &context, int64_t number, const SetInputs &set) {
  CudaContext &c = cudaContext(context);
  c.steps->begin(number, set);
}

bool rt::endStep(Context &context, std::string &error) {
  CudaContext &c = cudaContext(context);
  error = c.steps->end();
  return error.empty();
}

bool rt::stepsOverlap(const Context &context) {
  const CudaContext &c = cudaContext(context);
  return c.steps->overlap();
}
