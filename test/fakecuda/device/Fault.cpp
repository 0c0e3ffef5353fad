//===- Fault.cpp - Planted faults -----------------------------------------===//
#include "Fault.h"
#include "Kernels.h"
#include "Message.h"
#include <algorithm>
#include <iterator>
#include <nccl.h>

using namespace fsdp::fake;

using Messages = std::vector<Message>;

/// A kind changes the calls of one sort: in place, or into none or two.
struct Fault::Kind {
  enum What { Changed, LeftOut, Twice, AfterNext, BeforePrevious };
  const char *name;
  Call call;
  What what;
  void (*change)(Message &message) = nullptr;
};

//===----------------------------------------------------------------------===//
// Changes of a call
//===----------------------------------------------------------------------===//

/// Applies `edit` to the structure of a call.
template <typename T, typename Edit>
static void editBody(Message &message, const Edit &edit) {
  T body = bodyOf<T>(message.body);
  edit(body);
  putBody(message.body, body);
}
template <typename T> static void halveBytes(Message &message) {
  editBody<T>(message, [](T &body) { body.bytes /= 2; });
}
template <typename T> static void toLegacyStream(Message &message) {
  editBody<T>(message, [](T &body) { body.stream = kLegacyStream; });
}
/// Streams of a context have numbers one after the other; compute is first.
template <typename T> static void toNextStream(Message &message) {
  editBody<T>(message, [](T &body) { ++body.stream; });
}
template <typename T> static void toPreviousStream(Message &message) {
  editBody<T>(message, [](T &body) { --body.stream; });
}

/// The least alignment of a range.
static constexpr uint64_t kLine = 64;

template <typename Edit>
static void editTransfers(Message &message, const Edit &edit) {
  auto transfers = restOf<Group, Transfer>(message.body);
  edit(transfers);
  std::memcpy(message.body.data() + sizeof(Group), transfers.data(),
              transfers.size() * sizeof(Transfer));
}
static void swapTransfers(Message &message) {
  editTransfers(message, [](auto &all) { std::swap(all.front(), all.back()); });
}
static void halveTransfer(Message &message) {
  editTransfers(message, [](auto &all) { all.front().bytes /= 2; });
}
static void moveTransfer(Message &message) {
  editTransfers(message, [](auto &all) {
    for (Transfer &t : all)
      if (t.kind != TransferKind::Receive)
        t.from += kLine;
  });
}
static void leaveMemory(Message &message) {
  editTransfers(message,
                [](auto &all) { all.front().from -= uint64_t(1) << 40; });
}
/// A send to oneself; where there are more ranks, to the one before.
static void changePeer(Message &message) {
  editTransfers(message, [](auto &all) {
    for (Transfer &t : all)
      if (t.kind == TransferKind::Send) {
        t.peer = t.peer > 0 ? t.peer - 1 : t.peer + 1;
        return;
      }
  });
}

/// Calls edit(argument's bytes) for the first argument that is one of a kind.
template <typename Edit>
static void editArgument(Message &message, bool isPointer, const Edit &edit) {
  const HostBuild &t = hostBuild(bodyOf<Launch>(message.body).kernel);
  size_t at = sizeof(Launch);
  for (uint32_t i = 0; i < t.count; at += t.parameters[i++].bytes)
    if (t.parameters[i].isPointer == isPointer)
      return edit(message.body.data() + at);
}
static void movePointer(Message &message) {
  editArgument(message, /*isPointer=*/true, [](char *argument) {
    uint64_t address;
    std::memcpy(&address, argument, sizeof address);
    address += kLine;
    std::memcpy(argument, &address, sizeof address);
  });
}
static void changeValue(Message &message) {
  editArgument(message, /*isPointer=*/false,
               [](char *argument) { argument[0] ^= 1; });
}
static void swapPointers(Message &message) {
  const HostBuild &t = hostBuild(bodyOf<Launch>(message.body).kernel);
  char *first = nullptr;
  size_t at = sizeof(Launch);
  for (uint32_t i = 0; i < t.count; at += t.parameters[i++].bytes) {
    char *argument = message.body.data() + at;
    if (t.parameters[i].isPointer && first)
      return void(std::swap_ranges(first, first + sizeof(uint64_t), argument));
    if (t.parameters[i].isPointer)
      first = argument;
  }
}

static void dropBlock(Message &message) {
  editBody<Launch>(message, [](Launch &l) { --l.grid[0]; });
}
static void halveBlock(Message &message) {
  editBody<Launch>(message, [](Launch &l) { l.block[0] /= 2; });
}
/// Host builds of a step's kernels are numbered in their order.
static void changeKernel(Message &message) {
  editBody<Launch>(message, [](Launch &l) { ++l.kernel; });
}
static void hang(Message &message) {
  Hang hanging{bodyOf<Launch>(message.body).stream};
  message = {Call::Hang, bytesOf(hanging)};
}

