//===- Costs.cpp - What a schedule costs, for people ----------------------===//
#include "dialects/NN/ModulePath.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Schedule/Program.h"
#include "fsdp/Target/Target.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::schedule;

/// Rows of each table of sums; with the lines above them twenty.
static constexpr size_t kKinds = 7, kPhases = 5, kBlocks = 4;

static std::string formatFlops(int64_t flops) {
  static const char *const units[] = {"",  "k", "M", "G",
                                      "T", "P", "E"}; // 2^63 is 9.2 E
  double value = double(flops);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(units)) {
    value /= 1000;
    ++unit;
  }
  return llvm::formatv(unit == 0 ? "{0:F0} {1}FLOP" : "{0:F1} {1}FLOP", value,
                       units[unit]);
}

static StringRef toString(Where where) {
  static constexpr StringRef kNames[] = {"compute", "gather", "reduce"};
  return kNames[static_cast<unsigned>(where)];
}

namespace {

struct Sum {
  int64_t steps = 0, flops = 0, bytes = 0, wireBytes = 0;

  void add(const Sum &other) {
    steps += other.steps;
    flops = (CheckedSize(flops) + other.flops).saturated();
    bytes = (CheckedSize(bytes) + other.bytes).saturated();
    wireBytes = (CheckedSize(wireBytes) + other.wireBytes).saturated();
  }

  /// The largest of its shares of what is computed, touched and sent.
  double shareOf(const Sum &all) const {
    auto share = [](int64_t part, int64_t whole) {
      return whole == 0 ? 0 : double(part) / double(whole);
    };
    return std::max({share(flops, all.flops), share(bytes, all.bytes),
                     share(wireBytes, all.wireBytes)});
  }
};

/// Sums by a name.
class Sums {
public:
  void add(StringRef name, const Sum &sum) {
    sums[name.str()].add(sum);
    all.add(sum);
  }

  /// At most `rows` lines below a line with `title`, what has the largest
  /// shares first.
  void print(StringRef title, size_t rows, llvm::raw_ostream &os) const {
    std::vector<std::pair<std::string, Sum>> sorted(sums.begin(), sums.end());
    llvm::stable_sort(sorted, [&](const auto &a, const auto &b) {
      return a.second.shareOf(all) > b.second.shareOf(all);
    });
    if (sorted.size() > rows) {
      for (const auto &[name, sum] : ArrayRef(sorted).drop_front(rows))
        sorted[rows - 1].second.add(sum);
      sorted.resize(rows);
      sorted.back().first = "others";
    }
    os << llvm::formatv("  {0,-28}{1,7}{2,15}{3,15}{4,15}\n", title, "steps",
                        "computed", "touched", "sent");
    for (const auto &[name, sum] : sorted)
      os << llvm::formatv("    {0,-26}{1,7}{2,15}{3,15}{4,15}\n", name,
                          sum.steps, formatFlops(sum.flops),
                          formatBytes(sum.bytes), formatBytes(sum.wireBytes));
  }

private:
  std::map<std::string, Sum> sums;
  Sum all;
};

} // namespace

static StringRef phaseOf(const Step &step) {
  return step.origin ? dist::stringifyPhase(step.origin.getPhase())
                     : "without address";
}

/// "layers.*" for all blocks of that list, else the module below the root.
static std::string blockOf(const Step &step) {
  StringRef path = step.origin ? step.origin.getPath() : StringRef();
  StringRef block = nn::blockOf(path);
  if (!block.empty())
    return nn::withoutNumbers(block);
  return path.empty() ? "without module" : nn::firstComponent(path).str();
}

/// The sums of one program.
static void printHead(StringRef program, ArrayRef<Step> steps,
                      llvm::raw_ostream &os) {
  Sum all;
  Sums kinds, phases, blocks;
  for (const Step &step : steps) {
    Sum sum{1, step.flops, step.bytes, step.wireBytes};
    if (sum.flops == 0 && sum.bytes == 0)
      continue;
    all.add(sum);
    kinds.add(step.kind, sum);
    phases.add(phaseOf(step), sum);
    blocks.add(blockOf(step), sum);
  }
  os << llvm::formatv(
      "@{0}, one rank: {1} ({2} flop), {3} read and written, {4} sent\n",
      program, formatFlops(all.flops), all.flops, formatBytes(all.bytes),
      formatBytes(all.wireBytes));
  kinds.print("by kind", kKinds, os);
  phases.print("by phase", kPhases, os);
  blocks.print("by block", kBlocks, os);
}

static void printSteps(ArrayRef<Step> steps, llvm::raw_ostream &os) {
  os << llvm::formatv("{0,7}{1,15}{2,15}{3,15}  {4,-9}address\n", "step",
                      "computed", "touched", "sent", "stream");
  for (auto [number, step] : llvm::enumerate(steps))
    if (step.flops != 0 || step.bytes != 0)
      os << llvm::formatv("{0,7}{1,15}{2,15}{3,15}  {4,-9}{5}\n", number,
                          formatFlops(step.flops), formatBytes(step.bytes),
                          formatBytes(step.wireBytes), toString(step.where),
                          step.name);
}

void fsdp::schedule::printCosts(ModuleOp module, StringRef target,
                                llvm::raw_ostream &os) {
  const nn::AdjacentReads adjacent(module,
                                   rt::findTarget(target.str())->alignment);
  dist::MeshOp mesh;
  for (auto found : module.getOps<dist::MeshOp>())
    mesh = found;
  for (auto program : module.getOps<func::FuncOp>()) {
    if (program.isExternal())
      continue;
    std::vector<Step> steps = stepsOf(program, mesh, adjacent);
    printHead(program.getName(), steps, os);
    printSteps(steps, os);
  }
}
