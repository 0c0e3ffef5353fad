//===- StopSignals.h - A run that saves before it ends ----------*- C++ -*-===//
//
// Somebody who wants a run to end sends it SIGTERM, SIGINT or SIGUSR1; a run
// that saves checkpoints saves one first. Launchers, terminals and batch
// systems send one signal to several processes of a job, which send it on: what
// comes shortly after the first is the same wish. A later one, or the end of
// the grace period, ends the process as if nobody handled the signal here.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_STOPSIGNALS_H
#define FSDP_RUNTIME_TRAIN_STOPSIGNALS_H

namespace fsdp {

/// From here on the signals that are not ignored are only noted. A signal may
/// come at once.
void catchStopSignals(double graceSeconds);

/// The first signal that has come, or 0.
int stopSignal();

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_STOPSIGNALS_H
