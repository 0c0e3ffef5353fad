//===- Report.cpp - What the arena holds at its peak ----------------------===//
#include "fsdp/Memory/Report.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Target/Target.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include <cmath>
#include <map>

using namespace mlir;
using namespace fsdp;

/// How many of the largest live buffers are named.
static constexpr size_t kLiveBuffers = 16;

/// The kind of what another program gives, whose bytes nobody shares.
static constexpr StringLiteral kOthersOutput = "another's output";

ArrayRef<exec::Role> fsdp::arenaOrder() {
  static const exec::Role order[] = {
      exec::Role::Parameter, exec::Role::State,  exec::Role::ComputeCopy,
      exec::Role::Gradient,  exec::Role::Buffer, exec::Role::Input,
      exec::Role::Output};
  return order;
}

std::string LiveBuffer::text() const {
  return count == 1 ? label
                    : label + ", " + std::to_string(count) + " × " +
                          formatBytes(bytes / count);
}

/// Those that differ in numbers of blocks alone become one; largest first.
static void groupLiveBuffers(std::vector<LiveBuffer> &liveBuffers) {
  using Key = std::tuple<std::string, std::string, int64_t>;
  std::map<Key, size_t> groupOf;
  std::vector<LiveBuffer> groups;
  for (LiveBuffer &buffer : liveBuffers) {
    std::string label = nn::labelWithoutNumbers(buffer.label);
    auto [at, isNew] = groupOf.try_emplace(
        Key(label, buffer.kind, buffer.bytes), groups.size());
    if (isNew) {
      groups.push_back(std::move(buffer));
      continue;
    }
    LiveBuffer &group = groups[at->second];
    group.label = label;
    group.bytes += buffer.bytes;
    ++group.count;
  }
  auto larger = [](const auto &a, const auto &b) { return a.bytes > b.bytes; };
  std::stable_sort(groups.begin(), groups.end(), larger);
  liveBuffers = std::move(groups);
}

ProgramMemory fsdp::measureProgram(exec::ProgramOp program,
                                   const Lifetimes &lifetimes,
                                   ArrayRef<exec::RangeOp> outputs,
                                   ArrayRef<exec::RangeOp> others, int64_t top,
                                   int64_t peak) {
  ProgramMemory memory;
  memory.name = program.getSymName().str();
  memory.peak = top + peak;
  MaxLive most = maxLive(lifetimes.problem());
  memory.lowerBound = top + most.bytes;
  if (lifetimes.buffers.empty())
    return memory;
  memory.at = labelOf(lifetimes.positions[most.position]);
  llvm::MapVector<StringRef, int64_t> kinds;
  auto addRange = [&](exec::RangeOp range, StringRef kind) {
    int64_t bytes = exec::bytesOf(range.getMemRefType());
    kinds[kind] += bytes;
    memory.liveBuffers.push_back({range.getSymName().str(), kind.str(), bytes});
  };
  for (exec::RangeOp output : outputs)
    addRange(output, exec::stringifyRole(output.getRole()));
  for (exec::RangeOp other : others)
    addRange(other, kOthersOutput);
  for (const BufferLifetime &buffer : lifetimes.buffers) {
    if (buffer.live.begin > most.position || buffer.live.end <= most.position)
      continue;
    StringRef kind = stringifyBufferKind(buffer.kind);
    kinds[kind] += buffer.live.bytes;
    memory.liveBuffers.push_back(
        {labelOf(buffer.alloc), kind.str(), buffer.live.bytes});
  }
  groupLiveBuffers(memory.liveBuffers);
  if (memory.liveBuffers.size() > kLiveBuffers)
    memory.liveBuffers.resize(kLiveBuffers);
  for (auto &[kind, bytes] : kinds)
    memory.kinds.emplace_back(kind.str(), bytes);
  std::stable_sort(
      memory.kinds.begin(), memory.kinds.end(),
      [](const auto &a, const auto &b) { return a.second > b.second; });
  return memory;
}

