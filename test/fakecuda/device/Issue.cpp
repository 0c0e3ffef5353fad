//===- Issue.cpp - What a call does ---------------------------------------===//
#include "Kernels.h"
#include "Message.h"
#include "Server.h"

using namespace fsdp::fake;

void Server::handle(Process &process, const Header &header, Body body) {
  process.thread = header.thread;
  refusal.reset();
  for (const Message &message :
       fault.plant(process, {header.call, std::move(body)}))
    obey(process, message.call, message.body);
  if (isAnswered(header.call))
    return;
  if (header.isAsked)
    answerAsked(process);
  else if (refusal)
    process.fail(refusal->text); // nobody hears of it in another way
}

void Server::obey(Process &process, Call call, const Body &body) {
  // After a failure nothing works, as on a GPU.
  if (process.failure.empty())
    try {
      trace.issued(process, call, body);
      checkCapture(process, call, body);
      if (isAnswered(call))
        ask(process, call, body);
      else
        issue(process, call, body);
    } catch (const Refusal &e) {
      std::fprintf(stderr, "fakecuda: %s: %s\n", process.name().c_str(),
                   e.what());
      if (isAnswered(call))
        answerRefusal(process, e);
      else
        refusal = e;
    } catch (const std::runtime_error &e) {
      process.fail(e.what());
    }
  ++process.issued;
  bool isWaiting = isAnswered(call) && !process.failure.empty();
  if (isWaiting)
    answerFailure(process);
}

/// What the calls in place of one that issues work have come to.
void Server::answerAsked(Process &process) {
  if (!process.failure.empty())
    answerFailure(process);
  else if (refusal)
    answerRefusal(process, *refusal);
  else
    answer(process, Status::Done, {});
}

//===----------------------------------------------------------------------===//
// Work
//===----------------------------------------------------------------------===//

DeviceStream &Server::streamOf(Process &process, uint32_t number) {
  auto found = process.streams.find(number);
  if (found == process.streams.end() || found->second.isDestroyed)
    throw std::runtime_error("a call with a stream that is none");
  return found->second;
}

void Server::enqueue(Process &process, uint32_t stream, Operation operation) {
  operation.number = process.issued;
  DeviceStream &target = streamOf(process, stream);
  if (Capture *capture = captureOf(process, stream))
    addNode(process, *capture, stream, operation.what,
            [operation] { return operation; });
  else
    target.queue.push_back(std::move(operation));
}

void Server::enqueue(Process &process, uint32_t stream, std::string what,
                     std::function<void()> run) {
  Operation operation;
  operation.what = std::move(what);
  operation.run = std::move(run);
  enqueue(process, stream, std::move(operation));
}

void Server::compute(Process &process, uint32_t stream, std::string what,
                     std::function<void()> run) {
  enqueue(process, stream, std::move(what),
          options.isDry ? std::function<void()>([] {}) : std::move(run));
}

void Server::launch(Process &process, const Body &body) {
  Launch call = bodyOf<Launch>(body);
  auto arguments = restOf<Launch, char>(body);
  checkLaunch(memory, process, call, arguments);
  compute(process, call.stream,
          "kernel " + shortName(hostBuild(call.kernel).name),
          [call, arguments] { runLaunch(call, arguments); });
}

/// A planted kernel that does not end.
static Operation hanging() {
  Operation operation;
  operation.what = "a kernel that hangs";
  operation.waitsFor = [what = operation.what] { return what; };
  operation.run = [] {};
  return operation;
}

/// The bytes are those at the call.
void Server::copyIn(Process &process, const Body &body) {
  HostCopy call = bodyOf<HostCopy>(body);
  memory.require(process, call.address, call.bytes, "copy to the device");
  enqueue(process, call.stream, "copy to the device",
          [call, bytes = restOf<HostCopy, char>(body)] {
            std::memcpy(pointerTo(call.address), bytes.data(), bytes.size());
          });
}

/// A planted copy from pinned memory whose bytes are those at the call.
void Server::copyStale(Process &process, const Body &body) {
  Copy call = bodyOf<Copy>(body);
  memory.require(process, call.from, call.bytes, "copy, source");
  auto *from = pointerTo<const char>(call.from);
  std::vector<char> bytes(from, from + call.bytes);
  enqueue(process, call.stream, "copy", [call, bytes] {
    std::memcpy(pointerTo(call.to), bytes.data(), bytes.size());
  });
}

Operation Server::makeTransfer(Process &process, const Group &call,
                               const std::vector<Transfer> &transfers) {
  Operation operation;
  operation.what = "NCCL group";
  operation.group = collectives.issue(process, call, transfers);
  auto group = operation.group;
  operation.waitsFor = [this, group] { return collectives.waitsFor(*group); };
  operation.run = [this, group] { collectives.run(*group); };
  return operation;
}

void Server::transfer(Process &process, const Body &body) {
  Group call = bodyOf<Group>(body);
  auto transfers = restOf<Group, Transfer>(body);
  if (Capture *capture = captureOf(process, call.stream))
    addNode(process, *capture, call.stream, "NCCL group",
            [this, &process, call, transfers] {
              return makeTransfer(process, call, transfers);
            });
  else
    enqueue(process, call.stream, makeTransfer(process, call, transfers));
}

