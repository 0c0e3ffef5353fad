//===- CalibratedShape.cpp - Shapes to measure, as text -------------------===//
#include "CalibratedShape.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace fsdp;
using namespace fsdp::rt;

static constexpr const char *kKinds[] = {"product", "attention"};

std::string rt::textOf(const CalibratedShape &shape) {
  std::string text = std::string(kKinds[shape.kind]) + "," +
                     spelled(shape.type) + "," + spelled(shape.layout);
  for (int64_t size : shape.sizes)
    text += "," + std::to_string(size);
  return text;
}

CalibratedShape rt::readShape(const std::string &text) {
  std::vector<std::string> words;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  CalibratedShape shape;
  bool isGood = words.size() == 6;
  if (isGood) {
    isGood = words[0] == kKinds[0] || words[0] == kKinds[1];
    shape.kind = words[0] == kKinds[1] ? CalibratedShape::Attention
                                       : CalibratedShape::Product;
    auto type = readSpelling<MathType>(words[1]);
    auto layout = readSpelling<Layout>(words[2]);
    isGood &= type && *type != MathType::FP8 && layout;
    shape.type = type.value_or(MathType::F32);
    shape.layout = layout.value_or(Layout::NN);
  }
  for (size_t i = 0; isGood && i < shape.sizes.size(); ++i) {
    char *end = nullptr;
    shape.sizes[i] = std::strtoll(words[i + 3].c_str(), &end, 10);
    isGood = *end == 0 && shape.sizes[i] > 0 && shape.sizes[i] <= 1 << 24;
  }
  if (!isGood)
    throw Error("'" + printableLine(text) +
                "' is no shape: expected one such as product,f32,nt,8,8,8");
  return shape;
}
