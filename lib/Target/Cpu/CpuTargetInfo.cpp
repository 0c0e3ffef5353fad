//===- CpuTargetInfo.cpp - The CPU: what oneDNN wants ---------------------===//
#include "fsdp/Target/CpuWorkspaces.h"
#include "fsdp/Target/TargetInfo.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <map>
#include <tuple>

using namespace fsdp;
using llvm::SmallString;

namespace {

/// Asks oneDNN on this machine. Making a primitive to learn its size takes a
/// while, so every answer is kept: a deep model has the same few products over
/// and over.
class CpuTargetInfo : public TargetInfo {
public:
  CpuTargetInfo(const rt::cpu::Workspaces &library, int threads)
      : TargetInfo(rt::kCpuTarget), library(library), threads(threads) {}

  int64_t gemmWorkspaceBytes(const rt::GemmDesc &d) const override {
    auto [at, isNew] =
        gemms.try_emplace({d.batch, d.m, d.n, d.k, d.transposeLhs,
                           d.transposeRhs, d.bias, d.in, d.out});
    if (isNew)
      at->second = library.gemm(d, threads);
    return at->second;
  }
  int64_t attentionWorkspaceBytes(const rt::AttentionDesc &d) const override {
    return ask(attentions, d, library.attention);
  }
  int64_t
  attentionGradWorkspaceBytes(const rt::AttentionDesc &d) const override {
    return ask(attentionGrads, d, library.attentionGrad);
  }
  int64_t embeddingGradWorkspaceBytes(rt::DType type, int64_t rows,
                                      int64_t classes,
                                      int64_t cols) const override {
    return type == rt::DType::F32 ? 0
                                  : rt::cpu::embeddingGradWorkspaceBytes(
                                        rows, classes, cols, threads);
  }

private:
  using Gemms = std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, bool,
                                    bool, bool, rt::DType, rt::DType>,
                         int64_t>;
  using Attentions =
      std::map<std::tuple<int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                          double, bool, rt::DType, bool>,
               int64_t>;

  int64_t ask(Attentions &known, const rt::AttentionDesc &d,
              int64_t (*question)(const rt::AttentionDesc &, int)) const {
    auto [at, isNew] =
        known.try_emplace({d.batch, d.qLen, d.kvLen, d.heads, d.kvHeads,
                           d.headDim, d.scale, d.causal, d.type, d.plain});
    if (isNew)
      at->second = question(d, threads);
    return at->second;
  }

  const rt::cpu::Workspaces &library;
  int threads;
  mutable Gemms gemms;
  mutable Attentions attentions, attentionGrads;
};

} // namespace

/// The library beside the tools that knows oneDNN's workspaces, in the build
/// tree or installed; null with `problem` set where it cannot be loaded. It
/// stays loaded.
static const rt::cpu::Workspaces *loadCpuWorkspaces(std::string &problem) {
  SmallString<128> path(llvm::sys::fs::getMainExecutable(
      nullptr, reinterpret_cast<void *>(&loadCpuWorkspaces)));
  llvm::sys::path::remove_filename(path);
  llvm::sys::path::append(path, "..", "lib", "libfsdp_cpu_workspaces.so");
  auto library =
      llvm::sys::DynamicLibrary::getPermanentLibrary(path.c_str(), &problem);
  if (!library.isValid())
    return nullptr;
  auto *table = library.getAddressOfSymbol("fsdp_cpu_workspaces");
  if (!table)
    problem = (path + " has no fsdp_cpu_workspaces").str();
  return static_cast<const rt::cpu::Workspaces *>(table);
}

std::unique_ptr<TargetInfo> fsdp::makeCpuTargetInfo(int threads,
                                                    std::string &problem) {
  static std::string loading;
  static const rt::cpu::Workspaces *library = loadCpuWorkspaces(loading);
  if (library)
    return std::make_unique<CpuTargetInfo>(*library, threads);
  problem = "no workspaces of the CPU target are known: " + loading;
  return nullptr;
}
