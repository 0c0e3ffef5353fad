//===- ByteDataset.cpp - Text as bytes ------------------------------------===//
#include "fsdp/Data/Dataset.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;

static const std::string &pathOfText(const std::string &path) {
  if (path.empty())
    throw Error("training.dataset_path is not set; name the text file");
  return path;
}

ByteDataset::ByteDataset(const std::string &path, double fraction,
                         int64_t sequence)
    : file(pathOfText(path), "the text") {
  int64_t size = file.size();
  split(size, fraction);
  if (trainTokens() < sequence + 1)
    throw Error("the text '" + path + "' is too short: it has " +
                std::to_string(size) + " bytes, " +
                std::to_string(trainTokens()) +
                " of them for training, and a window needs " +
                std::to_string(sequence + 1));
}

DataIdentity ByteDataset::identity() const {
  return {file.size(), trainTokens(), file.checksum(), std::nullopt};
}

std::string ByteDataset::trainText(int64_t most) const {
  return file.read(0, std::min(most, trainTokens()));
}

std::string ByteDataset::heldOutText(int64_t most) const {
  return file.read(trainTokens(), std::min(most, heldOutTokens()));
}

/// A byte is a number from 0 to 255, whatever the sign of char.
static int32_t tokenOf(char byte) { return static_cast<unsigned char>(byte); }

void ByteDataset::readWindow(int64_t first, int64_t count, int32_t *tokens,
                             int32_t *targets) const {
  std::string window = file.read(first, count + 1);
  const char *bytes = window.data();
  for (int64_t i = 0; i < count; ++i) {
    tokens[i] = tokenOf(bytes[i]);
    targets[i] = tokenOf(bytes[i + 1]);
  }
}
