//===- ProgramEffects.cpp - What programs read and write ------------------===//
#include "fsdp/Artifact/ProgramEffects.h"
#include "fsdp/Support/RangeNames.h"
#include <algorithm>
#include <string_view>
#include <unordered_set>

using namespace fsdp;

namespace {

using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;
using Programs = std::vector<const ProgramEffects *>;
/// A program by the name of a range.
using ProgramByRange = std::map<std::string_view, const ProgramEffects *>;

} // namespace

static NameSet setOf(const Names &names) {
  return NameSet(names.begin(), names.end());
}

static bool contains(const Names &names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The first of `names` that `set` lacks, or null.
static const std::string *missing(const Names &names, const NameSet &set) {
  auto found = std::find_if(names.begin(), names.end(), [&](const auto &name) {
    return set.count(name) == 0;
  });
  return found == names.end() ? nullptr : &*found;
}

static std::string quoted(std::string_view name) {
  return "'" + std::string(name) + "'";
}

static const ProgramEffects *lookup(const ProgramByRange &programs,
                                    std::string_view range) {
  auto found = programs.find(range);
  return found == programs.end() ? nullptr : found->second;
}

bool fsdp::takesMicrobatch(const ProgramEffects &program) {
  return contains(program.inputs, range_name::kTokens) ||
         contains(program.inputs, range_name::kTargets);
}

std::string fsdp::faultOf(const ProgramEffects &program) {
  NameSet reads = setOf(program.reads), writes = setOf(program.writes);
  if (const std::string *name = missing(program.outputs, writes))
    return quoted(program.name) + " gives " + quoted(*name) +
           ", but does not state that it writes it";
  for (const NameSet *set : {&reads, &writes})
    if (const std::string *name = missing(program.adds, *set))
      return quoted(program.name) + " adds to " + quoted(*name) +
             ", but does not state that it reads and writes it";
  if (const std::string *name = missing(program.clears, writes))
    return quoted(program.name) + " clears " + quoted(*name) +
           ", but does not state that it writes it";
  NameSet clears = setOf(program.clears);
  for (const std::string &name : program.adds)
    if (clears.count(name) != 0)
      return quoted(program.name) + " states both that it adds to " +
             quoted(name) + " and that it clears it";
  return "";
}

//===----------------------------------------------------------------------===//
// How often programs run
//===----------------------------------------------------------------------===//

static std::string times(int64_t count) {
  return count == 1 ? "once" : std::to_string(count) + " times";
}

/// Compares how often programs run with how often they are to.
static std::optional<StepFault> faultOfCounts(const std::string &step,
                                              const Programs &programs,
                                              const StepEffects &effects) {
  std::map<std::string, int64_t> runs;
  std::map<std::string, const ProgramEffects *> byName;
  for (const ProgramEffects *program : programs)
    byName[program->name] = program;
  for (const ProgramRuns &entry : effects.list)
    runs[programs[entry.program]->name] += entry.times;
  for (const auto &[name, count] : effects.stated)
    runs.emplace(name, 0);
  for (const auto &[name, count] : runs) {
    auto wanted = effects.stated.find(name);
    int64_t due = wanted == effects.stated.end() ? 0 : wanted->second;
    if (count == due)
      continue;
    auto found = byName.find(name);
    const ProgramEffects *program =
        found == byName.end() ? nullptr : found->second;
    std::string what;
    if (!program)
      what = ", which does not exist,";
    else if (!program->writes.empty())
      what = ", which writes " + quoted(program->writes.front()) + ",";
    return StepFault{
        "step " + quoted(step) + " runs " + quoted(name) + what + " " +
            times(count) + ", but states " + times(due),
        "let the list (nn.steps) and the statement (exec.steps) agree",
        program};
  }
  return std::nullopt;
}

namespace {
/// An input of a whole step, of which other programs take slices.
struct Slices {
  const ProgramEffects *program; // takes the whole
  std::string whole, slice;
};
} // namespace

/// How many slices the whole input holds; 0 if it is no whole number.
static int64_t countOf(const std::vector<int64_t> &slice,
                       const std::vector<int64_t> &whole) {
  if (slice.empty() || slice.size() != whole.size() || slice[0] < 1 ||
      whole[0] < 1 || whole[0] % slice[0] != 0 ||
      !std::equal(slice.begin() + 1, slice.end(), whole.begin() + 1))
    return 0;
  return whole[0] / slice[0];
}

/// Compares how often programs that take `slices.slice` run with the number of
/// slices.
static std::optional<StepFault>
faultOfSlices(const std::string &step, const Slices &slices, int64_t count,
              const std::map<const ProgramEffects *, int64_t> &runs) {
  for (const auto &[program, ran] : runs) {
    if (!contains(program->inputs, slices.slice) || ran == count)
      continue;
    std::string takes =
        quoted(program->name) + ", which takes " + quoted(slices.slice) + ", ";
    std::string holds = quoted(slices.whole) + " of " +
                        quoted(slices.program->name) + " holds ";
    if (count == 0)
      return StepFault{"step " + quoted(step) + " runs " + takes + "but " +
                           holds + "no whole number of it",
                       "give the inputs of a step the shape of its slices, one "
                       "after the other along dimension 0",
                       program};
    return StepFault{"step " + quoted(step) + " runs " + takes + times(ran) +
                         ", but " + holds + std::to_string(count) + " of it",
                     "run it " + times(count) + " (nn.steps, exec.steps)",
                     program};
  }
  return std::nullopt;
}

static std::optional<StepFault>
faultOfMicrobatches(const std::string &step, const Programs &programs,
                    const std::map<std::string, SharedRange> &ranges,
                    const std::vector<ProgramRuns> &list) {
  const std::string_view suffix = range_name::kOfStepSuffix;
  std::map<const ProgramEffects *, int64_t> runs;
  for (const ProgramRuns &entry : list)
    runs[programs[entry.program]] += entry.times;
  for (const auto &[program, ran] : runs)
    for (const std::string &whole : program->inputs) {
      size_t length = whole.size() - std::min(whole.size(), suffix.size());
      if (std::string_view(whole).substr(length) != suffix)
        continue;
      Slices slices{program, whole, whole.substr(0, length)};
      auto one = ranges.find(slices.slice), all = ranges.find(whole);
      if (one == ranges.end() || all == ranges.end())
        continue;
      int64_t count = countOf(one->second.shape, all->second.shape);
      if (auto fault = faultOfSlices(step, slices, count, runs))
        return fault;
    }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// What programs hand on
//===----------------------------------------------------------------------===//

namespace {

/// A program whose lists of names can be asked.
struct Program {
  explicit Program(const ProgramEffects &effects)
      : effects(&effects), reads(setOf(effects.reads)),
        adds(setOf(effects.adds)), clears(setOf(effects.clears)) {}

  /// Of a range that it writes: nothing of what was there is in it, and it is
  /// not empty.
  bool produces(std::string_view range) const {
    return reads.count(range) == 0 && clears.count(range) == 0;
  }

  const ProgramEffects *effects;
  NameSet reads, adds, clears;
};

/// The programs of a step, one after another.
class StepWalk {
public:
  StepWalk(const std::string &step, const std::vector<Program> &programs,
           const std::map<std::string, SharedRange> &ranges,
           const std::vector<ProgramRuns> &list);

  std::optional<StepFault> run();

  /// Ranges that the step takes to be zero when it begins, by the program that
  /// adds to them first.
  ProgramByRange fromZero;
  /// Ranges that are not left at zero, by the last program that has written
  /// them.
  ProgramByRange filled;

private:
  std::optional<StepFault> run(const Program &program);
  std::optional<StepFault> faultOfRead(const Program &program,
                                       const std::string &range) const;
  std::optional<StepFault> faultOfEnd() const;
  void write(const Program &program, const std::string &range);
  StepFault fault(const Program &program, const std::string &message,
                  const std::string &remedy) const {
    return {place + message, remedy, program.effects};
  }

  std::string place;
  const std::vector<Program> &programs;
  const std::map<std::string, SharedRange> &ranges;
  const std::vector<ProgramRuns> &list;
  /// Programs of the step that produce a range; those of no place in the step
  /// that do, where nothing in the step writes it; and all that add to it.
  ProgramByRange producers, producersElsewhere, adders;
  NameSet written;
  /// What a program has produced from one slice of the batch and nobody has
  /// read since; and what it has produced from the next one over that.
  ProgramByRange unread, lost;
};

} // namespace

StepWalk::StepWalk(const std::string &step,
                   const std::vector<Program> &programs,
                   const std::map<std::string, SharedRange> &ranges,
                   const std::vector<ProgramRuns> &list)
    : place("step " + quoted(step) + ": "), programs(programs), ranges(ranges),
      list(list) {
  NameSet writtenHere;
  for (const ProgramRuns &entry : list) {
    const Program &program = programs[entry.program];
    for (const std::string &range : program.effects->writes) {
      writtenHere.insert(range);
      if (program.produces(range))
        producers.emplace(range, program.effects);
    }
  }
  for (const Program &program : programs) {
    for (const std::string &range : program.effects->adds)
      adders.emplace(range, program.effects);
    for (const std::string &range : program.effects->writes) {
      auto known = ranges.find(range);
      bool isOfModel = known != ranges.end() && known->second.isOfModel;
      if (program.produces(range) && !isOfModel &&
          writtenHere.count(range) == 0)
        producersElsewhere.emplace(range, program.effects);
    }
  }
}

std::optional<StepFault> StepWalk::faultOfRead(const Program &program,
                                               const std::string &range) const {
  const std::string &name = program.effects->name;
  std::string reads = quoted(name) + " reads " + quoted(range) + ", ";
  auto listBefore = [&](const ProgramEffects &other) {
    return "list " + quoted(other.name) + " before " + quoted(name) +
           " in nn.steps";
  };
  if (const ProgramEffects *producer = lookup(producers, range);
      producer && written.count(range) == 0)
    return fault(program,
                 reads + "which " + quoted(producer->name) +
                     " writes, before that has run",
                 listBefore(*producer));
  if (const ProgramEffects *producer = lookup(producersElsewhere, range))
    return fault(program,
                 reads + "which " + quoted(producer->name) +
                     " writes, but the step does not run that",
                 listBefore(*producer));
  if (const ProgramEffects *adder = lookup(adders, range);
      adder && program.adds.count(range) == 0 && filled.count(range) == 0)
    return fault(program,
                 reads + "a sum to which nothing has been added by then",
                 listBefore(*adder) +
                     ", and the program that clears the sum after both");
  if (const ProgramEffects *producer = lookup(lost, range))
    return fault(program,
                 reads + "which " + quoted(producer->name) +
                     " produces anew for every microbatch: all but the last "
                     "one are lost",
                 "let " + quoted(producer->name) +
                     " add to it (nn.accumulate)");
  return std::nullopt;
}

void StepWalk::write(const Program &program, const std::string &range) {
  bool adds = program.adds.count(range) != 0;
  if (adds && written.count(range) == 0)
    fromZero.emplace(range, program.effects);
  written.insert(range);
  if (program.clears.count(range) != 0)
    filled.erase(range);
  else
    filled[range] = program.effects;
  bool isPart = program.produces(range) && takesMicrobatch(*program.effects);
  if (isPart && lookup(unread, range) == program.effects)
    lost[range] = program.effects;
  else
    lost.erase(range);
  if (isPart)
    unread[range] = program.effects;
  else
    unread.erase(range);
}

std::optional<StepFault> StepWalk::run(const Program &program) {
  for (const std::string &range : program.effects->reads) {
    if (auto fault = faultOfRead(program, range))
      return fault;
    unread.erase(range);
  }
  for (const std::string &range : program.effects->writes)
    write(program, range);
  return std::nullopt;
}

std::optional<StepFault> StepWalk::faultOfEnd() const {
  for (const auto &[name, first] : fromZero) {
    std::string range(name);
    auto at = [&](const ProgramEffects *program, const std::string &message,
                  const std::string &remedy) {
      return StepFault{place + message, remedy, program};
    };
    if (auto known = ranges.find(range);
        known != ranges.end() && !known->second.beginsWithZeros)
      return at(first,
                quoted(first->name) + " adds to " + quoted(range) +
                    ", which does not begin with zeros",
                "declare it with #nn.zeros, or clear it in the step before");
    if (const ProgramEffects *last = lookup(filled, range))
      return at(last,
                "it ends with what " + quoted(last->name) +
                    (contains(last->adds, range) ? " has added to "
                                                 : " has written to ") +
                    quoted(range) + ", with which the next step would begin",
                "clear it (nn.clear) after the last program that reads it");
  }
  return std::nullopt;
}

std::optional<StepFault> StepWalk::run() {
  for (const ProgramRuns &entry : list)
    // What a second run does is what every further one does.
    for (int64_t i = 0; i < std::min<int64_t>(entry.times, 2); ++i)
      if (auto fault = run(programs[entry.program]))
        return fault;
  return faultOfEnd();
}

/// Sums that one step leaves full and that another takes to be zero.
static std::optional<StepFault>
faultBetween(const std::map<std::string, StepWalk> &walks) {
  for (const auto &[step, walk] : walks)
    for (const auto &[other, before] : walks)
      for (const auto &[range, first] : walk.fromZero)
        if (const ProgramEffects *last = lookup(before.filled, range))
          return StepFault{
              "step " + quoted(other) + " ends with what " +
                  quoted(last->name) + " leaves in " + quoted(range) +
                  ", with which step " + quoted(step) + " would begin",
              "clear it (nn.clear) in step " + quoted(other), last};
  return std::nullopt;
}

std::optional<StepFault>
fsdp::faultOfSteps(const std::vector<const ProgramEffects *> &programs,
                   const std::map<std::string, SharedRange> &ranges,
                   const std::map<std::string, StepEffects> &steps) {
  std::vector<Program> known;
  for (const ProgramEffects *program : programs)
    known.emplace_back(*program);
  std::map<std::string, StepWalk> walks;
  for (const auto &[name, effects] : steps) {
    if (auto fault = faultOfCounts(name, programs, effects))
      return fault;
    if (auto fault = faultOfMicrobatches(name, programs, ranges, effects.list))
      return fault;
    StepWalk walk(name, known, ranges, effects.list);
    if (auto fault = walk.run())
      return fault;
    walks.emplace(name, std::move(walk));
  }
  return faultBetween(walks);
}
