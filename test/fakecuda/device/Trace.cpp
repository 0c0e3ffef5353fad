//===- Trace.cpp - What was issued and what ran ---------------------------===//
#include "Trace.h"
#include "Kernels.h"
#include "Message.h"
#include <sstream>

using namespace fsdp;
using namespace fsdp::fake;

namespace {

/// The fields of one line.
class Line {
public:
  explicit Line(const char *call) {
    text.precision(17); // all of an f64
    text << "{\"call\": \"" << call << '"';
  }

  template <typename T> Line &number(const char *name, T value) {
    text << ", \"" << name << "\": " << +value;
    return *this;
  }
  Line &string(const char *name, const std::string &value) {
    text << ", \"" << name << "\": \"" << value << '"';
    return *this;
  }
  Line &numbers(const char *name, const std::vector<uint64_t> &values) {
    return list(name, values, "");
  }
  Line &strings(const char *name, const std::vector<std::string> &values) {
    return list(name, values, "\"");
  }
  std::string str() const { return text.str() + "}\n"; }

private:
  template <typename T>
  Line &list(const char *name, const std::vector<T> &values,
             const char *quote) {
    text << ", \"" << name << "\": [";
    for (size_t i = 0; i < values.size(); ++i)
      text << (i ? ", " : "") << quote << values[i] << quote;
    text << ']';
    return *this;
  }

  std::ostringstream text;
};

} // namespace

static std::string hexOf(const char *bytes, size_t count) {
  std::string text;
  for (size_t i = 0; i < count; ++i) {
    text += "0123456789abcdef"[uint8_t(bytes[i]) / 16];
    text += "0123456789abcdef"[uint8_t(bytes[i]) % 16];
  }
  return text;
}

static std::string launchLine(const std::vector<char> &message) {
  Launch l = bodyOf<Launch>(message);
  const HostBuild &t = hostBuild(l.kernel);
  auto rest = restOf<Launch, char>(message);
  std::vector<uint64_t> pointers;
  std::vector<std::string> values;
  size_t at = 0;
  for (uint32_t i = 0; i < t.count; ++i) {
    if (t.parameters[i].isPointer) {
      uint64_t address;
      std::memcpy(&address, rest.data() + at, sizeof address);
      pointers.push_back(address);
    } else {
      values.push_back(hexOf(rest.data() + at, t.parameters[i].bytes));
    }
    at += t.parameters[i].bytes;
  }
  return Line("launch")
      .number("stream", l.stream)
      .string("kernel", shortName(t.name))
      .numbers("grid", {l.grid[0], l.grid[1], l.grid[2]})
      .numbers("block", {l.block[0], l.block[1], l.block[2]})
      .numbers("pointers", pointers)
      .strings("values", values)
      .str();
}

static std::string groupLine(const std::vector<char> &message) {
  Group g = bodyOf<Group>(message);
  std::vector<uint64_t> kinds, peers, from, to, bytes, sums;
  for (const Transfer &t : restOf<Group, Transfer>(message)) {
    kinds.push_back(uint64_t(t.kind));
    peers.push_back(t.peer < 0 ? 0 : uint64_t(t.peer));
    from.push_back(t.from);
    to.push_back(t.to);
    bytes.push_back(t.bytes);
    sums.push_back(uint64_t(t.sum));
  }
  return Line("group")
      .number("stream", g.stream)
      .number("comm", g.comm)
      .numbers("kinds", kinds)
      .numbers("peers", peers)
      .numbers("from", from)
      .numbers("to", to)
      .numbers("bytes", bytes)
      .numbers("sums", sums)
      .str();
}

static std::string gemmLine(const Gemm &g) {
  auto type = [](rt::DType t) { return static_cast<unsigned>(t); };
  const rt::GemmDesc &d = g.desc;
  return Line("gemm")
      .number("stream", g.stream)
      .numbers("sizes",
               {uint64_t(d.batch), uint64_t(d.m), uint64_t(d.n), uint64_t(d.k)})
      .numbers("transposed", {d.transposeLhs, d.transposeRhs})
      .numbers("types", {type(d.in), type(d.out)})
      .numbers("pointers", {g.lhs, g.rhs, g.bias, g.out, g.workspace})
      .number("workspace_bytes", g.workspaceBytes)
      .number("accumulate", d.accumulate)
      .str();
}

static std::string attentionLine(const Attention &a) {
  const rt::AttentionDesc &d = a.desc;
  return Line(a.isBackward ? "attention_grad" : "attention")
      .number("stream", a.stream)
      .numbers("sizes",
               {uint64_t(d.batch), uint64_t(d.qLen), uint64_t(d.kvLen),
                uint64_t(d.heads), uint64_t(d.kvHeads), uint64_t(d.headDim)})
      .number("scale", d.scale)
      .number("causal", d.causal)
      .number("window", d.window)
      .number("type", static_cast<unsigned>(d.type))
      .numbers("pointers", {a.q, a.k, a.v, a.out, a.lse, a.dout, a.dq, a.dk,
                            a.dv, a.workspace})
      .str();
}

static std::string copyLine(const Copy &c) {
  return Line("copy")
      .number("stream", c.stream)
      .number("from", c.from)
      .number("to", c.to)
      .number("bytes", c.bytes)
      .str();
}

