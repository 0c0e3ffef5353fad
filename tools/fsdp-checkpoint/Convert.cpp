//===- Convert.cpp - fsdp-checkpoint convert ------------------------------===//
#include "Commands.h"
#include "runtime/checkpoint/Open.h"
#include "runtime/checkpoint/dcp/Dcp.h"
#include <cstdio>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

/// What can be written.
struct Format {
  const char *name;
  void (*write)(TensorStore &store, const std::string &folder);
};

constexpr Format kFormats[] = {{"dcp", writeDcp}};

struct ConvertArguments {
  std::string path, format, folder;
};

} // namespace

static int convert(const ConvertArguments &options) {
  auto store = openTensorStore(options.path);
  for (const Format &format : kFormats)
    if (options.format == format.name)
      format.write(*store, options.folder);
  int64_t bytes = 0;
  for (const StoredTensor &tensor : store->tensors())
    bytes += bytesOf(tensor);
  std::printf("%s: %zu tensors of %lld bytes\n", options.folder.c_str(),
              store->tensors().size(), static_cast<long long>(bytes));
  if (size_t count = store->leftOut().size())
    std::printf(
        "%zu entries that are not read are not written (fsdp-checkpoint "
        "inspect says what they are)\n",
        count);
  return 0;
}

std::function<int()> checkpoint::declareConvert(CLI::App &app) {
  auto options = std::make_shared<ConvertArguments>();
  app.add_option("CHECKPOINT", options->path, kPathHelp)->required();
  app.add_option("--to", options->format,
                 "dcp: torch.distributed.checkpoint, with torchtitan's names")
      ->required()
      ->check(CLI::IsMember({"dcp"}));
  app.add_option("DIR", options->folder, "new directory")->required();
  return [options] { return convert(*options); };
}
