//===- Adapt.cpp - Tensors of a store as an artifact has them -------------===//
#include "TensorStore.h"
#include "fsdp/Families/Families.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/RangeNames.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

void TensorStore::adaptTo(const rt::ModelInfo &artifact) {
  if (!about && !halvesOfFormat)
    return;
  std::string difference = about ? modelDifference(*about, artifact) : "";
  if (!difference.empty())
    throw Error("'" + origin +
                "' is of another model than the artifact: " + difference);
  const Family *family = findFamily(artifact.family);
  if (!family || !hasRotaryRows(*family))
    return;
  bool halves = about ? rotatesHalves(*about) : *halvesOfFormat;
  bool isSame = halves == rotatesHalves(artifact);
  for (const ModelTensor &tensor : tensorsOf(*family, artifact)) {
    if (!tensor.kind->rotary)
      continue;
    RotaryRows rows = rotaryRowsOf(tensor, artifact);
    // States of the optimizer lie as their parameters do.
    for (const char *suffix : {"", range_name::kFirstMomentSuffix,
                               range_name::kSecondMomentSuffix}) {
      auto *found = const_cast<StoredTensor *>(find(tensor.ours + suffix));
      if (!found)
        continue;
      // Whoever loads says it of a store without a model, with all the rest.
      if (found->shape != tensor.shape && !about)
        continue;
      if (found->shape != tensor.shape)
        throw Error("'" + found->name + "' in '" + origin +
                    "' has not the shape that the model's fields say");
      found->rowInFile = nullptr;
      if (!isSame)
        found->rowInFile = [rows, halves](int64_t i) {
          return rotaryRow(i, rows, halves);
        };
    }
  }
}
