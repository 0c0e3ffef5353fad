//===- SaveWatch.h - Noticing a save that hangs -----------------*- C++ -*-===//
//
// A file server that does not answer makes no error: the save waits, and with
// it all ranks. A thread of each rank looks at the calls to the file system
// while a save, or the export after the last step, is on its way, names the
// one that takes too long, and ends the job if it does not come back.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_SAVEWATCH_H
#define FSDP_RUNTIME_TRAIN_SAVEWATCH_H

#include "fsdp/Core/Context.h"
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace fsdp {

class SaveWatch {
public:
  /// A call that lasts `limitSeconds` is named, and ends the job after
  /// kPatience times as long; 0: never.
  SaveWatch(rt::World world, double limitSeconds);
  ~SaveWatch();
  SaveWatch(const SaveWatch &) = delete;
  SaveWatch &operator=(const SaveWatch &) = delete;

  static constexpr double kPatience = 10;

  /// `work` ("the checkpoint of step 4") is on its way until end().
  void begin(std::string work);
  void end();

private:
  void loop();
  void look();

  const rt::World world;
  const double limit;
  std::mutex mutex;
  std::condition_variable changed;
  std::string work;   // empty: none is on its way
  uint64_t named = 0; // the call that was named last
  bool stopping = false;
  std::thread thread;
};

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_SAVEWATCH_H