static std::string fillLine(const Fill &f) {
  return Line("fill")
      .number("stream", f.stream)
      .number("value", f.value)
      .number("to", f.address)
      .number("bytes", f.bytes)
      .str();
}

static std::string writeLine(const Write &w) {
  return Line("write")
      .number("stream", w.stream)
      .number("to", w.address)
      .number("value", w.value)
      .str();
}

static std::string hostCopyLine(const char *call, const HostCopy &c) {
  return Line(call)
      .number("stream", c.stream)
      .number("address", c.address)
      .number("bytes", c.bytes)
      .str();
}

static std::string eventLine(const char *call, const EventCall &e) {
  return Line(call).number("event", e.event).number("stream", e.stream).str();
}

static std::string streamLine(const char *call, const StreamCall &s) {
  return Line(call)
      .number("stream", s.stream)
      .number("priority", s.priority)
      .number("all", s.all)
      .str();
}

static std::string splitLine(const CommSplit &c) {
  return Line("comm_split")
      .number("parent", c.parent)
      .number("comm", c.comm)
      .number("color", c.color)
      .number("key", c.key)
      .str();
}

static std::string registerLine(const Registration &r) {
  return Line("register")
      .number("comm", r.comm)
      .number("symmetric", r.isSymmetric)
      .number("address", r.address)
      .number("bytes", r.bytes)
      .str();
}

static std::string beginCaptureLine(const BeginCapture &b) {
  return Line("begin_capture")
      .number("stream", b.stream)
      .number("mode", static_cast<unsigned>(b.mode))
      .str();
}

static std::string launchGraphLine(const GraphCall &g) {
  return Line("graph_launch")
      .number("executable", g.graph)
      .number("stream", g.stream)
      .str();
}

static std::string instantiateLine(const Instantiate &i) {
  return Line("instantiate")
      .number("graph", i.graph)
      .number("executable", i.executable)
      .number("keeps_priorities", i.keepsPriorities)
      .str();
}

/// Empty for calls that neither issue work nor prepare or await it.
static std::string lineOf(Call call, const std::vector<char> &message) {
  switch (call) {
  case Call::Launch:
    return launchLine(message);
  case Call::Group:
    return groupLine(message);
  case Call::Gemm:
    return gemmLine(bodyOf<Gemm>(message));
  case Call::Attention:
    return attentionLine(bodyOf<Attention>(message));
  case Call::Copy:
  case Call::StaleCopy:
    return copyLine(bodyOf<Copy>(message));
  case Call::Fill:
    return fillLine(bodyOf<Fill>(message));
  case Call::Write:
    return writeLine(bodyOf<Write>(message));
  case Call::CopyIn:
    return hostCopyLine("copy_in", bodyOf<HostCopy>(message));
  case Call::CopyOut:
    return hostCopyLine("copy_out", bodyOf<HostCopy>(message));
  case Call::Record:
    return eventLine("record", bodyOf<EventCall>(message));
  case Call::Wait:
    return eventLine("wait", bodyOf<EventCall>(message));
  case Call::EventSynchronize:
    return eventLine("event_synchronize", bodyOf<EventCall>(message));
  case Call::CreateStream:
    return streamLine("create_stream", bodyOf<StreamCall>(message));
  case Call::Synchronize:
    return streamLine("synchronize", bodyOf<StreamCall>(message));
  case Call::BeginCapture:
    return beginCaptureLine(bodyOf<BeginCapture>(message));
  case Call::Instantiate:
    return instantiateLine(bodyOf<Instantiate>(message));
  case Call::GraphLaunch:
    return launchGraphLine(bodyOf<GraphCall>(message));
  case Call::CommSplit:
    return splitLine(bodyOf<CommSplit>(message));
  case Call::Register:
    return registerLine(bodyOf<Registration>(message));
  default:
    return {};
  }
}

Trace::Trace(std::string name) : prefix(std::move(name)) {
  if (!prefix.empty())
    order.open(prefix + ".executed.jsonl");
}

std::ofstream &Trace::fileOf(const Process &process) {
  std::ofstream &file = files[process.rank];
  if (!file.is_open())
    file.open(prefix + ".rank" + std::to_string(process.rank) + ".jsonl");
  return file;
}

void Trace::issued(const Process &process, Call call,
                   const std::vector<char> &body) {
  if (prefix.empty())
    return;
  if (std::string line = lineOf(call, body); !line.empty())
    fileOf(process) << line;
}

void Trace::allocated(const Process &process, const Allocate &call,
                      uint64_t address) {
  if (!prefix.empty())
    fileOf(process) << Line("allocate")
                           .number("address", address)
                           .number("bytes", call.bytes)
                           .number("host", call.isHost)
                           .str();
}

void Trace::captured(const Process &process, const EndCapture &call,
                     const Graph &graph) {
  if (prefix.empty())
    return;
  std::vector<uint64_t> edges;
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (size_t earlier : graph.nodes[i].after)
      edges.insert(edges.end(), {earlier, i});
  fileOf(process) << Line("end_capture")
                         .number("stream", call.stream)
                         .number("graph", call.graph)
                         .number("nodes", graph.nodes.size())
                         .numbers("edges", edges)
                         .str();
}

void Trace::executed(const Process &process, const Operation &operation) {
  if (!prefix.empty())
    order << "{\"rank\": " << process.rank
          << ", \"number\": " << operation.number << ", \"what\": \""
          << operation.what << "\"}\n";
}
