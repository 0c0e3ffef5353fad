//===- DcpNames.h - What torchtitan calls the tensors -----------*- C++ -*-===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_DCPNAMES_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_DCPNAMES_H

#include "DcpMetadata.h"
#include "fsdp/Artifact/RangeRole.h"
#include <optional>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

inline constexpr char kDcpMetadata[] = ".metadata";
inline constexpr char kDcpStep[] = "train_state.step";

struct OurName {
  std::string name;
  rt::RangeRole role = rt::RangeRole::Parameter;
};

/// What all parameters of a checkpoint have before their names: "model." where
/// the model was saved as an entry of its own, otherwise nothing.
std::string modelPrefix(const std::vector<DcpItem> &items);

/// The name and role of a tensor of a checkpoint here; unset: it is no
/// parameter and no moment.
std::optional<OurName> ourNameOf(const std::string &name,
                                 const std::string &modelPrefix);

/// Whether an item says how many updates the optimizer has made of a parameter.
bool isUpdateCount(const std::string &name);

/// The same the other way: the dictionaries and the key.
std::vector<std::string> dcpPathOf(const std::string &name);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_DCPNAMES_H
