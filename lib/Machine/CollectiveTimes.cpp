//===- CollectiveTimes.cpp - How long collectives take --------------------===//
//
// What is added up is rounded to picoseconds first: sums of whole numbers keep
// the order of what is added, which sums of rounded ones need not.
//
//===----------------------------------------------------------------------===//
#include "Curve.h"
#include "fsdp/Machine/CostModel.h"
#include "fsdp/Support/Error.h"
#include <algorithm>
#include <cassert>
#include <optional>

using namespace fsdp;

using rt::CollectiveKind;

static std::string textOf(GroupShape shape) {
  return std::to_string(shape.nodes) +
         (shape.nodes == 1 ? " node of " : " nodes of ") +
         std::to_string(shape.ranksPerNode) + " ranks";
}

/// What would give a group of this shape a time.
static std::string curveOf(CollectiveKind kind, Sums sums, GroupShape shape) {
  return "a [[curve]] with collective = \"" + spelled(kind) + "\"" +
         (sums == Sums::Fast ? "" : ", sums = \"" + spelled(sums) + "\"") +
         ", ranks_per_node = " + std::to_string(shape.ranksPerNode) +
         ", nodes = " + std::to_string(shape.nodes);
}

namespace {

/// One call on one machine.
class CollectiveTime {
public:
  CollectiveTime(const Machine &machine, const CollectiveCall &call)
      : machine(machine), call(call) {}

  Duration of(CollectiveKind kind, Sums sums);

private:
  /// One curve's time.
  Duration onCurve(const Machine::Curve &curve, GroupShape shape) const;
  const Machine::Curve *findCurve(CollectiveKind kind, Sums sums) const;
  /// Between the next smaller and the next larger group of a node that have
  /// curves.
  std::optional<Duration> betweenCurves(CollectiveKind kind) const;
  Duration byRing(CollectiveKind kind) const;
  /// On the ring's bandwidth of one protocol, bytes per second.
  double ringBandwidth(const Machine::Protocol &protocol) const;
  Duration ringLatency(const Machine::Protocol &protocol,
                       CollectiveKind kind) const;

  Duration exactFlat() const;
  Duration exactTwoLevels() const;
  /// A rank sends all others their pieces of so many bytes.
  Duration exchange(int64_t bytes, GroupShape shape) const;
  Duration exchangeRound(int64_t bytes, GroupShape shape) const;
  Duration exactKernel(int64_t bytes) const;

  const Machine::Ramp *findRamp(const std::string &name) const;
  double required(double stated, const char *key) const;
  [[noreturn]] void fail(const std::string &why) const;

  const Machine &machine;
  const CollectiveCall &call;
  /// What is looked up, for messages.
  CollectiveKind asked = CollectiveKind::AllGather;
  Sums askedSums = Sums::Fast;
};

} // namespace

void CollectiveTime::fail(const std::string &why) const {
  throw Error(
      "the machine '" + machine.name + "' has no time for " +
      (asked == CollectiveKind::AllGather ? "" : spelled(askedSums) + " ") +
      spelled(asked) + " over " + textOf(call.shape) + ": " + why);
}

double CollectiveTime::required(double stated, const char *key) const {
  if (stated == 0)
    fail(std::string("say ") + key + ", or " +
         curveOf(asked, askedSums, call.shape));
  return stated;
}

const Machine::Ramp *CollectiveTime::findRamp(const std::string &name) const {
  for (const Machine::Ramp &ramp : machine.ramps)
    if (ramp.name == name)
      return &ramp;
  return nullptr;
}

/// Latency and bytes at a bandwidth, which small messages do not reach.
static Duration timeOf(Duration latency, int64_t bytes, double bytesPerSecond,
                       const Machine::Ramp *ramp, int64_t ranks) {
  auto size = static_cast<double>(bytes);
  if (ramp) {
    auto count = static_cast<double>(ranks);
    size = count * rampedBytes(*ramp, size / count);
  }
  return latency + Duration::ofSeconds(size / bytesPerSecond);
}

//===----------------------------------------------------------------------===//
// Curves
//===----------------------------------------------------------------------===//

Duration CollectiveTime::onCurve(const Machine::Curve &curve,
                                 GroupShape shape) const {
  if (!curve.points.empty())
    return Duration::ofSeconds(
        secondsAt(curve.points, static_cast<double>(call.bytes)));
  Duration least = Duration::ofPicoseconds(Duration::kMost);
  for (const Machine::Curve::Line &line : curve.lines)
    least = std::min(least, timeOf(Duration::ofSeconds(line.latencySeconds),
                                   call.bytes, line.bytesPerSecond,
                                   findRamp(line.ramp), shape.ranks()));
  return least;
}

