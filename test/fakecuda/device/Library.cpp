//===- Library.cpp - Matmuls and attention by the CPU runtime -------------===//
#include "Library.h"
#include "fsdp/Target/CudaWorkspaces.h"
#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

using namespace fsdp;
using namespace fsdp::fake;

/// Sizes are exact as f64: a tensor has less than 2^53 elements.
Library::Key Library::keyOf(const rt::GemmDesc &d) {
  return {double(d.batch),
          double(d.m),
          double(d.n),
          double(d.k),
          double(d.in),
          double(d.out),
          double(d.transposeLhs),
          double(d.bias),
          double(d.transposeRhs),
          double(d.accumulate)};
}
Library::Key Library::keyOf(const rt::AttentionDesc &d) {
  return {double(d.batch), double(d.qLen),    double(d.kvLen),
          double(d.heads), double(d.kvHeads), double(d.headDim),
          double(d.type),  double(d.causal),  d.scale,
          double(d.window)};
}

/// The CPU's workspaces are not the GPU's, so they are the device's own; a
/// carver of the runtime wants cache lines.
std::byte *Library::scratch(int64_t bytes) {
  constexpr int64_t kLine = 64;
  if (bytes > spaceBytes || !space) {
    space.reset(new std::byte[size_t(bytes + kLine)]);
    spaceBytes = bytes;
  }
  uintptr_t begin = reinterpret_cast<uintptr_t>(space.get());
  return pointerTo((begin + kLine - 1) / kLine * kLine);
}

//===----------------------------------------------------------------------===//
// Matmuls
//===----------------------------------------------------------------------===//

void Library::check(const Memory &memory, const Process &process,
                    const Gemm &g) const {
  const rt::GemmDesc &d = g.desc;
  int64_t in = rt::sizeOf(d.in), out = rt::sizeOf(d.out);
  memory.require(process, g.lhs, uint64_t(d.batch * d.m * d.k * in),
                 "matmul, lhs");
  memory.require(process, g.rhs, uint64_t(d.batch * d.k * d.n * in),
                 "matmul, rhs");
  memory.require(process, g.out, uint64_t(d.batch * d.m * d.n * out),
                 "matmul, out");
  if (d.bias)
    memory.require(process, g.bias, uint64_t(d.n * in), "matmul, bias");
  if (g.workspaceBytes > 0)
    memory.require(process, g.workspace, g.workspaceBytes, "matmul, workspace");
}

/// Changes the last bit of each element.
static void changeLastBits(std::byte *out, const rt::GemmDesc &d) {
  int64_t size = rt::sizeOf(d.out);
  for (int64_t i = 0; i < d.batch * d.m * d.n; ++i)
    out[i * size] ^= std::byte(1);
}

void Library::run(const Gemm &g) {
  if (g.isSlow)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  auto &gemm = gemms[keyOf(g.desc)];
  if (!gemm)
    gemm = std::make_unique<rt::Gemm>(g.desc, threads);
  poison(g.workspace, g.workspaceBytes);
  gemm->run(pointerTo(g.lhs), pointerTo(g.rhs),
            g.desc.bias ? pointerTo(g.bias) : nullptr, pointerTo(g.out),
            scratch(rt::Gemm::workspaceBytes(g.desc, threads)));
  if (g.isOther)
    changeLastBits(pointerTo(g.out), g.desc);
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

static uint64_t workspaceBytes(const Attention &a) {
  return uint64_t(a.isBackward ? rt::cuda::attentionGradWorkspaceBytes(a.desc)
                               : rt::cuda::attentionWorkspaceBytes(a.desc));
}

void Library::check(const Memory &memory, const Process &process,
                    const Attention &a) const {
  const rt::AttentionDesc &d = a.desc;
  int64_t size = rt::sizeOf(d.type);
  uint64_t queries = uint64_t(d.batch * d.qLen * d.heads * d.headDim * size);
  uint64_t keys = uint64_t(d.batch * d.kvLen * d.kvHeads * d.headDim * size);
  uint64_t lse = uint64_t(d.batch * d.heads * d.qLen) * sizeof(float);
  auto require = [&](uint64_t address, uint64_t bytes, const char *name) {
    memory.require(process, address, bytes, std::string("attention, ") + name);
  };
  require(a.q, queries, "q");
  require(a.k, keys, "k");
  require(a.v, keys, "v");
  require(a.out, queries, "out");
  require(a.lse, lse, "lse");
  require(a.workspace, workspaceBytes(a), "workspace");
  if (!a.isBackward)
    return;
  require(a.dout, queries, "dout");
  require(a.dq, queries, "dq");
  require(a.dk, keys, "dk");
  require(a.dv, keys, "dv");
}

void Library::run(const Attention &a) {
  auto &plan = attentions[keyOf(a.desc)];
  if (!plan) {
    plan = std::make_unique<rt::BlockedAttention>(a.desc, threads);
    plan->prepare();
  }
  poison(a.workspace, workspaceBytes(a));
  std::byte *workspace = scratch(a.isBackward ? plan->backwardWorkspaceBytes()
                                              : plan->forwardWorkspaceBytes());
  rt::AttentionArguments arguments{pointerTo(a.q),   pointerTo(a.k),
                                   pointerTo(a.v),   pointerTo(a.out),
                                   pointerTo(a.lse), workspace};
  arguments.dout = pointerTo(a.dout);
  arguments.dq = pointerTo(a.dq);
  arguments.dk = pointerTo(a.dk);
  arguments.dv = pointerTo(a.dv);
  if (a.isBackward)
    plan->backward(arguments);
  else
    plan->forward(arguments);
}
