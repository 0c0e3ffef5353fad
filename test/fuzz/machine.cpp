//===- machine.cpp - Any text as a machine or a profile -------------------===//
#include "Fuzz.h"
#include "fsdp/Machine/CostModel.h"

using namespace fsdp;
using namespace fsdp::test;

/// Every group and size has a time that does not fall, or an error.
static void time(const CostModel &model) {
  for (GroupShape shape : {GroupShape{2, 1}, {3, 1}, {4, 2}, {1, 7}})
    for (auto kind :
         {rt::CollectiveKind::AllGather, rt::CollectiveKind::ReduceScatter,
          rt::CollectiveKind::AllReduce})
      for (Sums sums : {Sums::Exact, Sums::ExactTwoLevels, Sums::Fast})
        useOrRefuse([&] {
          Duration before;
          for (int64_t bytes = 1; bytes < int64_t(1) << 57; bytes *= 5) {
            Duration now = model.collective({kind, bytes, shape, sums, 2});
            require(before <= now);
            before = now;
          }
        });
  for (MathType type : {MathType::F32, MathType::BF16, MathType::FP8})
    useOrRefuse([&] {
      for (Layout layout : {Layout::NN, Layout::NT, Layout::TN, Layout::TT})
        require(Duration() <= model.matmul(1, 1000, 30, 70000, type, layout));
      for (AttentionPass pass :
           {AttentionPass::Forward, AttentionPass::Backward})
        require(Duration() <= model.attention(1e9, type, pass, {128, 1, 64}));
    });
  useOrRefuse([&] { model.hostCopy(1 << 20); });
  for (const char *kernel : {kPointwiseKernel, kCopyKernel, "embedding"}) {
    Duration before;
    for (int64_t bytes = 1; bytes < int64_t(1) << 57; bytes *= 5) {
      Duration now = model.memory(bytes, kernel);
      require(before <= now);
      before = now;
    }
  }
  model.besideCompute(model.launch());
  model.beside(rt::Stream::Gather, model.launch());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string text = textOf(data, size);
  SoftwareProfile profile;
  useOrRefuse([&] {
    SoftwareProfile read = readProfile(text, "fuzz.toml");
    require(toToml(readProfile(toToml(read), "again.toml")) == toToml(read));
    profile = read;
  });
  useOrRefuse([&] {
    Machine machine = readMachine(text, "fuzz.toml");
    require(toToml(readMachine(toToml(machine), "again.toml")) ==
            toToml(machine));
    time(CostModel(machine, profile));
  });
  return 0;
}