static void swapOperands(Message &message) {
  editBody<Gemm>(message, [](Gemm &g) { std::swap(g.lhs, g.rhs); });
}
static void moveResult(Message &message) {
  editBody<Gemm>(message, [](Gemm &g) { g.out += kLine; });
}
static void transposeOperand(Message &message) {
  editBody<Gemm>(message,
                 [](Gemm &g) { g.desc.transposeRhs = !g.desc.transposeRhs; });
}
static void useResultAsWorkspace(Message &message) {
  editBody<Gemm>(message, [](Gemm &g) { g.workspace = g.lhs; });
}
static void useInputAsWorkspace(Message &message) {
  editBody<Attention>(message, [](Attention &a) { a.workspace = a.q; });
}
static void forgetCausal(Message &message) {
  editBody<Attention>(message, [](Attention &a) { a.desc.causal = false; });
}
static void changeEvent(Message &message) {
  editBody<EventCall>(message, [](EventCall &e) { --e.event; });
}
/// Ranks of a communicator in the opposite order.
static void reverseOrder(Message &message) {
  editBody<CommSplit>(message, [](CommSplit &c) { c.key = -c.key; });
}
/// A window of one page less, at its beginning.
static void moveWindow(Message &message) {
  editBody<Registration>(message, [](Registration &r) {
    r.address += NCCL_WIN_REQUIRED_ALIGNMENT;
    r.bytes -= NCCL_WIN_REQUIRED_ALIGNMENT;
  });
}
/// The bytes at the call instead of those when it runs.
static void copyAtCall(Message &message) { message.call = Call::StaleCopy; }
static void fillWithOnes(Message &message) {
  editBody<Fill>(message, [](Fill &f) { f.value = 1; });
}

//===----------------------------------------------------------------------===//
// The kinds
//===----------------------------------------------------------------------===//

using Kind = Fault::Kind;

static const Kind kKinds[] = {
    {"drop-wait", Call::Wait, Kind::LeftOut},
    {"wrong-event", Call::Wait, Kind::Changed, changeEvent},
    {"wrong-stream-wait", Call::Wait, Kind::Changed, toNextStream<EventCall>},
    {"drop-record", Call::Record, Kind::LeftOut},
    {"early-record", Call::Record, Kind::BeforePrevious},

    {"drop-launch", Call::Launch, Kind::LeftOut},
    {"double-launch", Call::Launch, Kind::Twice},
    {"wrong-stream", Call::Launch, Kind::Changed, toLegacyStream<Launch>},
    {"wrong-grid", Call::Launch, Kind::Changed, dropBlock},
    {"wrong-block", Call::Launch, Kind::Changed, halveBlock},
    {"wrong-offset", Call::Launch, Kind::Changed, movePointer},
    {"wrong-value", Call::Launch, Kind::Changed, changeValue},
    {"wrong-kernel", Call::Launch, Kind::Changed, changeKernel},
    {"swap-pointers", Call::Launch, Kind::Changed, swapPointers},
    {"swap-launches", Call::Launch, Kind::AfterNext},
    {"hang", Call::Launch, Kind::Changed, hang},

    {"drop-matmul", Call::Gemm, Kind::LeftOut},
    {"wrong-stream-matmul", Call::Gemm, Kind::Changed, toNextStream<Gemm>},
    {"wrong-operand", Call::Gemm, Kind::Changed, swapOperands},
    {"wrong-result", Call::Gemm, Kind::Changed, moveResult},
    {"stale-descriptor", Call::Gemm, Kind::Changed, transposeOperand},
    {"wrong-workspace-matmul", Call::Gemm, Kind::Changed, useResultAsWorkspace},

    {"drop-attention", Call::Attention, Kind::LeftOut},
    {"wrong-stream-attention", Call::Attention, Kind::Changed,
     toNextStream<Attention>},
    {"wrong-workspace", Call::Attention, Kind::Changed, useInputAsWorkspace},
    {"stale-attention", Call::Attention, Kind::Changed, forgetCausal},

    {"drop-group", Call::Group, Kind::LeftOut},
    {"double-group", Call::Group, Kind::Twice},
    {"swap-group", Call::Group, Kind::Changed, swapTransfers},
    {"swap-collectives", Call::Group, Kind::AfterNext},
    {"wrong-stream-group", Call::Group, Kind::Changed, toPreviousStream<Group>},
    {"short-transfer", Call::Group, Kind::Changed, halveTransfer},
    {"wrong-offset-group", Call::Group, Kind::Changed, moveTransfer},
    {"wrong-memory-group", Call::Group, Kind::Changed, leaveMemory},
    {"wrong-peer", Call::Group, Kind::Changed, changePeer},
    {"wrong-place", Call::CommSplit, Kind::Changed, reverseOrder},
    {"drop-registration", Call::Register, Kind::LeftOut},
    {"wrong-window", Call::Register, Kind::Changed, moveWindow},

    {"drop-graph", Call::GraphLaunch, Kind::LeftOut},
    {"double-graph", Call::GraphLaunch, Kind::Twice},

    {"drop-copy", Call::Copy, Kind::LeftOut},
    {"short-copy", Call::Copy, Kind::Changed, halveBytes<Copy>},
    {"wrong-stream-copy", Call::Copy, Kind::Changed, toLegacyStream<Copy>},
    {"stale-copy", Call::Copy, Kind::Changed, copyAtCall},
    {"drop-fill", Call::Fill, Kind::LeftOut},
    {"short-fill", Call::Fill, Kind::Changed, halveBytes<Fill>},
    {"wrong-stream-fill", Call::Fill, Kind::Changed, toLegacyStream<Fill>},
    {"wrong-fill", Call::Fill, Kind::Changed, fillWithOnes},
};

