//===- MachineKeys.cpp - The keys of machine files and profiles -----------===//
//
// docs/machines.md explains each of them; MachineFile.EveryKeyIsExplained
// compares.
//
//===----------------------------------------------------------------------===//
#include "FileKeys.h"
#include "fsdp/Support/CheckedSize.h"

using namespace fsdp;

static constexpr KeyBounds kBytes = {4096, 1LL << 50, "bytes"};
static constexpr KeyBounds kBandwidth = {1e3, 1e18, "bytes per second"};
static constexpr KeyBounds kRate = {1e6, 1e20, "flop per second"};
static constexpr KeyBounds kShare = {1e-3, 1, "a share"};
static constexpr KeyBounds kSeconds = {0, 100, "seconds"};
static constexpr KeyBounds kUnits = {1, 1 << 20, "a number of units"};
static constexpr KeyBounds kNodeRanks = {1, 4096, "a number of ranks"};
static constexpr KeyBounds kNodes = {1, kMaxRanks, "a number of nodes"};
static constexpr KeyBounds kLength = {0, 1 << 20, "a number of elements"};
static constexpr KeyBounds kSlowdown = {0, 100, "a fraction"};
static constexpr KeyBounds kTraffic = {0, 1000, "bytes per byte"};
static constexpr KeyBounds kFactor = {1e-3, 1e3, "a factor"};

std::vector<FileKey> fsdp::keysOf(Machine &m) {
  return {
      {"device", "memory_bytes", &m.device.memoryBytes, &kBytes, true},
      {"device", "ranks_per_node", &m.device.ranksPerNode, &kNodeRanks, true},
      {"device", "multiprocessors", &m.device.multiprocessors, &kUnits},
      {"device", "host_bytes_per_second", &m.device.hostBytesPerSecond,
       &kBandwidth},

      {"compute", "f32", &m.compute.f32, &kRate, true},
      {"compute", "bf16", &m.compute.bf16, &kRate, true},
      {"compute", "fp8", &m.compute.fp8, &kRate},
      {"compute", "clock_share", &m.compute.clockShare, &kShare},

      {"matmul", "share", &m.matmul.share, &kShare, true},
      {"matmul", "k_half", &m.matmul.kHalf, &kLength},
      {"matmul", "tile_rows", &m.matmul.tileRows, &kLength},
      {"matmul", "tile_columns", &m.matmul.tileColumns, &kLength},
      {"matmul", "wave_filling", ChoicePlace(m.matmul.waveFilling)},

      {"attention", "forward", &m.attention.forward, &kShare, true},
      {"attention", "backward", &m.attention.backward, &kShare, true},

      {"memory", "bytes_per_second", &m.memory.bytesPerSecond, &kBandwidth,
       true},
      {"memory", "share", &m.memory.share, &kShare, true},

      {"launch", "kernel_seconds", &m.launch.kernelSeconds, &kSeconds},
      {"launch", "host_seconds", &m.launch.hostSeconds, &kSeconds},

      {"slowdown", "gather", &m.slowdown.gather, &kSlowdown},
      {"slowdown", "reduce", &m.slowdown.reduce, &kSlowdown},
      {"slowdown", "copy", &m.slowdown.copy, &kSlowdown},
      {"slowdown", "collective", &m.slowdown.collective, &kSlowdown},

      {"exact", "latency_seconds", &m.exact.latencySeconds, &kSeconds},
      {"exact", "bus_bytes_per_second", &m.exact.busBytesPerSecond,
       &kBandwidth},
      {"exact", "kernel_bytes", &m.exact.kernelBytes, &kTraffic},
      {"exact", "kernel_bytes_per_second", &m.exact.kernelBytesPerSecond,
       &kBandwidth},
      {"exact", "network_bytes_per_second", &m.exact.networkBytesPerSecond,
       &kBandwidth},
      {"exact", "message_seconds", &m.exact.messageSeconds, &kSeconds},
      {"exact", "round_bytes", &m.exact.roundBytes, &kBytes},

      {"network", "bytes_per_second", &m.network.bytesPerSecond, &kBandwidth},
  };
}

std::vector<FileKey> fsdp::keysOf(Machine::Ring &ring) {
  return {
      {"ring", "bus_bytes_per_second", &ring.busBytesPerSecond, &kBandwidth},
      {"ring", "network_limit", &ring.networkLimit, &kBandwidth},
  };
}

std::vector<FileKey> fsdp::keysOf(Machine::Protocol &protocol) {
  return {
      {"", "base_seconds", &protocol.baseSeconds, &kSeconds},
      {"", "hop_seconds", &protocol.hopSeconds, &kSeconds},
      {"", "network_hop_seconds", &protocol.networkHopSeconds, &kSeconds},
      {"", "lone_network_hop_seconds", &protocol.loneNetworkHopSeconds,
       &kSeconds},
      {"", "overhead_seconds", &protocol.overheadSeconds, &kSeconds},
      {"", "share", &protocol.share, &kShare},
      {"", "node_limit", &protocol.nodeLimit, &kBandwidth},
      {"", "two_node_limit", &protocol.twoNodeLimit, &kBandwidth},
      {"", "network_limit", &protocol.networkLimit, &kBandwidth},
      {"", "all_reduce_latency", &protocol.allReduceLatency, &kFactor},
  };
}

std::vector<FileKey> fsdp::keysOf(Machine::Curve &curve) {
  return {
      {"", "collective", ChoicePlace(curve.collective)},
      {"", "sums", ChoicePlace(curve.sums)},
      {"", "ranks_per_node", &curve.shape.ranksPerNode, &kNodeRanks},
      {"", "nodes", &curve.shape.nodes, &kNodes},
  };
}

std::vector<FileKey> fsdp::keysOf(Machine::Curve::Line &line) {
  return {
      {"", "latency_seconds", &line.latencySeconds, &kSeconds},
      {"", "bytes_per_second", &line.bytesPerSecond, &kBandwidth},
  };
}

std::vector<FileKey> fsdp::keysOf(Machine::Product &product) {
  return {
      {"", "type", ChoicePlace(product.type)},
      {"", "layout", ChoicePlace(product.layout)},
  };
}

std::vector<FileKey> fsdp::keysOf(Machine::AttentionRates &attention) {
  return {
      {"", "type", ChoicePlace(attention.type)},
      {"", "pass", ChoicePlace(attention.pass)},
  };
}

std::vector<FileKey> fsdp::keysOf(SoftwareProfile &p) {
  return {
      {"attention", "forward", &p.attention.forward, &kShare},
      {"attention", "backward", &p.attention.backward, &kShare},

      {"scale", "matmul", &p.scale.matmul, &kFactor},
      {"scale", "fp8", &p.scale.fp8, &kFactor},
      {"scale", "memory", &p.scale.memory, &kFactor},
      {"scale", "collective", &p.scale.collective, &kFactor},

      {"kernels", "pointwise", ChoicePlace(p.kernels.pointwise)},
      {"kernels", "fp8", ChoicePlace(p.kernels.fp8)},

      {"launch", "from", ChoicePlace(p.launch.from)},
      {"launch", "module_seconds", &p.launch.moduleSeconds, &kSeconds},
  };
}