void Server::record(Process &process, const EventCall &call) {
  if (captureRecord(process, call))
    return;
  auto mark = std::make_shared<Recorded>();
  process.events[call.event] = mark;
  enqueue(process, call.stream, "record of event " + std::to_string(call.event),
          [mark] { *mark = {true, std::chrono::steady_clock::now()}; });
}

/// Waits for the last record at the time of the call; without one it does not
/// wait at all.
void Server::wait(Process &process, const EventCall &call) {
  if (captureWait(process, call))
    return;
  auto found = process.events.find(call.event);
  if (found == process.events.end())
    return;
  Operation operation;
  operation.what = "wait for event " + std::to_string(call.event);
  operation.waitsFor = [mark = found->second, what = operation.what] {
    return mark->isDone ? std::string() : what;
  };
  operation.run = [] {};
  enqueue(process, call.stream, std::move(operation));
}

void Server::issue(Process &process, Call call, const Body &body) {
  switch (call) {
  case Call::CreateStream: {
    auto made = bodyOf<StreamCall>(body);
    process.streams[made.stream].priority = made.priority;
    return;
  }
  case Call::DestroyStream:
    // What is issued on it still runs.
    streamOf(process, bodyOf<StreamCall>(body).stream).isDestroyed = true;
    return;
  case Call::DestroyEvent:
    process.events.erase(bodyOf<EventCall>(body).event);
    process.captured.erase(bodyOf<EventCall>(body).event);
    return;
  case Call::Record:
    return record(process, bodyOf<EventCall>(body));
  case Call::Wait:
    return wait(process, bodyOf<EventCall>(body));
  case Call::Launch:
    return launch(process, body);
  case Call::Hang:
    return enqueue(process, bodyOf<Hang>(body).stream, hanging());
  case Call::CopyIn:
    return copyIn(process, body);
  case Call::StaleCopy:
    return copyStale(process, body);
  case Call::Copy: {
    auto c = bodyOf<Copy>(body);
    memory.require(process, c.from, c.bytes, "copy, source");
    memory.require(process, c.to, c.bytes, "copy, target");
    return compute(process, c.stream, "copy", [c] {
      std::memmove(pointerTo(c.to), pointerTo(c.from), c.bytes);
    });
  }
  case Call::Fill: {
    auto f = bodyOf<Fill>(body);
    memory.require(process, f.address, f.bytes, "fill");
    return compute(process, f.stream, "fill", [f] {
      std::memset(pointerTo(f.address), int(f.value), f.bytes);
    });
  }
  case Call::Write: {
    auto w = bodyOf<Write>(body);
    memory.require(process, w.address, sizeof w.value, "write of a word");
    return enqueue(process, w.stream, "write of a word", [w] {
      __atomic_store_n(pointerTo<uint64_t>(w.address), w.value,
                       __ATOMIC_RELEASE);
    });
  }
  case Call::Gemm: {
    auto g = bodyOf<Gemm>(body);
    library.check(memory, process, g);
    return compute(process, g.stream, "matmul", [this, g] { library.run(g); });
  }
  case Call::Attention: {
    auto a = bodyOf<Attention>(body);
    library.check(memory, process, a);
    return compute(process, a.stream, "attention",
                   [this, a] { library.run(a); });
  }
  case Call::CommAbort:
    return collectives.abort(process, bodyOf<CommDestroy>(body));
  case Call::Register:
    return collectives.addRegistration(process, bodyOf<Registration>(body));
  case Call::Deregister:
    return collectives.removeRegistration(process, bodyOf<Registration>(body));
  case Call::Group:
    return transfer(process, body);
  case Call::GraphLaunch:
    return launchGraph(process, bodyOf<GraphCall>(body));
  case Call::DestroyGraph:
    process.graphs.erase(bodyOf<GraphCall>(body).graph);
    return;
  case Call::DestroyExecutable:
    process.executables.erase(bodyOf<GraphCall>(body).graph);
    return;
  default:
    throw std::runtime_error("a message that is no call");
  }
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// Answers as soon as `isDone`.
void Server::waitFor(Process &process, const char *what,
                     std::function<bool()> isDone,
                     std::function<std::vector<char>()> result) {
  process.pending = Pending{what, std::move(isDone), std::move(result)};
}

/// Answers now. Somebody who asks again and again sees the device go on.
void Server::query(Process &process, const std::function<bool()> &isDone) {
  if (!isDone())
    step();
  // It may have failed in that step.
  if (process.failure.empty())
    answer(process, isDone() ? Status::Done : Status::NotYet, {});
}

std::function<bool()> Server::streamIsDone(Process &process,
                                           const StreamCall &call) {
  if (call.all)
    return [&process] { return process.isIdle(); };
  DeviceStream &stream = streamOf(process, call.stream);
  return [&stream] { return stream.queue.empty(); };
}

std::function<bool()> Server::eventIsDone(Process &process,
                                          const EventCall &call) {
  auto found = process.events.find(call.event);
  Mark mark = found == process.events.end() ? nullptr : found->second;
  return [mark] { return !mark || mark->isDone; };
}

/// Milliseconds from one event to another.
void Server::elapsed(Process &process, const EventPair &call) {
  auto find = [&](uint32_t event) {
    auto found = process.events.find(event);
    return found == process.events.end() ? nullptr : found->second;
  };
  Mark first = find(call.first), last = find(call.last);
  if (!first || !last)
    return answer(process, Status::Failed, {});
  if (!first->isDone || !last->isDone)
    return answer(process, Status::NotYet, {});
  std::chrono::duration<float, std::milli> between = last->at - first->at;
  answer(process, Status::Done, bytesOf(between.count()));
}

void Server::allocate(Process &process, const Allocate &call) {
  uint64_t address = memory.allocate(process, call.bytes, call.isHost);
  if (address == 0)
    return answer(process, Status::OutOfMemory, {});
  trace.allocated(process, call, address);
  answer(process, Status::Done, bytesOf(Allocated{address}),
         memory.fileOf(address));
}

void Server::find(Process &process, const Body &body) {
  auto name = restOf<FindKernel, char>(body);
  uint32_t number = findHostBuild(std::string(name.begin(), name.end()));
  const HostBuild &found = hostBuild(number);
  std::vector<char> result = bytesOf(KernelInfo{number, found.count});
  for (uint32_t i = 0; i < found.count; ++i) {
    auto size = bytesOf(found.parameters[i].bytes);
    result.insert(result.end(), size.begin(), size.end());
  }
  answer(process, Status::Done, result);
}

/// Waits for the process's place in a communicator that ranks make together.
void Server::rendezvous(Process &process, const char *what, uint32_t comm) {
  waitFor(
      process, what, [&process, comm] { return process.comms.count(comm) > 0; },
      [&process, comm] {
        const Member *member = process.comms.at(comm);
        if (!member)
          return std::vector<char>();
        return bytesOf(CommPlace{member->rank, sizeOf(*member)});
      });
}

void Server::copyOut(Process &process, const HostCopy &call) {
  memory.require(process, call.address, call.bytes, "copy to the host");
  auto bytes = std::make_shared<std::vector<char>>();
  auto isDone = std::make_shared<bool>(false);
  enqueue(process, call.stream, "copy to the host", [call, bytes, isDone] {
    auto *from = pointerTo<const char>(call.address);
    bytes->assign(from, from + call.bytes);
    *isDone = true;
  });
  waitFor(
      process, "a copy to the host", [isDone] { return *isDone; },
      [bytes] { return *bytes; });
}

void Server::ask(Process &process, Call call, const Body &body) {
  switch (call) {
  case Call::Hello:
    process.rank = bodyOf<Hello>(body).rank;
    return answer(process, Status::Done, {});
  case Call::Allocate:
    return allocate(process, bodyOf<Allocate>(body));
  case Call::Free: {
    auto address = bodyOf<Free>(body).address;
    return waitFor(
        process, "cudaFree", [&process] { return process.isIdle(); },
        [this, address] {
          memory.free(address);
          return std::vector<char>();
        });
  }
  case Call::FindKernel:
    return find(process, body);
  case Call::CopyOut:
    return copyOut(process, bodyOf<HostCopy>(body));
  case Call::Synchronize:
    return waitFor(process, "a synchronisation",
                   streamIsDone(process, bodyOf<StreamCall>(body)));
  case Call::IsDone:
    return query(process, streamIsDone(process, bodyOf<StreamCall>(body)));
  case Call::EventSynchronize:
    return waitFor(process, "cudaEventSynchronize",
                   eventIsDone(process, bodyOf<EventCall>(body)));
  case Call::EventIsDone:
    return query(process, eventIsDone(process, bodyOf<EventCall>(body)));
  case Call::EventElapsed:
    return elapsed(process, bodyOf<EventPair>(body));
  case Call::UniqueId:
    return answer(process, Status::Done,
                  bytesOf(UniqueId{collectives.uniqueId()}));
  case Call::CommInit: {
    auto init = bodyOf<CommInit>(body);
    collectives.init(process, init);
    return rendezvous(process, "ncclCommInitRank", init.comm);
  }
  case Call::CommSplit: {
    auto split = bodyOf<CommSplit>(body);
    collectives.split(process, split);
    return rendezvous(process, "ncclCommSplit", split.comm);
  }
  case Call::CommDestroy:
    collectives.destroy(process, bodyOf<CommDestroy>(body));
    return answer(process, Status::Done, {});
  case Call::BeginCapture:
    return beginCapture(process, bodyOf<BeginCapture>(body));
  case Call::EndCapture:
    return endCapture(process, bodyOf<EndCapture>(body));
  case Call::CaptureInfo:
    return describeCapture(process, bodyOf<StreamCall>(body));
  case Call::Instantiate:
    return instantiate(process, bodyOf<Instantiate>(body));
  default:
    throw std::runtime_error("a message that is no call");
  }
}
