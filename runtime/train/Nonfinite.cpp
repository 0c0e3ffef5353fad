//===- Nonfinite.cpp - The first value that is not finite -----------------===//
#include "Nonfinite.h"
#include "Agreement.h"
#include "Evaluate.h"
#include "Results.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Metrics.h"
#include <cmath>
#include <cstring>

using namespace fsdp;
using namespace fsdp::rt;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {
/// The elements of a tensor that are not finite.
struct Nonfinite {
  int64_t count = 0;
  int64_t first = -1; // row-major
  double value = 0;   // of that one

  /// Takes `elements` more, from element `at` on.
  void add(DType dtype, const std::byte *piece, int64_t at, int64_t elements);
};
} // namespace

/// `Exponent`: its bits, which are all set in what is not finite.
template <typename Bits, Bits Exponent>
static int64_t countNonfinite(const std::byte *piece, int64_t elements) {
  int64_t count = 0;
  for (int64_t i = 0; i < elements; ++i) {
    Bits bits;
    std::memcpy(&bits, piece + i * int64_t(sizeof bits), sizeof bits);
    count += (bits & Exponent) == Exponent;
  }
  return count;
}

static int64_t countNonfinite(DType dtype, const std::byte *piece,
                              int64_t elements) {
  switch (dtype) {
  case DType::F32:
    return countNonfinite<uint32_t, 0x7f800000u>(piece, elements);
  case DType::BF16:
    return countNonfinite<uint16_t, 0x7f80u>(piece, elements);
  case DType::F64:
    return countNonfinite<uint64_t, 0x7ff0000000000000u>(piece, elements);
  default:
    return 0;
  }
}

void Nonfinite::add(DType dtype, const std::byte *piece, int64_t at,
                    int64_t elements) {
  int64_t found = countNonfinite(dtype, piece, elements);
  if (found > 0 && count == 0) {
    for (first = 0; countNonfinite(dtype, piece, 1) == 0; ++first)
      piece += sizeOf(dtype);
    first += at;
    value = elementAt(dtype, piece, 0);
  }
  count += found;
}

static Nonfinite nonfiniteOf(const Rank &rank, DType dtype,
                             const ArenaRange &range) {
  Nonfinite found;
  auto size = static_cast<uint64_t>(sizeOf(dtype));
  rank.read(range, [&](const std::byte *piece, uint64_t first, uint64_t bytes) {
    found.add(dtype, piece, static_cast<int64_t>(first / size),
              static_cast<int64_t>(bytes / size));
  });
  return found;
}

//===----------------------------------------------------------------------===//
// Parameters
//===----------------------------------------------------------------------===//

std::string fsdp::firstNonfiniteParameter(const Rank &rank) {
  std::string found;
  for (const RangeInfo &range : rank.manifest().ranges) {
    if (range.role != RangeRole::Parameter || !found.empty())
      continue;
    Nonfinite part =
        nonfiniteOf(rank, range.dtype, {range.offset, range.bytes});
    if (part.count > 0)
      found = format(
          "the parameter '%s' is not finite: element %lld of rank %d's shard",
          range.name.c_str(), static_cast<long long>(part.first),
          rank.world().rank);
  }
  Failures failures = countFailures(rank.world(), found);
  return failures.count == 0 ? "" : broadcastText(found, failures.first);
}

//===----------------------------------------------------------------------===//
// Values of a step
//===----------------------------------------------------------------------===//

namespace {

/// A step that is run call by call.
class StepSearch {
public:
  StepSearch(Rank &rank, const ValueTable &table) : rank(rank), table(table) {}

  /// The first value on any rank.
  FoundValue run();

private:
  void look(const StepCall &call);
  std::string problemOfCalls() const;
  void agree();
  std::string describe(const StepCall &call, const MadeValue &value,
                       const Nonfinite &found) const;