/// Those of the process: see client/. And that of a graph.
static const char *const kOthers[] = {"drop-synchronize",
                                      "host-read",
                                      "host-write",
                                      "reuse-pinned",
                                      "dead-rank",
                                      "stale-algorithm",
                                      "captured-question",
                                      "captured-legacy",
                                      "captured-allocation",
                                      "captured-transfer",
                                      "drop-event-synchronize",
                                      "drop-edge",
                                      "async-error",
                                      "hang-connect"};

static const Kind *kindOf(const FaultText &text) {
  for (const Kind &kind : kKinds)
    if (text.kind == kind.name)
      return &kind;
  bool isKnown =
      text.kind.empty() ||
      std::count(std::begin(kOthers), std::end(kOthers), text.kind) == 1;
  if (!isKnown)
    throw std::runtime_error(std::string(kFaultVariable) + ": there is no " +
                             text.kind);
  return nullptr;
}

Fault::Fault(const std::string &text) : text(text), kind(kindOf(this->text)) {}

//===----------------------------------------------------------------------===//
// Planting
//===----------------------------------------------------------------------===//

Messages Fault::change(const Process &process, Message message) {
  planted = true;
  switch (kind->what) {
  case Kind::LeftOut:
    return {};
  case Kind::Twice:
    return {message, message};
  case Kind::AfterNext:
    held[&process] = {std::move(message)};
    return {};
  case Kind::Changed:
  case Kind::BeforePrevious:
    break;
  }
  if (kind->change)
    kind->change(message);
  return {std::move(message)};
}

/// Moves what is held to the end of `result`.
static void release(Messages &held, Messages &result) {
  std::move(held.begin(), held.end(), std::back_inserter(result));
  held.clear();
}

/// Holds every call until the next, which may be the record to go before it. A
/// word that says what is done belongs to the call before it.
Messages Fault::plantEarlyRecord(const Process &process, Message message) {
  Messages &previous = held[&process];
  bool isRecord = message.call == Call::Record;
  bool isIt = isRecord && seen[&process]++ == text.index;
  planted |= isIt;
  Messages result;
  if (isIt)
    result.push_back(message);
  if (message.call != Call::Write)
    release(previous, result);
  if (!isIt)
    previous.push_back(std::move(message));
  if (!previous.empty() && isAnswered(previous.back().call))
    release(previous, result);
  return result;
}

Messages Fault::plant(const Process &process, Message message) {
  if (message.call == Call::Planted) {
    planted = true;
    return {};
  }
  if (!kind || (text.rank >= 0 && process.rank != text.rank))
    return {std::move(message)};
  // Of what comes before the first kernel some depends on time. The making of
  // communicators does not.
  bool isMade = kind->call == Call::CommSplit || kind->call == Call::Register;
  if (message.call == Call::Launch || isMade)
    seen.emplace(&process, 0);
  auto count = seen.find(&process);
  if (count == seen.end())
    return {std::move(message)};
  if (kind->what == Kind::BeforePrevious)
    return plantEarlyRecord(process, std::move(message));
  if (message.call != kind->call)
    return {std::move(message)};
  if (count->second++ == text.index)
    return change(process, std::move(message));
  Messages result = {std::move(message)};
  release(held[&process], result);
  return result;
}

/// Edges are counted by the nodes that they lead to, in their order; of a
/// process's graphs the first loses one.
void Fault::plantIn(const Process &process, Graph &graph) {
  bool concerns = text.kind == "drop-edge" && process.graphs.empty() &&
                  (text.rank < 0 || process.rank == text.rank);
  if (!concerns)
    return;
  uint64_t edge = text.index;
  for (GraphNode &node : graph.nodes) {
    if (edge < node.after.size()) {
      node.after.erase(node.after.begin() + std::ptrdiff_t(edge));
      planted = true;
      return;
    }
    edge -= node.after.size();
  }
}
