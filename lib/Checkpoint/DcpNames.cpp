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
    return OurName{name.substr(modelPrefix.size()), "parameter"};
  std::string_view state = name;
  if (beginsWith(state, "optimizer."))
    state.remove_prefix(std::string_view("optimizer.").size());
  if (!beginsWith(state, "state."))
    return std::nullopt;
  state.remove_prefix(std::string_view("state.").size());
  for (const char *moment : kMoments)
    if (endsWith(state, moment))
      return OurName{std::string(state), "state"};
  return std::nullopt;
}

std::vector<std::string> checkpoint::dcpPathOf(const std::string &name) {
  for (const char *moment : kMoments)
    if (endsWith(name, moment))
      return {"optimizer", "state." + name};
  return {name};
}