  Rank &rank;
  const ValueTable &table;
  /// The last call of every run, and how many values of the last run's program
  /// are after it.
  std::vector<StepCall> ends;
  size_t looked = 0;
  /// What this rank has found: where, and in words; empty: nothing.
  struct Place {
    int64_t run, call;
  } place = {-1, -1};
  std::string text;
};

} // namespace

static const char *valueText(double value) {
  return std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";
}

std::string StepSearch::describe(const StepCall &call, const MadeValue &value,
                                 const Nonfinite &found) const {
  const ValueTable::Type &type = table.types[value.type];
  const Manifest &manifest = rank.manifest();
  std::string text = format(
      "%s (call %lld of program %s", printable(table.names[value.name]).c_str(),
      static_cast<long long>(call.call),
      manifest.programs[static_cast<size_t>(call.program)].name.c_str());
  if (call.slice >= 0)
    text += format(" on microbatch %lld", static_cast<long long>(call.slice));
  text += "), " + typeText(type.dtype, type.shape) + ": ";
  int64_t elements = elementCount(type.shape);
  if (elements > 1)
    text +=
        format("%s of %s elements on rank %d, the first at %s: %s",
               grouped(found.count).c_str(), grouped(elements).c_str(),
               rank.world().rank, indexText(found.first, type.shape).c_str(),
               valueText(found.value));
  else
    text += format("%s on rank %d", valueText(found.value), rank.world().rank);
  return text;
}

void StepSearch::look(const StepCall &call) {
  if (call.call == 0) {
    looked = 0;
    ends.emplace_back();
  }
  ends.back() = call;
  const std::vector<MadeValue> &values =
      table.programs[static_cast<size_t>(call.program)].values;
  for (; looked < values.size() && values[looked].call == call.call; ++looked) {
    if (!text.empty())
      continue; // other ranks may have an earlier one
    const MadeValue &value = values[looked];
    const ValueTable::Type &type = table.types[value.type];
    auto bytes =
        static_cast<uint64_t>(elementCount(type.shape) * sizeOf(type.dtype));
    Nonfinite found = nonfiniteOf(rank, type.dtype, {value.offset, bytes});
    if (found.count == 0)
      continue;
    place = {static_cast<int64_t>(call.run), call.call};
    text = describe(call, value, found);
  }
}

/// The runtime's calls must be the table's, else names would be wrong.
std::string StepSearch::problemOfCalls() const {
  for (const StepCall &end : ends) {
    auto program = static_cast<size_t>(end.program);
    int64_t calls = table.programs[program].calls, made = end.call + 1;
    if (made != calls)
      return format("the program '%s' has %lld calls, but the artifact's "
                    "values.json lists %lld; compile the artifact again",
                    rank.manifest().programs[program].name.c_str(),
                    static_cast<long long>(made),
                    static_cast<long long>(calls));
  }
  return {};
}

/// The text of the rank that has the earliest call, of the lowest such one.
void StepSearch::agree() {
  std::vector<Place> all(static_cast<size_t>(rank.world().size));
  gather(&place, sizeof place, all.data());
  auto isEarlier = [](const Place &a, const Place &b) {
    return a.run != b.run ? a.run < b.run : a.call < b.call;
  };
  int first = -1; // the first rank decides
  for (int i = 0; i < rank.world().size; ++i)
    if (all[i].run >= 0 && (first < 0 || isEarlier(all[i], all[first])))
      first = i;
  broadcast(&first, sizeof first);
  text = first < 0 ? "" : broadcastText(text, first);
}

FoundValue StepSearch::run() {
  rank.runStep([this](const StepCall &call) { look(call); });
  std::string problem = problemOfCalls();
  Failures failures = countFailures(rank.world(), problem);
  if (failures.count > 0)
    return {{}, broadcastText(problem, failures.first)};
  agree();
  return {text, {}};
}

FoundValue fsdp::firstNonfiniteOfStep(Rank &rank, const ValueTable &table) {
  return StepSearch(rank, table).run();
}
