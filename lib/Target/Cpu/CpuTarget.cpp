//===- CpuTarget.cpp - The CPU: facts -------------------------------------===//
#include "fsdp/Target/CollectivePieces.h"
#include "fsdp/Target/Target.h"

using namespace fsdp::rt;

static constexpr Target facts() {
  Target cpu;
  cpu.name = "cpu";
  cpu.summary = "the CPU (default)";
  cpu.whoseWorkspaces = "this CPU's";
  cpu.language = "C++";
  cpu.sourceStage = "cpp";
  cpu.alignment = 64;
  // So that up to sixteen threads of a rank have one.
  cpu.leastRowBlocks = 16;
  cpu.collectiveWorkspaceBytes = collectiveWorkspaceBytes;
  cpu.whyNoFastReductions =
      "leaves sums over ranks to NCCL, which the CPU target lacks: its ranks "
      "always add each other's pieces in the fixed order";
  cpu.whyNoFastAttention =
      "leaves the order of sums of attention's gradient to cuDNN, which the "
      "CPU "
      "target lacks: its own order costs neither memory nor time";
  cpu.architecture = "";
  cpu.isHost = true;
  // Ranks only wait for the one that is lost.
  cpu.endSeconds = 2;
  cpu.howToBuild = "build it with fsdp-run";
  return cpu;
}

const Target fsdp::rt::kCpuTarget = facts();
