//===- Capture.cpp - Graphs of captured calls -----------------------------===//
#include "Capture.h"
#include "Message.h"
#include "Server.h"
#include <algorithm>

using namespace fsdp::fake;

//===----------------------------------------------------------------------===//
// One launch
//===----------------------------------------------------------------------===//

GraphRun::GraphRun(const Graph &graph, const int *priority)
    : left(graph.nodes.size()) {
  for (const GraphNode &node : graph.nodes) {
    for (size_t earlier : node.after)
      nodes[earlier].before.push_back(nodes.size());
    nodes.push_back({node.make(),
                     priority ? *priority : node.priority,
                     {},
                     node.after.size()});
  }
}

void GraphRun::start() {
  for (size_t i = 0; i < nodes.size(); ++i)
    if (nodes[i].missing == 0)
      ready.insert(i);
}

Operation GraphRun::take(size_t node) {
  ready.erase(node);
  return std::move(nodes[node].operation);
}

void GraphRun::finish(size_t node) {
  --left;
  for (size_t next : nodes[node].before)
    if (--nodes[next].missing == 0)
      ready.insert(next);
}

std::string GraphRun::waitsFor() const {
  if (left == 0)
    return {};
  for (size_t node : ready)
    if (const Operation &operation = nodes[node].operation; operation.waitsFor)
      if (std::string reason = operation.waitsFor(); !reason.empty())
        return "a graph waits: " + reason;
  return "waits for the end of a graph";
}

//===----------------------------------------------------------------------===//
// What is refused
//===----------------------------------------------------------------------===//

Capture *fsdp::fake::captureOf(const Process &process, uint32_t stream) {
  for (auto &capture : process.captures)
    if (capture->last.count(stream))
      return capture.get();
  return nullptr;
}

static bool isActive(const Process &process, const Capture *capture) {
  return std::any_of(process.captures.begin(), process.captures.end(),
                     [&](auto &c) { return c.get() == capture; });
}

[[noreturn]] static void invalidate(Capture &capture, cudaError_t error,
                                    const std::string &what) {
  capture.isInvalid = true;
  throw Refusal(error, what + " while a stream is captured");
}

/// The stream that a call issues work on.
static std::optional<uint32_t> streamOfWork(Call call,
                                            const std::vector<char> &body) {
  switch (call) {
  case Call::Record:
  case Call::Wait:
    return bodyOf<EventCall>(body).stream;
  case Call::Launch:
    return bodyOf<Launch>(body).stream;
  case Call::CopyIn:
  case Call::CopyOut:
    return bodyOf<HostCopy>(body).stream;
  case Call::Copy:
    return bodyOf<Copy>(body).stream;
  case Call::Fill:
    return bodyOf<Fill>(body).stream;
  case Call::Write:
    return bodyOf<Write>(body).stream;
  case Call::Gemm:
    return bodyOf<Gemm>(body).stream;
  case Call::Attention:
    return bodyOf<Attention>(body).stream;
  case Call::Group:
    return bodyOf<Group>(body).stream;
  case Call::GraphLaunch:
    return bodyOf<GraphCall>(body).stream;
  default:
    return std::nullopt;
  }
}

/// The capture that forbids this thread what is not safe in any.
static Capture *strictCapture(const Process &process) {
  for (auto &capture : process.captures)
    if (capture->mode == CaptureMode::Global ||
        (capture->mode == CaptureMode::ThreadLocal &&
         capture->thread == process.thread))
      return capture.get();
  return nullptr;
}

/// The legacy stream waits for blocking streams alone, and there are none here;
/// but whoever uses it under capture has not thought of an order.
static void checkWork(Process &process, Call call, uint32_t stream) {
  Capture *strict = strictCapture(process);
  if (stream == kLegacyStream && strict)
    invalidate(*strict, cudaErrorStreamCaptureImplicit,
               "work on the legacy stream");
  Capture *capture = captureOf(process, stream);
  if (!capture)
    return;
  if (capture->isInvalid)
    throw Refusal(cudaErrorStreamCaptureInvalidated,
                  "work on a stream whose capture is invalid");
  if (call == Call::CopyIn || call == Call::CopyOut)
    invalidate(*capture, cudaErrorStreamCaptureUnsupported,
               "a copy of pageable memory");
  if (call == Call::GraphLaunch)
    invalidate(*capture, cudaErrorStreamCaptureUnsupported,
               "a launch of a graph");
}