const Machine::Curve *CollectiveTime::findCurve(CollectiveKind kind,
                                                Sums sums) const {
  for (const Machine::Curve &curve : machine.curves)
    if (curve.collective == kind && curve.sums == sums &&
        curve.shape == call.shape)
      return &curve;
  return nullptr;
}

std::optional<Duration>
CollectiveTime::betweenCurves(CollectiveKind kind) const {
  if (call.shape.nodes != 1)
    return std::nullopt;
  int64_t ranks = call.shape.ranks();
  const Machine::Curve *smaller = nullptr, *larger = nullptr;
  for (const Machine::Curve &curve : machine.curves) {
    int64_t other = curve.shape.ranks();
    if (curve.collective != kind || curve.sums != Sums::Fast ||
        curve.shape.nodes != 1)
      continue;
    if (other < ranks && (!smaller || smaller->shape.ranks() < other))
      smaller = &curve;
    if (other > ranks && (!larger || other < larger->shape.ranks()))
      larger = &curve;
  }
  if (!smaller || !larger)
    return std::nullopt;
  int64_t low = smaller->shape.ranks(), high = larger->shape.ranks();
  return (onCurve(*smaller, smaller->shape) * (high - ranks) +
          onCurve(*larger, larger->shape) * (ranks - low)) /
         (high - low);
}

//===----------------------------------------------------------------------===//
// NCCL's model of rings
//===----------------------------------------------------------------------===//

double CollectiveTime::ringBandwidth(const Machine::Protocol &protocol) const {
  const Machine::Ring &ring = machine.ring;
  int64_t nodes = call.shape.nodes;
  double bus = 0, limit = 0;
  if (nodes == 1) {
    bus = required(ring.busBytesPerSecond, "ring.bus_bytes_per_second");
    limit = protocol.nodeLimit;
  } else {
    bus = required(machine.network.bytesPerSecond, "network.bytes_per_second") *
          static_cast<double>(call.shape.ranksPerNode);
    if (ring.networkLimit != 0)
      bus = std::min(bus, ring.networkLimit);
    limit = nodes == 2 ? protocol.twoNodeLimit : protocol.networkLimit;
  }
  bus *= protocol.share;
  return limit != 0 ? std::min(bus, limit) : bus;
}

/// Steps around the ring.
static int64_t stepsOf(CollectiveKind kind, int64_t members) {
  return (kind == CollectiveKind::AllReduce ? 2 : 1) * (members - 1);
}

Duration CollectiveTime::ringLatency(const Machine::Protocol &protocol,
                                     CollectiveKind kind) const {
  int64_t nodes = call.shape.nodes, between = stepsOf(kind, nodes),
          inside = stepsOf(kind, call.shape.ranks()) - between;
  double hop = nodes == 1
                   ? protocol.hopSeconds
                   : std::max(protocol.hopSeconds, protocol.overheadSeconds);
  double networkHop = call.shape.ranksPerNode == 1
                          ? protocol.loneNetworkHopSeconds
                          : protocol.networkHopSeconds;
  double seconds = protocol.baseSeconds + static_cast<double>(inside) * hop +
                   static_cast<double>(between) * networkHop;
  if (kind == CollectiveKind::AllReduce && nodes > 1)
    seconds *= protocol.allReduceLatency;
  return Duration::ofSeconds(seconds);
}

Duration CollectiveTime::byRing(CollectiveKind kind) const {
  const Machine::Ring &ring = machine.ring;
  if (ring.protocols.empty())
    fail("say [[ring.protocol]], or " + curveOf(asked, askedSums, call.shape));
  bool isWhole = call.shape.nodes > 1 &&
                 call.shape.ranksPerNode == machine.device.ranksPerNode;
  const Machine::Ramp *ramp = isWhole ? findRamp(ring.ramp) : nullptr;
  int64_t ranks = call.shape.ranks();
  double perStep =
      static_cast<double>(ranks) / static_cast<double>(stepsOf(kind, ranks));
  Duration least = Duration::ofPicoseconds(Duration::kMost);
  for (const Machine::Protocol &protocol : ring.protocols)
    least =
        std::min(least, timeOf(ringLatency(protocol, kind), call.bytes,
                               ringBandwidth(protocol) * perStep, ramp, ranks));
  return least;
}

