//===- VerifyExecOrder.cpp - What is over when something else starts ------===//
#include "fsdp/Memory/Lifetimes.h"
#include "passes/Exec/VerifyExec.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::proof;

LogicalResult HappensBefore::replayEvent(const IssuedOp &issue) {
  if (issue.event < 0)
    return issue.op->emitOpError("event ")
           << issue.event << " does not exist: events count from 0";
  if (auto record = dyn_cast<exec::RecordOp>(issue.op)) {
    events[issue.event] = streams[size_t(record.getStream())];
    return success();
  }
  auto wait = cast<exec::WaitOp>(issue.op);
  auto at = events.find(issue.event);
  if (at == events.end())
    return wait.emitOpError("waits for event ")
           << issue.event << ", which is not recorded before";
  Stamp &stream = streams[size_t(wait.getStream())];
  for (size_t s = 0; s < kStreams; ++s)
    stream[s] = std::max(stream[s], at->second[s]);
  return success();
}

/// The step before ends in the compute stream; whatever does not start after
/// it would run into that step.
LogicalResult HappensBefore::checkStart(const IssuedOp &issue) {
  exec::Stream stream = exec::streamOf(issue.op);
  if (streams[size_t(stream)][kCompute] >= 1)
    return success();
  InFlightDiagnostic diagnostic =
      issue.op->emitOpError("on stream ")
      << exec::stringifyStream(stream)
      << " does not wait for the start of the program: it may run while the "
         "step before still uses its buffers";
  for (const IssuedOp &other : issued) {
    auto touches = [&](const auto &mine, const auto &theirs) {
      return llvm::any_of(mine, [&](const IssuedAccess &a) {
        return llvm::any_of(theirs, [&](const IssuedAccess &b) {
          return a.bytes.overlaps(b.bytes);
        });
      });
    };
    if (other.op == issue.op || !(touches(issue.writes, other.reads) ||
                                  touches(issue.writes, other.writes) ||
                                  touches(issue.reads, other.writes)))
      continue;
    diagnostic.attachNote(other.op->getLoc())
        << "for example this operation: " << labelOf(other.op);
    break;
  }
  return diagnostic;
}

LogicalResult HappensBefore::checkEnd(exec::ProgramOp program) {
  for (size_t s = 0; s < kStreams; ++s) {
    if (streams[kCompute][s] >= streams[s][s])
      continue;
    InFlightDiagnostic diagnostic = program.emitOpError("ends before stream ")
                                    << exec::stringifyStream(exec::Stream(s))
                                    << " does";
    diagnostic.attachNote(last[s]->op->getLoc())
        << "the last operation there: " << labelOf(last[s]->op);
    return diagnostic;
  }
  return success();
}

LogicalResult HappensBefore::replay(exec::ProgramOp program) {
  streams[kCompute][kCompute] = 1;
  for (size_t i = 0; i < issued.size(); ++i) {
    const IssuedOp &issue = issued[i];
    if (!exec::isWork(issue.op)) {
      if (failed(replayEvent(issue)))
        return failure();
      continue;
    }
    if (failed(checkStart(issue)))
      return failure();
    size_t stream = size_t(exec::streamOf(issue.op));
    known[i] = streams[stream];
    rank[i] = ++streams[stream][stream];
    last[stream] = &issue;
  }
  return checkEnd(program);
}
