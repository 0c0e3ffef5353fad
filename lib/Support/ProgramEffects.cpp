//===- ProgramEffects.cpp - What programs read and write ------------------===//
#include "fsdp/Support/ProgramEffects.h"
#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

using namespace fsdp;

namespace {

using Names = std::vector<std::string>;
using NameSet = std::unordered_set<std::string_view>;
/// A program by the range that it makes or adds to.
using Writers = std::unordered_map<std::string_view, const ProgramEffects *>;

} // namespace

static NameSet setOf(const Names &names) {
  return NameSet(names.begin(), names.end());
}

/// The first of `names` that `set` lacks, or null.
static const std::string *missing(const Names &names, const NameSet &set) {
  auto found = std::find_if(names.begin(), names.end(), [&](const auto &name) {
    return set.count(name) == 0;
  });
  return found == names.end() ? nullptr : &*found;
}

static std::string quoted(const std::string &name) { return "'" + name + "'"; }

std::string fsdp::faultOf(const ProgramEffects &program) {
  NameSet reads = setOf(program.reads), writes = setOf(program.writes);
  if (const std::string *name = missing(program.outputs, writes))
    return quoted(program.name) + " gives " + quoted(*name) +
           ", but does not state that it writes it";
  for (const NameSet *set : {&reads, &writes})
    if (const std::string *name = missing(program.adds, *set))
      return quoted(program.name) + " adds to " + quoted(*name) +
             ", but does not state that it reads and writes it";
  return "";
}

namespace {

/// The programs of a step, one after another.
class StepWalk {
public:
  StepWalk(const std::string &step,
           const std::vector<const ProgramEffects *> &programs);

  /// What is wrong with a run of `program` at this place.
  std::string run(const ProgramEffects &program);
  /// What is wrong with an end at this place.
  std::string end() const;

private:
  std::string faultOfRead(const ProgramEffects &program,
                          const std::string &range, bool adds) const;

  std::string place;
  Writers makers, adders;
  NameSet written;
  /// Sums that are not zero, by the last program that has added.
  std::map<std::string_view, const ProgramEffects *> added;
};

} // namespace

StepWalk::StepWalk(const std::string &step,
                   const std::vector<const ProgramEffects *> &programs)
    : place("step " + quoted(step) + ": ") {
  for (const ProgramEffects *program : programs) {
    NameSet reads = setOf(program->reads);
    for (const std::string &range : program->writes)
      if (reads.count(range) == 0)
        makers.emplace(range, program);
    for (const std::string &range : program->adds)
      adders.emplace(range, program);
  }
}

std::string StepWalk::faultOfRead(const ProgramEffects &program,
                                  const std::string &range, bool adds) const {
  std::string reads =
      place + quoted(program.name) + " reads " + quoted(range) + ", ";
  auto maker = makers.find(range);
  if (maker != makers.end() && written.count(range) == 0)
    return reads + "which " + quoted(maker->second->name) +
           " writes, before that has run";
  if (!adds && adders.count(range) != 0 && added.count(range) == 0)
    return reads + "a sum to which nothing has been added by then";
  return "";
}

std::string StepWalk::run(const ProgramEffects &program) {
  NameSet adds = setOf(program.adds);
  for (const std::string &range : program.reads)
    if (auto fault = faultOfRead(program, range, adds.count(range) != 0);
        !fault.empty())
      return fault;
  for (const std::string &range : program.writes) {
    written.insert(range);
    if (adds.count(range) != 0)
      added[range] = &program;
    else
      added.erase(range);
  }
  return "";
}

std::string StepWalk::end() const {
  for (const auto &[range, program] : added)
    if (makers.count(range) == 0)
      return place + "it ends with what " + quoted(program->name) +
             " has added to " + quoted(std::string(range)) +
             ", with which the next step would begin";
  return "";
}

static std::string times(int64_t count) {
  return count == 1 ? "once" : std::to_string(count) + " times";
}

/// Compares how often programs run with how often they are to.
static std::string
faultOfCounts(const std::string &step,
              const std::vector<const ProgramEffects *> &programs,
              const std::vector<ProgramRuns> &list,
              const std::map<std::string, int64_t> &stated) {
  std::map<std::string, int64_t> runs;
  std::map<std::string, const ProgramEffects *> byName;
  for (const ProgramEffects *program : programs)
    byName[program->name] = program;
  for (const ProgramRuns &entry : list)
    runs[programs[entry.program]->name] += entry.times;
  for (const auto &[name, count] : stated)
    runs.emplace(name, 0);
  for (const auto &[name, count] : runs) {
    auto wanted = stated.find(name);
    int64_t due = wanted == stated.end() ? 0 : wanted->second;
    if (count == due)
      continue;
    auto program = byName.find(name);
    std::string what;
    if (program == byName.end())
      what = ", which does not exist,";
    else if (!program->second->writes.empty())
      what = ", which writes " + quoted(program->second->writes.front()) + ",";
    return "step " + quoted(step) + " runs " + quoted(name) + what + " " +
           times(count) + ", but states " + times(due);
  }
  return "";
}

std::string
fsdp::faultOfStep(const std::string &step,
                  const std::vector<const ProgramEffects *> &programs,
                  const std::vector<ProgramRuns> &list,
                  const std::map<std::string, int64_t> &stated) {
  if (auto fault = faultOfCounts(step, programs, list, stated); !fault.empty())
    return fault;
  StepWalk walk(step, programs);
  for (const ProgramRuns &entry : list)
    // What a second run does is what every further one does.
    for (int64_t i = 0; i < std::min<int64_t>(entry.times, 2); ++i)
      if (auto fault = walk.run(*programs[entry.program]); !fault.empty())
        return fault;
  return walk.end();
}
