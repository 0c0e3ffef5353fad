//===- Backend.cpp - What most targets have in common ---------------------===//
#include "fsdp/Emit/Backend.h"

using namespace fsdp;

KernelSource::~KernelSource() = default;
Backend::~Backend() = default;

std::string Backend::cannotFind(llvm::StringRef compiler) const {
  return "cannot find the compiler '" + compiler.str() +
         "'; name one with --cxx";
}

llvm::Error Backend::checkRuntime(const HostCompiler &) const {
  return llvm::Error::success();
}
