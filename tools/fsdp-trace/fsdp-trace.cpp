//===- fsdp-trace.cpp - Prints a model's graph ----------------------------===//
//
// The first stage of the compiler on its own: a registry name or config.json
// in, nn text out, which every pass of fsdp-opt takes.
//
//===----------------------------------------------------------------------===//
#include "CompilerTool.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Families/TraceModel.h"
#include "fsdp/Support/AtomicFile.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Message.h"
#include "fsdp/Trace/Summary.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;
using namespace fsdp;
using llvm::StringRef;

static const char *const kOverview =
    R"(fsdp-trace: prints the graph of a model, its forward pass and loss, as nn text

A model is a name of the registry (--list), or the path of a Hugging Face
directory or config.json of a model of one of its families. --set changes any
field.)";

static const char *const kExamples = R"(
EXAMPLES:

  The known models:
    fsdp-trace --list

  The size and the parts of Llama 3.1 405B:
    fsdp-trace llama3_405b --summary

  A small Llama as text, one sequence of 128 tokens:
    fsdp-trace llama3_debug --seq 128 --set n_layers=2

  The same in bf16 mixed precision, written to a file:
    fsdp-trace llama3_debug --seq 128 --dtype bf16 -o llama.mlir

  The graph after a pass:
    fsdp-trace llama3_debug --seq 128 | fsdp-opt --nn-differentiate

  A model described by a Hugging Face directory:
    fsdp-trace Llama-3.2-1B --batch 2 --seq 4096 --summary

FIELDS (--set KEY=VALUE):

)";

static cl::OptionCategory category("Options");
static cl::opt<std::string>
    modelName(cl::Positional, cl::desc("<model | directory | config.json>"),
              cl::cat(category));
static cl::opt<int64_t>
    batch("batch", cl::value_desc("N"),
          cl::desc("Sequences (rows) per step, over all ranks"),
          cl::cat(category));
static cl::opt<int64_t> seqLen("seq", cl::value_desc("N"),
                               cl::desc("Tokens per sequence"),
                               cl::cat(category));
static cl::opt<ComputeType> computeType(
    "dtype", cl::desc("Compute type; parameters are kept in f32:"),
    cl::values(clEnumValN(ComputeType::F32, "f32", "32-bit (default)"),
               clEnumValN(ComputeType::BF16, "bf16",
                          "bfloat16; statistics and loss in f32")),
    cl::init(ComputeType::F32), cl::cat(category));
static cl::list<std::string> overrides("set", cl::value_desc("KEY=VALUE"),
                                       cl::desc("Change a field of the model"),
                                       cl::CommaSeparated, cl::cat(category));
static cl::opt<std::string>
    outputPath("o", cl::value_desc("FILE"),
               cl::desc("Write to this file instead of stdout"), cl::init("-"),
               cl::cat(category));
static cl::opt<bool>
    wantSummary("summary",
                cl::desc("Print counts and a table instead of the graph"),
                cl::cat(category));
static cl::opt<bool> wantList("list", cl::desc("Print the known models"),
                              cl::cat(category));
static cl::opt<bool> wantFamilies(
    "families",
    cl::desc("Print what is read of each family's files, as Markdown"),
    cl::cat(category));
static cl::opt<bool>
    wantLocations("locations", cl::desc("Print the module path of every op"),
                  cl::cat(category));

/// The text after the options: examples, and the fields of each kind of model.
static std::string helpTail() {
  std::string text = kExamples;
  llvm::raw_string_ostream os(text);
  auto print = [&](StringRef key, StringRef description) {
    os << llvm::formatv("    {0,-19} {1}\n", key, description);
  };
  os << "  of a decoder; which of them its family has, an error lists:\n";
  for (const auto &field : decoderFields())
    print(field.key, field.description);
  os << "  of odsc_mlp:\n";
  ModelSpec mlp = llvm::cantFail(findModel("odsc_mlp"));
  for (const ModelField &field : getModelFields(mlp))
    print(field.key, field.description);
  return text;
}