DictionaryAttr fsdp::memoryAttr(MLIRContext *context,
                                const ProgramMemory &memory) {
  Builder builder(context);
  SmallVector<Attribute> kinds, liveBuffers;
  for (auto &[kind, bytes] : memory.kinds)
    kinds.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr("kind", builder.getStringAttr(kind)),
         builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytes))}));
  for (const LiveBuffer &buffer : memory.liveBuffers) {
    NamedAttrList fields;
    fields.set("label", builder.getStringAttr(buffer.label));
    fields.set("kind", builder.getStringAttr(buffer.kind));
    fields.set("bytes", builder.getI64IntegerAttr(buffer.bytes));
    if (buffer.count > 1)
      fields.set("count", builder.getI64IntegerAttr(buffer.count));
    liveBuffers.push_back(fields.getDictionary(context));
  }
  return builder.getDictionaryAttr(
      {builder.getNamedAttr("lower_bound",
                            builder.getI64IntegerAttr(memory.lowerBound)),
       builder.getNamedAttr("at", builder.getStringAttr(memory.at)),
       builder.getNamedAttr("kinds", builder.getArrayAttr(kinds)),
       builder.getNamedAttr("tenants", builder.getArrayAttr(liveBuffers))});
}

/// Fields of a dictionary that a person may have written: what is missing or
/// of another type reads as empty.
static std::string stringField(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary.getAs<StringAttr>(name);
  return value ? value.str() : std::string();
}
static int64_t integerField(DictionaryAttr dictionary, StringRef name) {
  auto value = dictionary.getAs<IntegerAttr>(name);
  return value ? value.getInt() : 0;
}
static SmallVector<DictionaryAttr> listField(DictionaryAttr dictionary,
                                             StringRef name) {
  SmallVector<DictionaryAttr> result;
  if (auto list = dictionary.getAs<ArrayAttr>(name))
    llvm::append_range(result, list.getAsRange<DictionaryAttr>());
  return result;
}

static ProgramMemory readProgram(exec::ProgramOp program) {
  ProgramMemory memory;
  memory.name = program.getSymName().str();
  memory.peak = program.getArena().value_or(0);
  auto attr = program->getAttrOfType<DictionaryAttr>(exec::kMemoryAttr);
  if (!attr)
    return memory;
  memory.lowerBound = integerField(attr, "lower_bound");
  memory.at = stringField(attr, "at");
  for (DictionaryAttr kind : listField(attr, "kinds"))
    memory.kinds.emplace_back(stringField(kind, "kind"),
                              integerField(kind, "bytes"));
  for (DictionaryAttr buffer : listField(attr, "tenants"))
    memory.liveBuffers.push_back(
        {stringField(buffer, "label"), stringField(buffer, "kind"),
         integerField(buffer, "bytes"),
         std::max<int64_t>(integerField(buffer, "count"), 1)});
  return memory;
}

/// As many as the runtime makes (runtime/cuda/CudaContext.cpp).
static int64_t countCommunicators(ModuleOp module) {
  llvm::SetVector<std::pair<exec::Stream, Attribute>> used;
  module.walk([&](exec::CollectiveOp op) {
    used.insert({op.getStream(), op.getAxesAttr()});
  });
  return int64_t(used.size());
}

MemoryReport fsdp::memoryReport(ModuleOp module) {
  MemoryReport report;
  DictionaryAttr attrs = module->getAttrDictionary();
  report.arenaBytes = integerField(attrs, exec::kArenaBytesAttr);
  report.persistentBytes = integerField(attrs, exec::kPersistentBytesAttr);
  for (exec::Role role : arenaOrder()) {
    // Ranges of a plan written by hand may share bytes, more than there are.
    CheckedSize bytes = 0;
    for (auto range : module.getOps<exec::RangeOp>())
      if (range.getRole() == role &&
          int64_t(range.getOffset().value_or(0)) < report.persistentBytes)
        bytes += exec::bytesOf(range.getMemRefType());
    if (bytes.saturated() != 0)
      report.persistent.emplace_back(exec::stringifyRole(role).str(),
                                     bytes.saturated());
  }
  for (auto program : module.getOps<exec::ProgramOp>())
    report.programs.push_back(readProgram(program));
  const rt::Target *target =
      rt::findTarget(stringField(attrs, exec::kTargetAttr));
  if (target && target->hasCommunicators)
    report.communicators = countCommunicators(module);
  return report;
}

