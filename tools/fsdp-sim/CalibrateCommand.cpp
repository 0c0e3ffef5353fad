//===- CalibrateCommand.cpp - fsdp-sim --calibrate ------------------------===//
//
// What measures links the runtime, which the compiler does not load: the ranks
// are processes of another program, and what they write is a file.
//
//===----------------------------------------------------------------------===//
#include "CalibrateCommand.h"
#include "fsdp/Driver/CompileCommand.h"
#include "fsdp/Launch/Launch.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "runtime/calibrate/CalibratedShape.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/StringSaver.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <filesystem>

using namespace fsdp;

static constexpr int64_t kLongest = 24 * 3600; // seconds

static rt::CalibratedShape shapeOf(const problem::Math &math) {
  rt::CalibratedShape shape;
  shape.kind = math.kind == problem::MathKind::Product
                   ? rt::CalibratedShape::Product
                   : rt::CalibratedShape::Attention;
  shape.type = math.type == rt::DType::BF16 ? MathType::BF16 : MathType::F32;
  shape.layout = layoutOf(math.transposeLhs, math.transposeRhs);
  shape.sizes = {math.m, math.n, math.k};
  return shape;
}

/// Adds the shapes of a run's step; returns its threads.
static llvm::Expected<int64_t> addShapes(const CalibrateCommand &command,
                                         const std::string &path,
                                         std::vector<std::string> &shapes) {
  CompileCommand compile;
  compile.configPath = path;
  compile.overrides = command.settings;
  compile.emit = Stage::Problem;
  compile.ranks = command.ranks;
  compile.workspaces = "cpu";
  compile.tool = "fsdp-sim";
  compile.argv0 = command.argv0;
  Request request = makeRequest(compile, llvm::nulls());
  int64_t threads = request.config.compile.threads;
  llvm::Expected<PlannedProblem> planned = planProblem(std::move(request));
  if (!planned)
    return planned.takeError();
  for (const problem::Math &math : planned->problem.maths) {
    std::string text = textOf(shapeOf(math));
    if (std::min({math.m, math.n, math.k}) > 0 &&
        std::find(shapes.begin(), shapes.end(), text) == shapes.end())
      shapes.push_back(text);
  }
  return threads;
}

static void check(const CalibrateCommand &command) {
  if (command.output.empty() || command.output == "-")
    throw Error("--calibrate writes a machine file: say -o FILE.toml");
  if (command.ranks < 1 || command.ranks > rt::kMaxLocalRanks)
    throw Error("--ranks: a machine is measured with 1 to " +
                std::to_string(rt::kMaxLocalRanks) + " ranks, not " +
                std::to_string(command.ranks));
  if (!command.launcher.empty() && (command.ranks == 1) != command.runs.empty())
    throw Error("--launcher says how many ranks there are: --ranks goes with "
                "--for, whose shapes depend on it, and not without");
  if (!(command.seconds > 0 && command.seconds <= kLongest))
    throw Error("--seconds: expected more than 0, up to " +
                std::to_string(kLongest));
  if (!command.settings.empty() && command.runs.empty())
    throw Error("settings go with --for, whose runs they change");
  // A place that cannot be written is known before anything is measured.
  AtomicFile place(command.output);
}

/// By a launcher of the user's, which says itself how many ranks there are. It
/// has succeeded if the file that the ranks write is there.
static void runUnder(const std::string &launcher,
                     const std::vector<std::string> &command,
                     const std::string &file) {
  llvm::BumpPtrAllocator memory;
  llvm::StringSaver saver(memory);
  llvm::SmallVector<const char *> words;
  llvm::cl::TokenizeGNUCommandLine(launcher, saver, words);
  if (words.empty())
    throw Error("--launcher: expected a command, as 'mpirun -np 2'");
  llvm::ErrorOr<std::string> program = llvm::sys::findProgramByName(words[0]);
  if (!program)
    throw Error("--launcher: there is no program '" + std::string(words[0]) +
                "'");
  std::vector<llvm::StringRef> all(words.begin(), words.end());
  all.insert(all.end(), command.begin(), command.end());
  std::string why;
  int status =
      llvm::sys::ExecuteAndWait(*program, all, std::nullopt, {}, 0, 0, &why);
  if (status != 0)
    throw Error("measuring failed: '" + launcher + "' ended with status " +
                std::to_string(status) + (why.empty() ? "" : ": " + why));
  if (!std::filesystem::exists(file))
    throw Error("measuring failed: '" + launcher +
                "' has started no ranks; the ranks' program and its arguments "
                "come after it");
}

llvm::Error fsdp::calibrateMachine(const CalibrateCommand &command) {
  check(command);
  std::vector<std::string> shapes;
  int64_t threads = 1;
  for (const std::string &run : command.runs) {
    llvm::Expected<int64_t> its = addShapes(command, run, shapes);
    if (!its)
      return its.takeError();
    if (run != command.runs.front() && *its != threads)
      throw Error("--for: " + command.runs.front() + " has " +
                  std::to_string(threads) + " threads per rank, " + run +
                  " has " + std::to_string(*its) +
                  "; a machine file is for one number");
    threads = *its;
  }
  std::string stem = std::filesystem::path(command.output).stem().string();
  rt::LocalJob job{rt::kCpuTarget,
                   static_cast<int>(command.ranks),
                   static_cast<int>(threads),
                   {rt::calibrateProgram(rt::kCpuTarget), command.output, stem,
                    std::to_string(threads), std::to_string(command.seconds)}};
  job.command.insert(job.command.end(), shapes.begin(), shapes.end());
  if (!command.launcher.empty()) {
    // What was there before is no measurement of these ranks.
    std::string measured = command.output + ".measured";
    std::filesystem::remove(measured);
    job.command[1] = measured;
    runUnder(command.launcher, job.command, measured);
    std::filesystem::rename(measured, command.output);
    return llvm::Error::success();
  }
  rt::JobEnd end = rt::runLocalRanks(job);
  if (end.status != 0)
    throw Error("measuring failed: " + end.message);
  return llvm::Error::success();
}
