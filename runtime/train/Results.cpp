//===- Results.cpp - What a program computed ------------------------------===//
#include "Results.h"
#include "fsdp/Support/Half.h"
#include "fsdp/Support/Text.h"
#include "runtime/report/Metrics.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <zlib.h>

using namespace fsdp;
using namespace fsdp::rt;

template <typename T> static T loadAt(const std::byte *data, int64_t index) {
  T value;
  std::memcpy(&value, data + index * int64_t{sizeof(T)}, sizeof value);
  return value;
}

double fsdp::elementAt(DType type, const std::byte *data, int64_t index) {
  switch (type) {
  case DType::F32:
    return loadAt<float>(data, index);
  case DType::BF16:
    return bf16ToFloat(loadAt<uint16_t>(data, index));
  case DType::F64:
    return loadAt<double>(data, index);
  case DType::I8:
    return loadAt<int8_t>(data, index);
  case DType::I32:
    return loadAt<int32_t>(data, index);
  case DType::I64:
    return static_cast<double>(loadAt<int64_t>(data, index));
  case DType::F16:
    return f16ToFloat(loadAt<uint16_t>(data, index));
  }
  return 0;
}

std::string fsdp::typeText(DType type, const std::vector<int64_t> &shape) {
  std::string text = dtypeName(type);
  std::transform(text.begin(), text.end(), text.begin(), ::tolower);
  const char *before = " ";
  for (int64_t size : shape) {
    text += before + std::to_string(size);
    before = "x";
  }
  return text;
}

namespace {

/// What is said of a range, from its bytes in pieces.
class Description {
public:
  explicit Description(const RangeInfo &range) : range(range) {}

  void add(const std::byte *piece, uint64_t bytes);
  std::string text() const;

private:
  std::string summary() const;

  const RangeInfo &range;
  double first = 0, least = INFINITY, largest = -INFINITY, sum = 0;
  int64_t seen = 0, finite = 0;
  uLong checksum = crc32_z(0, nullptr, 0);
};

} // namespace

void Description::add(const std::byte *piece, uint64_t bytes) {
  checksum = crc32_z(checksum, reinterpret_cast<const Bytef *>(piece), bytes);
  auto count = static_cast<int64_t>(bytes) / sizeOf(range.dtype);
  for (int64_t i = 0; i < count; ++i) {
    double value = elementAt(range.dtype, piece, i);
    if (seen++ == 0)
      first = value;
    if (!std::isfinite(value))
      continue;
    least = std::min(least, value);
    largest = std::max(largest, value);
    sum += value;
    ++finite;
  }
}

/// Least, largest and mean of the finite elements, and how many are not.
std::string Description::summary() const {
  std::string text;
  if (finite > 0)
    text = format("min %.6g, max %.6g, mean %.6g, ", least, largest,
                  sum / static_cast<double>(finite));
  if (finite != seen)
    text += grouped(seen - finite) + " not finite, ";
  return text;
}

std::string Description::text() const {
  std::string text =
      range.name + ": " + typeText(range.dtype, range.shape) + ": ";
  if (range.elements() == 1)
    return text + format("%.9g", first);
  text += summary() + format("crc32 %08lx", checksum);
  if (range.shape != range.full)
    text += ", a part of the whole";
  return text;
}

std::string fsdp::describeRange(const RangeInfo &range, const std::byte *data) {
  Description description(range);
  description.add(data, range.bytes);
  return description.text();
}

std::string fsdp::describeResults(const Rank &rank,
                                  const std::string &program) {
  const Manifest &manifest = rank.manifest();
  const ProgramInfo &info = manifest.programs[manifest.findProgram(program)];
  std::string text = format("program '%s', rank %d of %d:\n", program.c_str(),
                            rank.world().rank, rank.world().size);
  for (const std::string &name : info.outputs) {
    const RangeInfo &range = *manifest.findRange(name);
    Description description(range);
    rank.read(range, [&](const std::byte *piece, uint64_t, uint64_t bytes) {
      description.add(piece, bytes);
    });
    text += "  " + description.text() + "\n";
  }
  return text;
}
