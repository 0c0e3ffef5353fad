//===- WorkspaceTable.cpp - The workspaces, for who loads them ------------===//
#include "fsdp/Target/CpuWorkspaces.h"

using namespace fsdp::rt::cpu;

extern "C" const Workspaces fsdp_cpu_workspaces = {
    gemmWorkspaceBytes, attentionWorkspaceBytes, attentionGradWorkspaceBytes};
