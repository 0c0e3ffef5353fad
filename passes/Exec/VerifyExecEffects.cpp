//===- VerifyExecEffects.cpp - Programs and steps do what they state ------===//
//
// What a program reads and writes of ranges was stated by exec-lower, from the
// level above. Here it is followed byte by byte, in order of issue; that this
// order holds has been proved before.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Artifact/ProgramEffects.h"
#include "passes/Exec/VerifyExec.h"
#include <map>

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

//===----------------------------------------------------------------------===//
// Statements
//===----------------------------------------------------------------------===//

static ProgramEffects effectsOf(exec::ProgramOp program) {
  ProgramEffects effects;
  effects.name = program.getSymName().str();
  std::pair<StringRef, std::vector<std::string> *> lists[] = {
      {exec::kInputsAttr, &effects.inputs},
      {exec::kOutputsAttr, &effects.outputs},
      {exec::kReadsAttr, &effects.reads},
      {exec::kWritesAttr, &effects.writes},
      {exec::kAddsAttr, &effects.adds},
      {exec::kClearsAttr, &effects.clears}};
  for (auto &[attribute, names] : lists)
    if (auto list = program->getAttrOfType<ArrayAttr>(attribute))
      for (auto name : list.getAsRange<StringAttr>())
        names->push_back(name.str());
  return effects;
}

FailureOr<Statement> proof::readStatement(exec::ProgramOp program,
                                          const ArenaOffsets &offsets) {
  for (StringRef needed : {exec::kReadsAttr, exec::kWritesAttr})
    if (!program->hasAttr(needed))
      return program.emitOpError("does not state what it reads and writes: it "
                                 "has no ")
             << needed;
  Statement statement;
  statement.program = program;
  std::pair<StringRef, Statement::Ranges *> lists[] = {
      {exec::kInputsAttr, &statement.inputs},
      {exec::kOutputsAttr, &statement.outputs},
      {exec::kReadsAttr, &statement.reads},
      {exec::kWritesAttr, &statement.writes},
      {exec::kAddsAttr, &statement.adds},
      {exec::kClearsAttr, &statement.clears}};
  for (auto &[attribute, ranges] : lists) {
    auto names = program->getAttrOfType<ArrayAttr>(attribute);
    if (!names)
      continue;
    for (auto name : names.getAsRange<StringAttr>()) {
      exec::RangeOp range = offsets.rangeOf(name);
      if (!range)
        return program.emitOpError("names ")
               << name << " in " << attribute << ", but no range is called so";
      ranges->insert(range);
    }
  }
  for (exec::RangeOp range : statement.reads)
    if (range.getRole() == exec::Role::Input &&
        !statement.inputs.contains(range))
      return program.emitOpError("reads the input @")
             << range.getSymName() << ", which is not among its "
             << exec::kInputsAttr;
  if (std::string fault = faultOf(effectsOf(program)); !fault.empty())
    return program.emitError(fault);
  return statement;
}

//===----------------------------------------------------------------------===//
// Bytes
//===----------------------------------------------------------------------===//

namespace {

/// A set of bytes.
class Bytes {
public:
  void add(ByteSpan span) {
    if (span.begin == span.end)
      return;
    auto next = runs.upper_bound(span.begin);
    if (next != runs.begin() && std::prev(next)->second >= span.begin) {
      --next;
      span.begin = next->first;
      span.end = std::max(span.end, next->second);
      next = runs.erase(next);
    }
    while (next != runs.end() && next->first <= span.end) {
      span.end = std::max(span.end, next->second);
      next = runs.erase(next);
    }
    runs.emplace_hint(next, span.begin, span.end);
  }

  /// The first run of bytes of `span` that are not in the set; empty if all
  /// are.
  ByteSpan firstGap(ByteSpan span) const {
    auto next = runs.upper_bound(span.begin);
    if (next != runs.begin())
      span.begin = std::max(span.begin, std::prev(next)->second);
    if (next != runs.end())
      span.end = std::min(span.end, next->first);
    return {span.begin, std::max(span.begin, span.end)};
  }
  bool holds(ByteSpan span) const {
    ByteSpan gap = firstGap(span);
    return gap.begin == gap.end;
  }

private:
  std::map<int64_t, int64_t> runs; // begin -> end, apart
};

/// Follows one program.
class EffectsVerifier {
public:
  explicit EffectsVerifier(const Statement &statement)
      : statement(statement), program(statement.program) {}

  LogicalResult run(const std::vector<IssuedOp> &issued);

private:
  LogicalResult read(Operation *op, const IssuedAccess &access);
  LogicalResult checkWritten();
  LogicalResult checkRead();

  const Statement &statement;
  exec::ProgramOp program;
  /// Of ranges, by the program.
  Bytes written;
  llvm::DenseSet<exec::RangeOp> readFirst;
};

} // namespace

LogicalResult EffectsVerifier::read(Operation *op, const IssuedAccess &access) {
  if (!access.range || written.holds(access.bytes))
    return success();
  readFirst.insert(access.range);
  if (statement.reads.contains(access.range))
    return success();
  return op->emitOpError("reads what @")
         << exec::RangeOp(access.range).getSymName() << " held before @"
         << program.getSymName() << ", which does not state that it does ("
         << exec::kReadsAttr << ")";
}