static void printList(llvm::raw_ostream &os) {
  StringRef group;
  for (const RegisteredModel &model : getRegisteredModels()) {
    if (model.group != group)
      os << (group.empty() ? "" : "\n") << model.group << ":\n";
    group = model.group;
    os << llvm::formatv("  {0,-14} {1}\n", model.spec.name, model.description);
  }
}

static llvm::Error applyOverrides(ModelSpec &spec) {
  for (StringRef assignment : overrides) {
    auto [key, value] = assignment.split('=');
    if (key.size() == assignment.size())
      return llvm::createStringError("--set takes KEY=VALUE, not '" +
                                     assignment + "'");
    if (llvm::Error error = setModelField(spec, key, value))
      return error;
  }
  return llvm::Error::success();
}

/// Sizes given on the command line must make sense; left out, they are 0.
static llvm::Error verifySizes(const ModelSpec &spec) {
  if (batch.getNumOccurrences() && batch < 1)
    return llvm::createStringError("--batch must be at least 1");
  if (!seqLen.getNumOccurrences())
    return llvm::Error::success();
  if (std::holds_alternative<MlpConfig>(spec.config))
    return llvm::createStringError("--seq: " + spec.name + " has no sequences");
  if (seqLen < 1)
    return llvm::createStringError("--seq must be at least 1");
  return llvm::Error::success();
}

/// Makes the traced f32 graph compute in --dtype.
static bool setPrecision(mlir::ModuleOp module) {
  PrecisionOptions options;
  options.computeDtype = computeType;
  mlir::PassManager passes(module.getContext(),
                           mlir::ModuleOp::getOperationName());
  passes.addPass(createPrecision(options));
  return mlir::succeeded(passes.run(module));
}

static llvm::Error printModel(llvm::raw_ostream &os) {
  if (modelName.empty())
    return llvm::createStringError(
        "which model? See --list, or --help for examples");
  llvm::Expected<ModelSpec> spec = findModel(modelName);
  if (!spec)
    return spec.takeError();
  for (const std::string &warning : spec->warnings)
    printMessage("fsdp-trace: warning", warning);
  if (llvm::Error error = applyOverrides(*spec))
    return error;
  if (llvm::Error error = verifySizes(*spec))
    return error;

  mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  auto module = traceModel(context, *spec, {batch, seqLen});
  if (!module)
    return module.takeError();
  if (mlir::failed(mlir::verify(**module)))
    return llvm::createStringError("the traced graph is not valid");
  if (!setPrecision(**module))
    return llvm::createStringError("the graph cannot be computed in the type "
                                   "that --dtype says");
  if (wantSummary) {
    printSummary(**module, os);
    return llvm::Error::success();
  }
  mlir::OpPrintingFlags flags;
  flags.enableDebugInfo(wantLocations);
  flags.printNameLocAsPrefix();
  (*module)->print(os, flags);
  os << "\n";
  return llvm::Error::success();
}

static llvm::Error run() {
  // The text is complete before a file is touched, and a file appears under
  // its name when it is complete.
  std::string text;
  llvm::raw_string_ostream os(text);
  if (wantList)
    printList(os);
  else if (wantFamilies)
    os << checkpoint::familyReference();
  else if (llvm::Error error = printModel(os))
    return error;
  try {
    writeFileAtomically(outputPath, text);
  } catch (const fsdp::Error &error) {
    return llvm::createStringError(error.what());
  }
  return llvm::Error::success();
}

int main(int argc, char **argv) {
  CompilerTool tool(argc, argv, "fsdp-trace");
  cl::HideUnrelatedOptions(category);
  std::string tail = helpTail();
  cl::extrahelp extra(tail);
  CompilerTool::checkOptions(argc, argv);
  cl::ParseCommandLineOptions(argc, argv, kOverview);
  if (llvm::Error error = run()) {
    CompilerTool::printError(llvm::toString(std::move(error)));
    return 1;
  }
  return 0;
}
