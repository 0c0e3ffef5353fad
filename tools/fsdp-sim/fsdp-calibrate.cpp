//===- fsdp-calibrate.cpp - One rank of measuring a machine ---------------===//
//
// Linked with the runtime of a target, as fsdp-calibrate-cpu. fsdp-sim
// --calibrate starts one for each rank; people do not.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Core/Context.h"
#include "fsdp/Rendezvous/Environment.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Explain.h"
#include "runtime/calibrate/Calibrate.h"
#include <cstdio>
#include <cstdlib>

using namespace fsdp;
using namespace fsdp::rt;

/// FILE NAME THREADS SECONDS SHAPE…
static void run(const std::vector<std::string> &words) {
  if (words.size() < 4)
    throw Error("fsdp-sim --calibrate starts this program");
  Calibration calibration;
  calibration.name = words[1];
  calibration.threads = std::atoi(words[2].c_str());
  calibration.seconds = std::atof(words[3].c_str());
  for (size_t i = 4; i < words.size(); ++i)
    calibration.shapes.push_back(readShape(words[i]));
  LaunchEnvironment place =
      detectLaunch().value_or(LaunchEnvironment{0, 1, 0, 1});
  bindToOwnCores(place, calibration.threads);
  World world = joinWorld();
  try {
    Machine machine = calibrate(calibration);
    if (world.rank == 0)
      writeFileAtomically(words[0], toToml(machine));
  } catch (const std::exception &error) {
    if (world.size > 1)
      abortWorld(explain(error));
    throw;
  }
  leaveWorld();
}

int main(int argc, char **argv) {
  try {
    run({argv + 1, argv + argc});
    return 0;
  } catch (const std::exception &error) {
    std::fprintf(stderr, "fsdp-calibrate: error: %s\n", explain(error).c_str());
    return 1;
  }
}
