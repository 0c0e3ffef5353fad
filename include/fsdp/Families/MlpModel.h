//===- MlpModel.h - The MLP of FSDP tutorials -------------------*- C++ -*-===//
//
// `layers` x (Linear + ReLU) of one width with a mean squared error: nothing
// but big matmuls, which makes memory and overlap easy to reason about.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_FAMILIES_MLPMODEL_H
#define FSDP_FAMILIES_MLPMODEL_H

#include "fsdp/Families/MlpConfig.h"
#include "fsdp/Trace/Module.h"

namespace fsdp::model {

/// x, y [batch, dim] in f32 -> loss, prediction [batch, dim].
class Mlp : public Model {
public:
  Mlp(const MlpConfig &config, int64_t batch);
  std::vector<NamedType> inputs(mlir::MLIRContext *context) const override;
  std::vector<NamedTensor>
  forward(llvm::ArrayRef<Tensor> inputs) const override;

private:
  int64_t batch, dim;
  ModuleList<Linear> layers;
};

} // namespace fsdp::model

#endif // FSDP_FAMILIES_MLPMODEL_H