//===----------------------------------------------------------------------===//
// Exact sums
//===----------------------------------------------------------------------===//

Duration CollectiveTime::exactKernel(int64_t bytes) const {
  const Machine::Exact &exact = machine.exact;
  if (exact.kernelBytes == 0)
    return Duration();
  return Duration::ofSeconds(
      static_cast<double>(bytes) * exact.kernelBytes /
      required(exact.kernelBytesPerSecond, "exact.kernel_bytes_per_second"));
}

Duration CollectiveTime::exchangeRound(int64_t bytes, GroupShape shape) const {
  if (bytes == 0)
    return Duration();
  double message =
      static_cast<double>(bytes) / static_cast<double>(shape.ranks());
  Duration inside, between;
  if (shape.ranksPerNode > 1)
    inside = Duration::ofSeconds(message *
                                 static_cast<double>(shape.ranksPerNode - 1) /
                                 required(machine.exact.busBytesPerSecond,
                                          "exact.bus_bytes_per_second"));
  if (shape.nodes > 1)
    between = Duration::ofSeconds(
        static_cast<double>(shape.ranks() - shape.ranksPerNode) *
        std::max(message / required(machine.exact.networkBytesPerSecond,
                                    "exact.network_bytes_per_second"),
                 machine.exact.messageSeconds));
  return std::max(inside, between);
}

Duration CollectiveTime::exchange(int64_t bytes, GroupShape shape) const {
  int64_t round = machine.exact.roundBytes;
  if (round == 0 || bytes <= round)
    return exchangeRound(bytes, shape);
  return exchangeRound(round, shape) * (bytes / round) +
         exchangeRound(bytes % round, shape);
}

Duration CollectiveTime::exactFlat() const {
  return Duration::ofSeconds(machine.exact.latencySeconds) +
         exchange(call.bytes, call.shape) + exactKernel(call.bytes);
}

Duration CollectiveTime::exactTwoLevels() const {
  GroupShape node = {call.shape.ranksPerNode, 1};
  GroupShape peers = {1, call.shape.nodes};
  // A rank has this much of the sums of its node.
  int64_t part = (call.bytes - 1) / node.ranksPerNode + 1;
  int64_t sums = (part - 1) / call.wireElementBytes * 4 + 4;
  return Duration::ofSeconds(machine.exact.latencySeconds) +
         exchange(call.bytes, node) +
         std::max(exactKernel(call.bytes), exchange(sums, peers)) +
         exactKernel(sums);
}

//===----------------------------------------------------------------------===//
// All of it
//===----------------------------------------------------------------------===//

Duration CollectiveTime::of(CollectiveKind kind, Sums sums) {
  if (kind == CollectiveKind::AllGather)
    sums = Sums::Fast;
  else if (sums == Sums::ExactTwoLevels &&
           (call.shape.nodes == 1 || call.shape.ranksPerNode == 1))
    sums = Sums::Exact; // there is one level
  asked = kind;
  askedSums = sums;
  if (const Machine::Curve *curve = findCurve(kind, sums))
    return onCurve(*curve, call.shape);
  if (sums == Sums::Fast) {
    std::optional<Duration> between = betweenCurves(kind);
    return between ? *between : byRing(kind);
  }
  if (kind == CollectiveKind::AllReduce)
    return of(CollectiveKind::ReduceScatter, sums) +
           of(CollectiveKind::AllGather, sums);
  return sums == Sums::Exact ? exactFlat() : exactTwoLevels();
}

Duration CostModel::collective(const CollectiveCall &call) const {
  assert(call.bytes >= 0 && call.wireElementBytes > 0);
  assert(call.shape.ranksPerNode > 0 && call.shape.nodes > 0);
  if (call.shape.ranksPerNode > theMachine.device.ranksPerNode)
    throw Error("a group has " + std::to_string(call.shape.ranksPerNode) +
                " ranks in a node, and a node of the machine '" +
                theMachine.name + "' has " +
                std::to_string(theMachine.device.ranksPerNode) +
                " (device.ranks_per_node)");
  if (call.bytes == 0 || call.shape.ranks() == 1)
    return Duration();
  Duration time = CollectiveTime(theMachine, call).of(call.kind, call.sums);
  double scale = theProfile.scale.collective;
  return scale == 1 ? time : Duration::ofSeconds(time.seconds() * scale);
}