LogicalResult EffectsVerifier::checkWritten() {
  for (exec::RangeOp range : statement.writes) {
    int64_t begin = *range.getOffset();
    ByteSpan gap =
        written.firstGap({begin, begin + exec::bytesOf(range.getMemRefType())});
    if (gap.begin != gap.end)
      return program.emitOpError("does not write bytes [")
             << gap.begin << ", " << gap.end << ") of @" << range.getSymName()
             << ", which it "
             << (statement.outputs.contains(range) ? "returns"
                                                   : "states to write whole");
  }
  return success();
}

LogicalResult EffectsVerifier::checkRead() {
  for (exec::RangeOp range : statement.reads)
    if (!readFirst.contains(range))
      return program.emitOpError("does not read @")
             << range.getSymName() << ", as it states (" << exec::kReadsAttr
             << ")";
  return success();
}

LogicalResult EffectsVerifier::run(const std::vector<IssuedOp> &issued) {
  for (const IssuedOp &issue : issued) {
    for (const IssuedAccess &access : issue.reads)
      if (failed(read(issue.op, access)))
        return failure();
    for (const IssuedAccess &access : issue.writes)
      if (access.range && !statement.writes.contains(access.range))
        return issue.op->emitOpError("writes @")
               << exec::RangeOp(access.range).getSymName() << ", but @"
               << program.getSymName() << " does not state that it does ("
               << exec::kWritesAttr << ")";
    auto add = [&](const IssuedAccess &access) {
      if (access.range)
        written.add(access.bytes);
    };
    if (failed(forEachWrite(issue, add)))
      return failure();
  }
  if (failed(checkWritten()))
    return failure();
  return checkRead();
}

LogicalResult proof::verifyEffects(const Statement &statement,
                                   const std::vector<IssuedOp> &issued) {
  return EffectsVerifier(statement).run(issued);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A step names `symbol`, which is no program of this level.
static LogicalResult emitNoProgram(ModuleOp module, StringAttr step,
                                   FlatSymbolRefAttr symbol) {
  Operation *named = module.lookupSymbol(symbol.getAttr());
  return emitError((named ? named : module)->getLoc())
         << symbol << " is run by step '" << step.getValue()
         << "', but is no exec.program; list programs alone in "
         << nn::kStepsAttr;
}

static FailureOr<std::map<std::string, StepEffects>>
collectSteps(ModuleOp module, const std::vector<ProgramEffects> &programs) {
  std::map<std::string, size_t> indices;
  for (auto [index, program] : llvm::enumerate(programs))
    indices[program.name] = index;
  auto stated = module->getAttrOfType<DictionaryAttr>(exec::kStepsAttr);
  if (!stated && module->hasAttr(nn::kStepsAttr))
    return module.emitOpError("has ")
           << nn::kStepsAttr << ", but does not state how often its steps run "
           << "each program (" << exec::kStepsAttr << "), as exec-lower does";
  std::map<std::string, StepEffects> steps;
  for (const auto &[name, actions] : exec::stepsOf(module)) {
    StepEffects &step = steps[name.str()];
    for (const exec::StepAction &action : actions) {
      auto found = indices.find(action.program.getValue().str());
      if (found == indices.end())
        return emitNoProgram(module, name, action.program);
      step.list.push_back({found->second, action.times});
      // Without nn.steps the program of a step's name is the step.
      if (!stated)
        step.stated[found->first] += action.times;
    }
  }
  if (!stated)
    return steps;
  for (NamedAttribute entry : stated)
    for (NamedAttribute runs : cast<DictionaryAttr>(entry.getValue()))
      steps[entry.getName().str()].stated[runs.getName().str()] =
          cast<IntegerAttr>(runs.getValue()).getInt();
  return steps;
}

static SharedRange sharedRange(exec::RangeOp range) {
  SharedRange shared;
  auto type = range.getFull() ? cast<ShapedType>(*range.getFull())
                              : ShapedType(range.getMemRefType());
  shared.shape = type.getShape().vec();
  exec::Role role = range.getRole();
  shared.isOfModel = role == exec::Role::Parameter ||
                     role == exec::Role::Buffer ||
                     role == exec::Role::ComputeCopy;
  Attribute init = range.getInitAttr();
  shared.beginsWithZeros = !init || isa<nn::ZerosAttr>(init);
  return shared;
}

LogicalResult proof::verifySteps(ModuleOp module) {
  std::vector<ProgramEffects> programs;
  std::vector<const ProgramEffects *> pointers;
  for (auto program : module.getOps<exec::ProgramOp>())
    programs.push_back(effectsOf(program));
  for (const ProgramEffects &program : programs)
    pointers.push_back(&program);
  auto steps = collectSteps(module, programs);
  if (failed(steps))
    return failure();
  std::map<std::string, SharedRange> ranges;
  for (auto range : module.getOps<exec::RangeOp>())
    ranges[range.getSymName().str()] = sharedRange(range);
  auto fault = faultOfSteps(pointers, ranges, *steps);
  if (!fault)
    return success();
  Operation *place = module;
  if (fault->program)
    place = module.lookupSymbol(fault->program->name);
  return emitError(place->getLoc()) << fault->message << "; " << fault->remedy;
}
