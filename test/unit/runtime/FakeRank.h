//===- FakeRank.h - A rank and a checkpoint writer of numbers ---*- C++ -*-===//
//
// What the pieces of training call, without an artifact, other processes, files
// or time: a virtual clock goes on when a step says so, and what other ranks
// add to a sum is what the test says.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_TEST_UNIT_RUNTIME_FAKERANK_H
#define FSDP_TEST_UNIT_RUNTIME_FAKERANK_H

#include "TemporaryFolder.h"
#include "fsdp/Support/Error.h"
#include "runtime/train/CheckpointWriter.h"
#include "runtime/train/TrainingRank.h"
#include <cmath>
#include <csignal>
#include <deque>
#include <map>

namespace fsdp::test {

/// Everything that was called, in order: "begin 1", "end 1", "save 2".
using CallLog = std::vector<std::string>;

/// Expects that the first rank and another one reach the same collectives, or
/// they would wait for each other; `act(isFirst)` gives those of one rank.
template <typename Act> void expectSameCollectives(const Act &act) {
  CallLog first = act(true), other = act(false);
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, other);
}

class FakeRank : public TrainingRank {
public:
  explicit FakeRank(CallLog &log) : log(log) {}

  // What the test says.
  bool first = true, overlaps = false, heldOut = true;
  double now = 100, secondsOfStep = 2;
  int signal = 0;
  /// After how many endStep() the signal comes.
  int64_t signalAfter = -1;
  /// What the other ranks add to every sum.
  std::vector<double> others;
  /// By step: outputs that are not 1.
  std::map<int64_t, double> losses, norms;
  bool hasNorm = true;
  std::string parameter, valueProblem, valueNamesProblem, value;
  /// The gradient norm of a step that is run again.
  double normAgain = NAN;
  /// Calls of goesOn() that an evaluation makes.
  int rounds = 3;
  bool ofFirstAnswer = true;
  /// Problems on other ranks, taken one by one.
  std::deque<int> otherFailures;
  /// Whether one of them does not let this one go on.
  bool othersFail = false;

  bool isFirst() const override { return first; }
  double seconds() const override { return now; }
  int stopSignal() const override { return signal; }
  void sum(double *values, int64_t count) override {
    collectives.push_back("sum of " + std::to_string(count));
    for (int64_t i = 0; i < count && i < static_cast<int64_t>(others.size());
         ++i)
      values[i] += others[static_cast<size_t>(i)];
  }
  bool ofFirst(bool value) override {
    collectives.emplace_back("ofFirst");
    return first ? value : ofFirstAnswer;
  }
  Failures countFailures(const std::string &problem) override {
    collectives.emplace_back("countFailures");
    int count = problem.empty() ? 0 : 1;
    if (!otherFailures.empty()) {
      count += otherFailures.front();
      otherFailures.pop_front();
    }
    return {count, count > 0 ? 0 : -1};
  }
  void requireSuccess(const std::string &problem) override {
    collectives.emplace_back("requireSuccess");
    if (!problem.empty())
      throw Error(problem);
    if (othersFail)
      throw Error("ended by another rank");
  }
  bool stepsOverlap() const override { return overlaps; }
  std::optional<double> setInputs(int64_t step, int32_t number) override {
    numbers[step] = number;
    return 0.5;
  }
  void beginStep(int64_t step) override {
    log.push_back("begin " + std::to_string(step));
    collectives.push_back(log.back());
    running.push_back(step);
  }
  void endStep() override {
    isAgain = false;
    ended = running.front();
    running.pop_front();
    log.push_back("end " + std::to_string(ended));
    now += secondsOfStep;
    if (ended == signalAfter)
      signal = SIGTERM;
  }
  int stepsBegun() const override { return static_cast<int>(running.size()); }
  double loss() override {
    collectives.emplace_back("loss");
    return outputOf(losses);
  }
  std::optional<double> gradNorm() const override {
    if (!hasNorm)
      return std::nullopt;
    return isAgain ? normAgain : outputOf(norms);
  }
  std::string readValueNames() override {
    collectives.emplace_back("readValueNames");
    return valueNamesProblem;
  }
  std::string firstNonfiniteParameter() override {
    collectives.emplace_back("firstNonfiniteParameter");
    return parameter;
  }
  FoundValue firstNonfiniteOfStep() override {
    log.emplace_back("look");
    collectives.emplace_back("firstNonfiniteOfStep");
    isAgain = true;
    return {value, valueProblem};
  }
  bool hasHeldOut() const override { return heldOut; }
  std::optional<HeldOutScore> evaluateHeldOut(const GoesOn &goesOn) override {
    collectives.emplace_back("evaluateHeldOut");
    for (int i = 0; i < rounds; ++i)
      if (!goesOn())
        return std::nullopt;
    log.emplace_back("evaluate");
    return HeldOutScore{10, 1.5};
  }

  // What the pieces have done.
  CallLog collectives; // of them, those that all ranks have to reach
  std::map<int64_t, int32_t> numbers; // by step

private:
  double outputOf(const std::map<int64_t, double> &outputs) const {
    auto found = outputs.find(ended);
    return found == outputs.end() ? 1 : found->second;
  }

  CallLog &log;
  std::deque<int64_t> running;
  int64_t ended = 0;
  bool isAgain = false;
};

/// Saves that stay on their way until finish().
class FakeWriter : public CheckpointWriter {
public:
  FakeWriter(CallLog &log, FakeRank &rank) : log(log), rank(rank) {}

  // What the test says.
  bool fails = false;      // the save on its way
  bool endsRun = false;    // a save that fails
  std::string exportFails; // why
  int exportSignal = 0;    // that comes meanwhile

  int64_t lastStep() const override { return last; }
  void save(const checkpoint::RunState &state, SaveContents contents) override {
    end();
    rank.collectives.push_back("save " + std::to_string(state.step));
    const char *const names[] = {"", " parameters", " export"};
    log.push_back("save " + std::to_string(state.step) +
                  names[static_cast<int>(contents)]);
    states.push_back(state);
    last = state.step;
    isRunning = true;
  }
  bool hasFailed() const override { return isRunning && fails; }
  void finish() override {
    rank.collectives.emplace_back("finish");
    end();
  }
  void exportSaved(int64_t step) override {
    log.push_back("export " + std::to_string(step));
    if (exportSignal != 0)
      rank.signal = exportSignal;
    if (!exportFails.empty())
      throw Error(exportFails);
  }

  std::vector<checkpoint::RunState> states; // of all saves
  bool isRunning = false;

private:
  /// Waits for the save on its way.
  void end() {
    if (!isRunning)
      return;
    isRunning = false;
    log.push_back((fails ? "lost " : "saved ") + std::to_string(last));
    if (!fails)
      return;
    last = -1;
    if (endsRun)
      throw Error("the disk is full");
  }

  CallLog &log;
  FakeRank &rank;
  int64_t last = -1;
};

} // namespace fsdp::test

#endif // FSDP_TEST_UNIT_RUNTIME_FAKERANK_H
