//===- Pch.cpp - Anchors the precompiled header -----------------*- C++ -*-===//
namespace fsdp {
void anchorPrecompiledHeader() {}
} // namespace fsdp
