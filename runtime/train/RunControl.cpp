//===- RunControl.cpp - Whether a run goes on -----------------------------===//
#include "RunControl.h"
#include "fsdp/Support/Signals.h"
#include <iterator>

using namespace fsdp;

void RunControl::hearOthers() {
  if (!writer)
    return;
  constexpr size_t kSignals = std::size(kSavingSignals);
  double heard[kSignals + 1]; // the ranks that got each, and that fail
  int own = rank.stopSignal();
  for (size_t i = 0; i < kSignals; ++i)
    heard[i] = own == kSavingSignals[i] ? 1 : 0;
  heard[kSignals] = writer->hasFailed() ? 1 : 0;
  rank.sum(heard, kSignals + 1);
  for (size_t i = 0; i < kSignals; ++i)
    if (heard[i] > 0 && !isStopping())
      why = stoppedBy(kSavingSignals[i]);
  if (heard[kSignals] > 0)
    writer->finish();
}

bool RunControl::goesOn() {
  hearOthers();
  return !isStopping();
}
