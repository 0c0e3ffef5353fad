//===- fsdp-interpret.cpp - Asks what a program computes ------------------===//
//
// Runs a program of nn and fsdp ops on simulated ranks in one process: nothing
// is compiled, nothing runs asynchronously, and no MPI is needed.
//
//===----------------------------------------------------------------------===//
#include "CompilerTool.h"
#include "EscapedDiagnostics.h"
#include "RandomInputs.h"
#include "TensorFile.h"
#include "dialects/Exec/Exec.h"
#include "fsdp/Input/Nesting.h"
#include "fsdp/Memory/Report.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include <cmath>
#include <new>
#include <unistd.h>

namespace cl = llvm::cl;
using namespace fsdp;
using namespace mlir;
using interpret::DenseTensor;

static const char *const kOverview =
    R"(fsdp-interpret: runs a program on simulated ranks and prints its results

The program is text of the nn and fsdp dialects at any level: the graph of a
model (one rank), or the output of a pass from fsdp-shard to nn-fuse (all ranks
of its fsdp.mesh in lockstep). Every op computes its formula in double precision,
and reductions add in the tree of the runtime, so programs that mean the same
print the same. It is slow: use it for small models.)";

static const char *const kExamples = R"(
EXAMPLES:

  Loss and logits of a small Llama with random weights and tokens:
    fsdp-trace llama3_debug --seq 8 --set dim=32 | fsdp-interpret --seed 1

  Does the schedule compute what the model means? Compare loss and gradients:
    fsdp-trace llama3_debug --batch 2 --seq 8 --set dim=32 > graph.mlir
    fsdp-opt graph.mlir --nn-differentiate | fsdp-interpret --seed 1
    fsdp-opt graph.mlir --fsdp-shard="mesh=dp_shard=2" --nn-differentiate \
        --fsdp-propagate --fsdp-expand --fsdp-plan --fsdp-remat --fsdp-bucket \
        --fsdp-overlap \
      | fsdp-interpret --seed 1

  What does rounding to the declared types cost?
    fsdp-interpret schedule.mlir --seed 1
    fsdp-interpret schedule.mlir --seed 1 --f32

  With tensors of your own, all results kept:
    fsdp-interpret schedule.mlir --inputs in.safetensors --outputs out.safetensors

TENSORS:

  Inputs are parameters and buffers by name, each unsharded, and arguments: NAME
  for all ranks, rank0/NAME for one. An argument that is sharded over ranks (a
  batch) is given, and made up, as one tensor. Outputs are gradients (NAME.grad)
  and updated parameters by name, each unsharded, and the results of every rank
  as rank0/NAME. It is an error if replicas of a tensor differ.

)";

static cl::OptionCategory category("Options");
static cl::opt<std::string> inputPath(cl::Positional,
                                      cl::desc("<program.mlir>"), cl::init("-"),
                                      cl::cat(category));
static cl::opt<std::string> functionName(
    "function", cl::value_desc("NAME"),
    cl::desc("The program (default: @train, or the only public function)"),
    cl::cat(category));
static cl::opt<std::string> tensorsPath("inputs", cl::value_desc("FILE"),
                                        cl::desc("Read tensors (safetensors)"),
                                        cl::cat(category));
static cl::opt<uint64_t>
    seed("seed", cl::value_desc("N"),
         cl::desc("Make up the inputs that are missing (default: a missing "
                  "input is an error)"),
         cl::cat(category));
static cl::opt<bool>
    sameOnAllRanks("same-on-all-ranks",
                   cl::desc("Make up the same arguments on all ranks"),
                   cl::cat(category));
static cl::opt<bool>
    declared("f32",
             cl::desc("Round every op to its declared type, sums to f32"),
             cl::cat(category));
static cl::opt<std::string> memoryLimit(
    "memory-limit", cl::value_desc("SIZE"),
    cl::desc("Refuse a program that needs more memory (60GiB, 500MB, or bytes; "
             "default: the memory of this machine)"),
    cl::cat(category));
static cl::opt<std::string>
    outputsPath("outputs", cl::value_desc("FILE"),
                cl::desc("Write tensors (safetensors, F64)"),
                cl::cat(category));

//===----------------------------------------------------------------------===//
// The program
//===----------------------------------------------------------------------===//

static OwningOpRef<ModuleOp> readModule(MLIRContext &context) {
  std::string problem;
  auto file = openInputFile(inputPath, &problem);
  if (!file)
    throw Error(problem);
  if (llvm::Error error = checkText(*file))
    throw Error(llvm::toString(std::move(error)));
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(std::move(file), llvm::SMLoc());
  SourceMgrDiagnosticHandler handler(sources, &context);
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    throw Error("'" + inputPath + "' is not a valid program");
  return module;
}

static func::FuncOp findProgram(ModuleOp module) {
  SmallVector<func::FuncOp> programs;
  std::string names;
  for (auto function : module.getOps<func::FuncOp>())
    if (function.isPublic() && !function.isExternal()) {
      programs.push_back(function);
      names += (names.empty() ? "@" : ", @") + function.getName().str();
    }
  StringRef wanted = functionName.empty() ? "train" : StringRef(functionName);
  for (func::FuncOp function : programs)
    if (function.getName() == wanted)
      return function;
  if (functionName.empty() && programs.size() == 1)
    return programs.front();
  throw Error("no program to run: --function takes one of " +
              (names.empty() ? "none: the module has none" : names));
}

