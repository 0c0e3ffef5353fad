//===- WindowConfig.cpp - Keys of config.json about windows ---------------===//
//
// sliding_window is how many keys a query sees, layer_types which layers it is
// about. Where a file lists none, the family's rule says so.
//
//===----------------------------------------------------------------------===//
#include "ConfigMembers.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;
using nlohmann::ordered_json;

static constexpr const char *kSliding = "sliding_attention";
static constexpr const char *kFull = "full_attention";

/// The window that layers have if they have one; 0: none.
static int64_t windowOf(const Members &members, const Family &family) {
  bool isUsed = family.windows != WindowRule::FromLayer ||
                (members.find("use_sliding_window") &&
                 members.boolean("use_sliding_window"));
  if (!isUsed)
    return 0;
  if (!members.isThere("sliding_window"))
    return family.defaultWindow;
  return members.find("sliding_window")
             ? members.integer("sliding_window", kMaxDimension)
             : 0;
}

/// The layers that layer_types says have a window of `window`.
static std::set<int64_t> listedLayers(const Members &members, int64_t layers,
                                      int64_t window) {
  const json &types = members.at("layer_types");
  if (!types.is_array() || types.size() != static_cast<size_t>(layers))
    throw Error(
        "expected " + std::to_string(layers) +
        " names, one for each layer, at " + members.path("layer_types") +
        (types.is_array() ? ", got " + std::to_string(types.size()) : ""));
  std::set<int64_t> all;
  for (int64_t layer = 0; layer < layers; ++layer) {
    const json &type = types[static_cast<size_t>(layer)];
    std::string at =
        members.path("layer_types") + "[" + std::to_string(layer) + "]";
    if (type != kSliding && type != kFull)
      throw Error(std::string("expected \"") + kFull + "\" or \"" + kSliding +
                  "\" at " + at + ", got " + printableLine(type.dump()));
    if (type == kSliding && window == 0)
      throw Error(std::string("expected \"") + kFull +
                  "\", as the file has no sliding_window in use, at " + at);
    if (type == kSliding)
      all.insert(layer);
  }
  return all;
}

/// The layers with a window of a file without layer_types.
static std::set<int64_t> layersByRule(const Members &members,
                                      const Family &family, int64_t layers) {
  switch (family.windows) {
  case WindowRule::None:
    return {};
  case WindowRule::AllLayers:
    return *windowLayers("all", layers);
  case WindowRule::Even:
    return *windowLayers("even", layers);
  case WindowRule::FromLayer: {
    // The default of transformers; 0 is allowed.
    int64_t first = 28;
    if (members.find("max_window_layers"))
      first = members.notNegative("max_window_layers") == 0
                  ? 0
                  : members.integer("max_window_layers", kMaxDimension);
    return *windowLayers("from " + std::to_string(first), layers);
  }
  }
  return {};
}

/// The shortest text that names `wanted` of so many layers, the family's own
/// first.
static std::string textOf(const std::set<int64_t> &wanted, int64_t layers,
                          const Family &family) {
  std::string list;
  for (int64_t layer : wanted)
    list += (list.empty() ? "" : " ") + std::to_string(layer);
  for (const std::string &text :
       {family.base.windowLayers, std::string("all"), std::string("even"),
        "from " + std::to_string(*wanted.begin())})
    if (windowLayers(text, layers) == wanted)
      return text;
  return list;
}

void checkpoint::readWindows(const Members &members, const Family &family,
                             ModelFields &fields) {
  if (family.windows == WindowRule::None)
    return;
  int64_t layers = std::stoll(fields.at("n_layers"));
  int64_t window = windowOf(members, family);
  std::set<int64_t> wanted = layersByRule(members, family, layers);
  if (members.find("layer_types")) {
    std::set<int64_t> listed = listedLayers(members, layers, window);
    if (family.windows == WindowRule::AllLayers && window && listed != wanted)
      throw Error(std::string("expected \"") + kSliding +
                  "\" for every layer, as the file has a sliding_window, at " +
                  members.path("layer_types"));
    wanted = listed;
  } else if (window == 0 && family.windows == WindowRule::Even) {
    throw Error("expected a number, as layers 0, 2, ... have a window, at " +
                members.path("sliding_window"));
  }
  bool isThere = window != 0 && !wanted.empty();
  fields["window"] = std::to_string(isThere ? window : 0);
  fields["window_layers"] =
      isThere ? textOf(wanted, layers, family) : family.base.windowLayers;
}

void checkpoint::writeWindows(const DecoderConfig &model, const Family &family,
                              std::map<std::string, ordered_json> &config) {
  if (family.windows == WindowRule::None)
    return;
  bool isThere = model.window != 0;
  config["sliding_window"] =
      isThere ? ordered_json(model.window) : ordered_json(nullptr);
  // transformers makes a mask of a window that no layer has.
  if (!isThere && family.windows == WindowRule::Even)
    config["sliding_window"] = family.defaultWindow;
  if (family.windows == WindowRule::AllLayers)
    return;
  std::set<int64_t> sliding =
      isThere ? *windowLayers(model.windowLayers, model.layers)
              : std::set<int64_t>();
  ordered_json types = ordered_json::array();
  for (int64_t layer = 0; layer < model.layers; ++layer)
    types.push_back(sliding.count(layer) ? kSliding : kFull);
  config["layer_types"] = types;
  if (family.windows == WindowRule::FromLayer) {
    config["use_sliding_window"] = isThere;
    config["max_window_layers"] =
        sliding.empty() ? model.layers : *sliding.begin();
  }
}