/// Synchronisations and queries of a stream, or of all.
static void checkQuestion(Process &process, const StreamCall &call) {
  Capture *capture = call.all || call.stream == kLegacyStream
                         ? strictCapture(process)
                         : captureOf(process, call.stream);
  if (capture)
    invalidate(*capture,
               call.stream == kLegacyStream && !call.all
                   ? cudaErrorStreamCaptureImplicit
                   : cudaErrorStreamCaptureUnsupported,
               "a synchronisation or query");
}

static void checkEvent(Process &process, uint32_t event) {
  auto found = process.captured.find(event);
  if (found == process.captured.end())
    return;
  found->second.capture->isInvalid = true;
  throw Refusal(cudaErrorCapturedEvent,
                "a synchronisation or query of an event whose record was "
                "captured");
}

/// Throws a Refusal.
void Server::checkCapture(Process &process, Call call, const Body &body) {
  if (auto stream = streamOfWork(call, body))
    checkWork(process, call, *stream);
  switch (call) {
  case Call::Synchronize:
  case Call::IsDone:
    return checkQuestion(process, bodyOf<StreamCall>(body));
  case Call::EventSynchronize:
  case Call::EventIsDone:
    return checkEvent(process, bodyOf<EventCall>(body).event);
  case Call::EventElapsed:
    checkEvent(process, bodyOf<EventPair>(body).first);
    return checkEvent(process, bodyOf<EventPair>(body).last);
  case Call::Allocate:
  case Call::Free:
    if (Capture *capture = strictCapture(process))
      invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                 "an allocation, or the end of one,");
    return;
  case Call::FindKernel:
    if (Capture *capture = strictCapture(process))
      invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                 "the first use of a kernel, which loads it,");
    return;
  case Call::CommInit:
  case Call::CommSplit:
  case Call::CommDestroy:
  case Call::Register:
  case Call::Deregister:
    if (Capture *capture = strictCapture(process))
      invalidate(*capture, cudaErrorStreamCaptureUnsupported,
                 "the making or end of a communicator");
    return;
  default:
    return;
  }
}

//===----------------------------------------------------------------------===//
// Capturing
//===----------------------------------------------------------------------===//

void Server::addNode(Process &process, Capture &capture, uint32_t stream,
                     std::string what, std::function<Operation()> make) {
  std::vector<size_t> &last = capture.last.at(stream);
  capture.graph->nodes.push_back({std::move(what),
                                  streamOf(process, stream).priority, last,
                                  std::move(make)});
  last = {capture.graph->nodes.size() - 1};
}

/// A captured record is no node: it stands for those before it.
bool Server::captureRecord(Process &process, const EventCall &call) {
  process.captured.erase(call.event);
  for (auto &capture : process.captures)
    if (auto found = capture->last.find(call.stream);
        found != capture->last.end()) {
      process.captured[call.event] = {capture, found->second};
      process.events.erase(call.event);
      return true;
    }
  return false;
}

/// A captured wait is a node that does nothing, so that a stream which has only
/// waited must be joined too. Returns false if nothing is captured.
bool Server::captureWait(Process &process, const EventCall &call) {
  Capture *mine = captureOf(process, call.stream);
  auto found = process.captured.find(call.event);
  if (found == process.captured.end()) {
    if (mine && process.events.count(call.event))
      invalidate(*mine, cudaErrorStreamCaptureIsolation,
                 "a wait for a record that is not captured");
    return mine != nullptr;
  }
  Capture &theirs = *found->second.capture;
  if (!isActive(process, &theirs)) {
    if (mine)
      invalidate(*mine, cudaErrorStreamCaptureIsolation,
                 "a wait for a record of an earlier capture");
    throw Refusal(cudaErrorCapturedEvent,
                  "a wait for an event whose record was captured");
  }
  if (theirs.isInvalid)
    throw Refusal(cudaErrorStreamCaptureInvalidated,
                  "a wait for a record of an invalid capture");
  if (mine && mine != &theirs) {
    theirs.isInvalid = true;
    invalidate(*mine, cudaErrorStreamCaptureMerge,
               "a wait for a record of another capture");
  }
  std::vector<size_t> &last = theirs.last[call.stream];
  for (size_t node : found->second.nodes)
    if (std::find(last.begin(), last.end(), node) == last.end())
      last.push_back(node);
  std::string what = "wait for event " + std::to_string(call.event);
  addNode(process, theirs, call.stream, what, [what] {
    Operation nothing;
    nothing.what = what;
    nothing.run = [] {};
    return nothing;
  });
  return true;
}