/// The bytes that a program may take.
static int64_t readMemoryLimit() {
  if (!memoryLimit.getNumOccurrences())
    return int64_t(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  llvm::Expected<int64_t> bytes = parseBytes(memoryLimit);
  if (!bytes)
    throw Error("--memory-limit: " + llvm::toString(bytes.takeError()));
  return *bytes;
}

/// Said before anything is computed: LLVM ends a process that has no memory
/// left.
static void checkSize(func::FuncOp program, int64_t ranks) {
  int64_t needed = interpret::leastBytes(program), limit = readMemoryLimit();
  if (needed <= limit)
    return;
  throw Error("@" + program.getName().str() + " takes at least " +
              formatBytes(needed) + " on " + std::to_string(ranks) +
              (ranks == 1 ? " rank" : " ranks") +
              ", 8 bytes for every element on every rank, which is more than " +
              formatBytes(limit) +
              (memoryLimit.empty() ? ", the memory of this machine"
                                   : " of --memory-limit") +
              "; take a smaller model (fewer layers, another width or "
              "vocabulary), shorter sequences or fewer ranks, or set "
              "--memory-limit");
}

//===----------------------------------------------------------------------===//
// The summary
//===----------------------------------------------------------------------===//

static std::string shapeOf(const DenseTensor &tensor) {
  std::string text;
  for (int64_t size : tensor.shape)
    text += (text.empty() ? "" : "x") + std::to_string(size);
  return text.empty() ? "scalar" : text;
}

static void printTensor(llvm::raw_ostream &os, const std::string &name,
                        const std::string &where, const DenseTensor &tensor) {
  double sum = 0, squares = 0;
  for (double value : tensor.values) {
    sum += value;
    squares += value * value;
  }
  // Values differ in the last digits between schedules: f64 adds up in
  // another order too. What is left of values that cancel out is no value.
  double noise = tensor.size() ? 1e-12 * std::sqrt(squares / tensor.size()) : 0;
  auto shown = [&](double value) {
    return std::fabs(value) < noise ? 0 : value;
  };
  os << llvm::formatv("  {0,-40} {1,-9} {2,-12}", name, where, shapeOf(tensor));
  os << llvm::format(" mean %11.4e norm %11.4e :",
                     tensor.size() ? shown(sum / tensor.size()) : 0,
                     std::sqrt(squares));
  constexpr int64_t kShown = 3;
  for (int64_t i = 0; i < std::min(kShown, tensor.size()); ++i)
    os << llvm::format(" %.5g", shown(tensor.values[i]));
  os << (tensor.size() > kShown ? " ...\n" : "\n");
}

static bool isSameOnAllRanks(const interpret::GridOutputs &outputs,
                             const std::string &name) {
  return llvm::all_of(outputs.results, [&](const interpret::TensorMap &map) {
    return map.at(name).values == outputs.results[0].at(name).values;
  });
}

static std::string summary(func::FuncOp program,
                           const interpret::GridOutputs &outputs) {
  std::string text;
  llvm::raw_string_ostream os(text);
  size_t ranks = outputs.results.size();
  os << "@" << program.getName() << " on " << ranks
     << (ranks == 1 ? " rank" : " ranks") << ", "
     << (declared ? "rounded to the declared types" : "in double precision")
     << "\nresults:\n";
  for (unsigned i = 0; i < program.getNumResults(); ++i) {
    std::string name = interpret::resultName(program, i);
    if (isSameOnAllRanks(outputs, name)) {
      printTensor(os, name, "all ranks", outputs.results[0].at(name));
      continue;
    }
    for (size_t rank = 0; rank < ranks; ++rank)
      printTensor(os, name, "rank " + std::to_string(rank),
                  outputs.results[rank].at(name));
  }
  if (!outputs.state.empty())
    os << "written:\n";
  for (const auto &[name, tensor] : outputs.state)
    printTensor(os, name, "whole", tensor);
  return text;
}

//===----------------------------------------------------------------------===//
// main
//===----------------------------------------------------------------------===//

static void run() {
  DialectRegistry registry;
  registerFsdpDialects(registry);
  escapeDiagnostics(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  OwningOpRef<ModuleOp> module = readModule(context);
  func::FuncOp program = findProgram(*module);

  int64_t ranks = interpret::worldSize(*module);
  checkSize(program, ranks);
  interpret::GridInputs inputs;
  inputs.arguments.resize(ranks);
  if (!tensorsPath.empty())
    readInputs(tensorsPath, program, inputs);
  if (seed.getNumOccurrences())
    addRandomInputs(program, seed, sameOnAllRanks, inputs);
  auto rounding =
      declared ? interpret::Rounding::Declared : interpret::Rounding::None;
  interpret::GridOutputs outputs = interpret::run(program, inputs, rounding);
  if (!outputsPath.empty())
    writeOutputs(outputsPath, outputs);
  writeFileAtomically("-", summary(program, outputs));
}

int main(int argc, char **argv) {
  CompilerTool tool(argc, argv, "fsdp-interpret");
  cl::HideUnrelatedOptions(category);
  cl::extrahelp extra(kExamples);
  CompilerTool::checkOptions(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, kOverview);
  try {
    run();
  } catch (const std::runtime_error &error) {
    CompilerTool::printError(error.what());
    return 1;
  } catch (const std::bad_alloc &) {
    CompilerTool::printError("'" + inputPath +
                             "' needs more memory than is available: every "
                             "element on every rank takes 8 bytes");
    return 1;
  }
  return 0;
}
