//===- Layouts.cpp - Tensors of a model, and of its files -----------------===//
#include "fsdp/Families/Families.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::checkpoint;
using rt::ModelInfo;

//===----------------------------------------------------------------------===//
// Tensors of a model
//===----------------------------------------------------------------------===//

static std::string withLayer(const char *name, int64_t layer) {
  std::string text = name;
  size_t star = text.find('*');
  return star == std::string::npos
             ? text
             : text.replace(star, 1, std::to_string(layer));
}

static bool isOfLayer(const FamilyTensor &tensor) {
  return std::string(tensor.ours).find('*') != std::string::npos;
}

std::vector<ModelTensor> checkpoint::tensorsOf(const Family &family,
                                               const ModelInfo &model) {
  Fields fields(model);
  std::vector<ModelTensor> all;
  auto add = [&](const FamilyTensor &kind, int64_t layer) {
    if (kind.when && !fields.boolean(kind.when))
      return;
    ModelTensor tensor{withLayer(kind.ours, layer),
                       withLayer(kind.theirs, layer),
                       withLayer(kind.apart ? kind.apart : "", layer),
                       {},
                       &kind};
    for (const char *size : kind.shape)
      tensor.shape.push_back(fields.product(size));
    all.push_back(std::move(tensor));
  };
  int64_t layers = fields.integer("n_layers");
  if (layers > kMaxLayers)
    throw Error("the model has " + std::to_string(layers) +
                " layers, more than " + std::to_string(kMaxLayers));
  auto next = family.tensors.begin(), end = family.tensors.end();
  while (next != end) {
    auto last = std::find_if_not(next, end, isOfLayer);
    for (int64_t layer = 0; layer < layers && last != next; ++layer)
      for (auto kind = next; kind != last; ++kind)
        add(*kind, layer);
    if (last != end)
      add(*last++, 0);
    next = last;
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Tensors of files
//===----------------------------------------------------------------------===//

/// As files have it. Rows of several tensors are those of one.
static std::vector<int64_t> shapeInFile(const FileTensor &tensor) {
  std::vector<int64_t> shape = tensor.parts.front().shape;
  bool isTransposed = tensor.kind().isTransposed;
  CheckedSize rows = 0;
  for (const ModelTensor &part : tensor.parts) {
    bool isAlike =
        !part.shape.empty() && part.shape.size() == shape.size() &&
        std::equal(shape.begin() + 1, shape.end(), part.shape.begin() + 1) &&
        part.kind->isTransposed == isTransposed;
    if (!isAlike)
      throw Error("'" + part.ours + "' and '" + tensor.parts.front().ours +
                  "' cannot be rows of one tensor, '" + tensor.name + "'");
    rows += part.shape[0];
  }
  if (isTransposed && shape.size() != 2)
    throw Error("'" + tensor.name + "' is transposed and has " +
                std::to_string(shape.size()) + " dimension(s) instead of 2");
  shape[0] = rows.saturated();
  if (isTransposed)
    std::swap(shape[0], shape[1]);
  if (!productOf(shape).fits(kMaxTensorBytes))
    throw Error("a size of the model is beyond 2^56: '" + tensor.name + "'");
  return shape;
}

std::vector<FileTensor> checkpoint::fileTensorsOf(const Family &family,
                                                  const ModelInfo &model) {
  std::vector<FileTensor> all;
  for (ModelTensor &tensor : tensorsOf(family, model)) {
    if (all.empty() || all.back().name != tensor.theirs)
      all.push_back({tensor.theirs, {}, {}});
    all.back().parts.push_back(std::move(tensor));
  }
  for (FileTensor &tensor : all)
    tensor.shape = shapeInFile(tensor);
  return all;
}

//===----------------------------------------------------------------------===//
// Rotary rows
//===----------------------------------------------------------------------===//

bool checkpoint::hasRotaryRows(const Family &family) {
  return std::any_of(family.tensors.begin(), family.tensors.end(),
                     [](const FamilyTensor &tensor) { return tensor.rotary; });
}

bool checkpoint::rotatesHalves(const ModelInfo &model) {
  return Fields(model).boolean("rope_halves");
}

RotaryRows checkpoint::rotaryRowsOf(const ModelTensor &tensor,
                                    const ModelInfo &model) {
  Fields fields(model);
  RotaryRows rows{fields.product("head_dim"),
                  fields.product(tensor.kind->rotary)};
  if (rows.part == 0)
    rows.part = rows.headDim;
  if (rows.part < 2 || rows.part % 2 != 0)
    throw Error("a head of " + std::to_string(rows.part) +
                " elements has no rotary pairs");
  if (rows.part > rows.headDim)
    throw Error("a head of " + std::to_string(rows.headDim) +
                " elements has not the " + std::to_string(rows.part) +
                " rotary ones that the model's fields say");
  if (tensor.shape.empty() || tensor.shape[0] % rows.headDim != 0)
    throw Error("the rows of '" + tensor.ours + "' are no heads of " +
                std::to_string(rows.headDim) + " elements");
  return rows;
}

int64_t checkpoint::rotaryRow(int64_t i, RotaryRows rows, bool halves) {
  int64_t head = i / rows.headDim * rows.headDim, row = i % rows.headDim;
  int64_t half = rows.part / 2;
  if (row >= rows.part)
    return i;
  return head +
         (halves ? row % 2 * half + row / 2 : row % half * 2 + row / half);
}
