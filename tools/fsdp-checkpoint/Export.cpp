//===- Export.cpp - fsdp-checkpoint export --------------------------------===//
#include "Commands.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/huggingface/HuggingFace.h"
#include <cstdio>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {
struct ExportArguments {
  std::string from, to, dtype = "float32";
  ExportOptions options;
};
} // namespace

static int runExport(const ExportArguments &chosen) {
  ExportOptions options = chosen.options;
  options.dtype = weightType(chosen.dtype);
  auto store = openTensorStore(chosen.from);
  ExportSummary summary = exportHuggingFace(*store, chosen.to, options);
  std::printf("%s: %lld tensors, %lld parameters, %lld bytes of %s in %zu "
              "file%s\n",
              chosen.to.c_str(), static_cast<long long>(summary.tensors),
              static_cast<long long>(summary.parameters),
              static_cast<long long>(summary.bytes), chosen.dtype.c_str(),
              summary.files, summary.files == 1 ? "" : "s");
  return 0;
}

std::function<int()> checkpoint::declareExport(CLI::App &app) {
  auto chosen = std::make_shared<ExportArguments>();
  app.add_option("CHECKPOINT", chosen->from, kPathHelp)->required();
  app.add_option("DIR", chosen->to, "new directory")->required();
  app.add_option("--dtype", chosen->dtype, "type of the written weights")
      ->check(CLI::IsMember({"float32", "bfloat16", "float16"}))
      ->capture_default_str();
  app.add_option("--shard-size", chosen->options.shardBytes,
                 "size of a file, at most: 5GB, 500MB, 2GiB or bytes; a larger "
                 "tensor gets a file of its own")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/true))
      // Before it, which takes a negative number for a huge one.
      ->transform([](const std::string &size) {
        if (!size.empty() && size.front() == '-')
          throw CLI::ValidationError("a size is not negative");
        return size;
      })
      ->check([](const std::string &bytes) {
        return bytes == "0" ? std::string("a file has room for a byte or more")
                            : std::string();
      })
      ->default_str("5GB");
  app.add_option("--assets", chosen->options.assets,
                 "directory from which tokenizer files and ids of special "
                 "tokens are copied");
  app.footer("Writes what transformers loads with from_pretrained:\n\n"
             "  fsdp-checkpoint export outputs/checkpoint my-llama --dtype "
             "bfloat16 --assets Llama-3.2-1B");
  return [chosen] { return runExport(*chosen); };
}
