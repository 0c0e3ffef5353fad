//===- tokens.cpp - Any bytes as what describes token ids -----------------===//
//
// The first byte says what the others are: the description of a token folder
// whose files are those of the seed, an index of Megatron beside 64 bytes of
// ids, a file of llm.c, a table of tokens. What is accepted can be read.
//
//===----------------------------------------------------------------------===//
#include "Fuzz.h"
#include "fsdp/Data/TokenDataset.h"
#include <filesystem>
#include <fstream>

using namespace fsdp;
using namespace fsdp::rt;
using namespace fsdp::test;

namespace {

/// A folder in memory, where there is one, for as long as the process.
struct Folder {
  Folder() {
    bool inMemory = std::filesystem::is_directory("/dev/shm");
    std::string pattern =
        std::string(inMemory ? "/dev/shm" : "/tmp") + "/fuzz-tokens-XXXXXX";
    path = mkdtemp(pattern.data());
    write("ids.bin", std::string(64, '\1'));
    write("mask.bin", std::string(32, '\1'));
    write("documents.bin", std::string(8, '\0') + '\x10' + std::string(7, '\0'));
    write("index.bin", std::string(64, '\1'));
  }
  ~Folder() { std::filesystem::remove_all(path); }

  void write(const std::string &name, const std::string &bytes) const {
    std::ofstream(path + "/" + name, std::ios::binary) << bytes;
  }

  std::string path;
};

} // namespace

static void use(TokenSource source, Packing packing) {
  constexpr int64_t kSequence = 4;
  bool hasDocuments = source.documents != nullptr;
  TokenDataset data(std::move(source), 0.3, kSequence, 0, packing);
  require(data.trainTokens() > 0 && data.heldOutTokens() >= 0);
  require(data.packedShape() || data.trainTokens() > kSequence);
  int32_t tokens[kSequence], targets[kSequence], starts[kSequence];
  Batch batch{1, kSequence, tokens, targets, starts};
  for (WindowOrder order : {WindowOrder::Shuffled, WindowOrder::Documents}) {
    data.setOrder(hasDocuments ? order : WindowOrder::Random);
    for (int64_t step = 0; step < 3; ++step)
      data.sampleTraining(1, step, {}, batch);
  }
  data.fillHeldOut(0, {}, batch);
  data.countLabels(0, data.trainTokens());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Folder folder;
  static MemoryFile file;
  if (size == 0)
    return 0;
  std::string rest = textOf(data + 1, size - 1);
  constexpr Packing kPackings[] = {Packing::Wrapped, Packing::Padded,
                                   Packing::BestFit};
  Packing packing = kPackings[size % std::size(kPackings)];
  useOrRefuse([&] {
    switch (data[0]) {
    case 'd':
      folder.write("tokens.json", rest);
      return use(openTokenFolder(folder.path), packing);
    case 'm':
      folder.write("index.idx", rest);
      return use(openMegatron(folder.path + "/index"), packing);
    case 'l':
      return use(openLlmc(file.write(data + 1, size - 1)), Packing::Wrapped);
    default: {
      TokenTable table(file.write(data + 1, size - 1));
      table.decode({0, 1, 2, -1, 1 << 30});
    }
    }
  });
  return 0;
}
