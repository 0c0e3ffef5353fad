//===- Inspect.cpp - fsdp-checkpoint inspect ------------------------------===//
#include "Commands.h"
#include "fsdp/Checkpoint/TensorStore.h"
#include <cstdio>

using namespace fsdp;
using namespace fsdp::checkpoint;

std::function<int()> checkpoint::declareInspect(CLI::App &app) {
  auto path = std::make_shared<std::string>();
  app.add_option("PATH", *path, "checkpoint")->required();
  return [path] {
    auto store = openTensorStore(*path);
    for (const StoredTensor &tensor : store->tensors())
      std::printf("%s\n", tensor.name.c_str());
    return 0;
  };
}