std::string fsdp::formatBytes(int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = double(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(units)) {
    value /= 1024;
    ++unit;
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << llvm::format(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

/// Bytes of a unit in lower case; nothing where there is no such unit.
static std::optional<double> unitBytes(StringRef unit) {
  if (unit.empty() || unit == "b")
    return 1.0;
  size_t power = StringRef("kmgt").find(unit.front()) + 1;
  if (power == 0)
    return std::nullopt;
  if (unit.drop_front() == "ib")
    return std::pow(1024.0, double(power));
  if (unit.drop_front() == "b")
    return std::pow(1000.0, double(power));
  return std::nullopt;
}

llvm::Expected<int64_t> fsdp::parseBytes(StringRef text) {
  StringRef number = text.trim().take_while(
      [](char c) { return llvm::isDigit(c) || c == '.'; });
  std::string unit = text.trim().drop_front(number.size()).trim().lower();
  std::optional<double> scale = unitBytes(unit);
  double value = 0;
  // Above 2^62 bytes nothing is a size; below 2^53 a double counts bytes.
  if (number.empty() || number.getAsDouble(value) || !scale ||
      value * *scale < 1 || value * *scale > 0x1p62)
    return llvm::createStringError(
        "'" + text +
        "' is no size; write bytes or a unit, for example 64000000000, 60GiB, "
        "1.5TiB or 500MB");
  return int64_t(value * *scale);
}

/// One line of a table: bytes, what, and a name where there is one.
static void printLine(llvm::raw_ostream &os, int64_t bytes, StringRef what,
                      StringRef name = "") {
  os << "    " << llvm::right_justify(formatBytes(bytes), 11) << "  ";
  if (name.empty())
    os << what << "\n";
  else
    os << llvm::left_justify(what, 18) << "  " << name << "\n";
}

static void printProgram(const ProgramMemory &memory, int64_t persistentBytes,
                         llvm::raw_ostream &os) {
  os << "  @" << memory.name << ": peak " << formatBytes(memory.peak) << " ("
     << memory.peak << " bytes), " << formatBytes(memory.peak - persistentBytes)
     << " of it transient; " << formatBytes(memory.lowerBound) << " ("
     << memory.lowerBound
     << " bytes) alive at once, which the "
        "peak exceeds by "
     << llvm::format("%.2f", memory.lowerBound
                                 ? 100.0 * double(memory.peak) /
                                           double(memory.lowerBound) -
                                       100.0
                                 : 0.0)
     << " %\n";
  if (memory.liveBuffers.empty())
    return;
  os << "   most is alive at " << memory.at << ":\n";
  for (auto &[kind, bytes] : memory.kinds)
    printLine(os, bytes, kind);
  os << "   the largest there:\n";
  for (const LiveBuffer &buffer : memory.liveBuffers)
    printLine(os, buffer.bytes, buffer.kind, buffer.text());
}

/// Others have measured half a GiB for a context that has loaded its kernels, 1
/// to 1.6 GiB for a communicator of a few ranks (NVIDIA/nccl#864) and 3.3 GiB
/// where eight send to each other (NVIDIA/nccl#1685).
static void printBeside(int64_t communicators, llvm::raw_ostream &os) {
  constexpr double kContext = 0.5, kLeast = 1.0, kMost = 3.3; // GiB
  os << "  beside the arena a GPU has CUDA's context with kernels and graphs";
  if (communicators == 0) {
    os << llvm::format(": about %.1f GiB by what others have measured\n",
                       kContext);
    return;
  }
  os << " and " << communicators << " communicator"
     << (communicators == 1 ? "" : "s")
     << llvm::format(" of NCCL:\n   about %.1f to %.1f GiB by what others "
                     "have measured (no run of ours has)\n",
                     kContext + kLeast * double(communicators),
                     kContext + kMost * double(communicators));
}

void fsdp::printMemoryReport(const MemoryReport &report,
                             llvm::raw_ostream &os) {
  os << "memory per rank: one arena of " << formatBytes(report.arenaBytes)
     << " (" << report.arenaBytes << " bytes)\n";
  os << "  persistent: " << formatBytes(report.persistentBytes) << "\n";
  for (auto &[role, bytes] : report.persistent)
    printLine(os, bytes, role);
  for (const ProgramMemory &memory : report.programs)
    printProgram(memory, report.persistentBytes, os);
  if (report.communicators)
    printBeside(*report.communicators, os);
}