void Server::beginCapture(Process &process, const BeginCapture &call) {
  streamOf(process, call.stream);
  if (call.stream == kLegacyStream)
    throw Refusal(cudaErrorStreamCaptureUnsupported,
                  "a capture of the legacy stream");
  if (captureOf(process, call.stream))
    throw Refusal(cudaErrorIllegalState, "a stream that is captured already");
  auto capture = std::make_shared<Capture>();
  capture->id = ++process.captureCount;
  capture->origin = call.stream;
  capture->thread = process.thread;
  capture->mode = call.mode;
  capture->graph = std::make_shared<Graph>();
  capture->last[call.stream];
  process.captures.push_back(std::move(capture));
  answer(process, Status::Done, {});
}

/// True if the end of the origin follows every node.
static bool isJoined(const Capture &capture) {
  const std::vector<GraphNode> &nodes = capture.graph->nodes;
  std::vector<bool> isBefore(nodes.size(), false);
  for (size_t node : capture.last.at(capture.origin))
    isBefore[node] = true;
  for (size_t i = nodes.size(); i-- > 0;)
    if (isBefore[i])
      for (size_t earlier : nodes[i].after)
        isBefore[earlier] = true;
  return std::find(isBefore.begin(), isBefore.end(), false) == isBefore.end();
}

void Server::endCapture(Process &process, const EndCapture &call) {
  Capture *found = captureOf(process, call.stream);
  if (!found)
    throw Refusal(cudaErrorIllegalState, "the end of a capture that is none");
  if (found->mode != CaptureMode::Relaxed && found->thread != process.thread)
    throw Refusal(cudaErrorStreamCaptureWrongThread,
                  "the end of a capture that another thread began");
  if (found->origin != call.stream)
    invalidate(*found, cudaErrorStreamCaptureUnmatched,
               "the end of a capture on a stream that was forked from it");
  auto place =
      std::find_if(process.captures.begin(), process.captures.end(),
                   [&](auto &capture) { return capture.get() == found; });
  std::shared_ptr<Capture> capture = std::move(*place);
  process.captures.erase(place);
  if (capture->isInvalid)
    throw Refusal(cudaErrorStreamCaptureInvalidated,
                  "the end of a capture that is invalid");
  if (!isJoined(*capture))
    throw Refusal(cudaErrorStreamCaptureUnjoined,
                  "the end of a capture with a stream that was forked and not "
                  "joined");
  fault.plantIn(process, *capture->graph);
  trace.captured(process, call, *capture->graph);
  process.graphs[call.graph] = capture->graph;
  answer(process, Status::Done, {});
}

void Server::describeCapture(Process &process, const StreamCall &call) {
  CaptureInfo info{CaptureInfo::State::None, 0};
  if (const Capture *capture = captureOf(process, call.stream))
    info = {capture->isInvalid ? CaptureInfo::State::Invalidated
                               : CaptureInfo::State::Active,
            capture->id};
  answer(process, Status::Done, bytesOf(info));
}

//===----------------------------------------------------------------------===//
// Launching
//===----------------------------------------------------------------------===//

void Server::instantiate(Process &process, const Instantiate &call) {
  auto graph = process.graphs.find(call.graph);
  if (graph == process.graphs.end())
    throw std::runtime_error("cudaGraphInstantiate of what is no graph");
  process.executables[call.executable] = {graph->second, call.keepsPriorities};
  answer(process, Status::Done, {});
}

/// Transfers of a communicator run in the order of their calls, so those of the
/// graph are issued now, in the order in which they were captured.
void Server::launchGraph(Process &process, const GraphCall &call) {
  auto found = process.executables.find(call.graph);
  if (found == process.executables.end())
    throw std::runtime_error("cudaGraphLaunch of what is no graph");
  const Executable &executable = found->second;
  const int *priority = executable.keepsPriorities
                            ? nullptr
                            : &streamOf(process, call.stream).priority;
  auto run = std::make_shared<GraphRun>(*executable.graph, priority);
  enqueue(process, call.stream, "beginning of a graph", [&process, run] {
    run->start();
    process.runs.push_back(run);
  });
  Operation end;
  end.what = "end of a graph";
  end.waitsFor = [run] { return run->waitsFor(); };
  end.run = [&process, run] {
    auto &runs = process.runs;
    runs.erase(std::find(runs.begin(), runs.end(), run));
  };
  enqueue(process, call.stream, std::move(end));
}
