//===- DcpNames.cpp - What torchtitan calls the tensors -------------------===//
#include "DcpNames.h"
#include "fsdp/Support/RangeNames.h"
#include "fsdp/Support/Text.h"
#include <string_view>

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

constexpr const char *kMoments[] = {range_name::kFirstMomentSuffix,
                                    range_name::kSecondMomentSuffix};

/// What lies beside the model: torchtitan's, and what it once was.
constexpr const char *kBeside[] = {"optimizer.",    "state.",
                                   "param_groups.", "lr_scheduler.",
                                   "dataloader.",   "train_state."};
constexpr char kModel[] = "model.";

bool beginsWith(std::string_view text, std::string_view begin) {
  return text.substr(0, begin.size()) == begin;
}

bool isBeside(std::string_view name) {
  for (const char *prefix : kBeside)
    if (beginsWith(name, prefix))
      return true;
  return false;
}

/// "NAME.exp_avg" of a state of the optimizer; empty: the name is of no state.
std::string_view stateName(std::string_view name) {
  constexpr std::string_view kOptimizer = "optimizer.", kState = "state.";
  if (beginsWith(name, kOptimizer))
    name.remove_prefix(kOptimizer.size());
  return beginsWith(name, kState) ? name.substr(kState.size()) : "";
}

} // namespace

std::string checkpoint::modelPrefix(const std::vector<DcpItem> &items) {
  bool any = false;
  for (const DcpItem &item : items) {
    if (isBeside(item.name))
      continue;
    if (!beginsWith(item.name, kModel))
      return "";
    any = true;
  }
  return any ? kModel : "";
}

std::optional<OurName> checkpoint::ourNameOf(const std::string &name,
                                             const std::string &modelPrefix) {
  if (!isBeside(name))
    return OurName{name.substr(modelPrefix.size()), rt::RangeRole::Parameter};
  std::string_view state = stateName(name);
  for (const char *moment : kMoments)
    if (endsWith(state, moment))
      return OurName{std::string(state), rt::RangeRole::State};
  return std::nullopt;
}

bool checkpoint::isUpdateCount(const std::string &name) {
  return endsWith(stateName(name), ".step");
}

std::vector<std::string> checkpoint::dcpPathOf(const std::string &name) {
  for (const char *moment : kMoments)
    if (endsWith(name, moment))
      return {"optimizer", "state." + name};
  return {name};
}
