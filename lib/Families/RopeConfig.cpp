//===- RopeConfig.cpp - Rotary keys of config.json ------------------------===//
//
// Rotary scaling stands in "rope_scaling" up to version 4 of transformers and
// in "rope_parameters", together with rope_theta, from version 5. Where a file
// has both, version 5 takes the former, and so does this reader.
//
//===----------------------------------------------------------------------===//
#include "ConfigMembers.h"
#include "fsdp/Support/Error.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;
using nlohmann::ordered_json;

static constexpr const char *kOriginal = "original_max_position_embeddings";
static constexpr const char *kPartial = "partial_rotary_factor";

/// What files call the type of an object of rotary keys; before "rope_type" the
/// key was "type".
static std::string typeInFile(const Members &rope) {
  const char *key = rope.find("rope_type") ? "rope_type" : "type";
  return rope.find(key) ? rope.string(key) : "default";
}

/// One of kRopeTypes, or "default".
static std::string ropeType(const Members &rope, const Family &family) {
  std::string type = typeInFile(rope), known;
  for (const auto &[theirs, ours] : family.ropeTypes) {
    if (type == theirs)
      return ours;
    known += (known.empty() ? "\"" : ", \"") + std::string(theirs) + "\"";
  }
  throw Error("expected one of " + known + " at " + rope.path("rope_type") +
              ", got " + json(type).dump());
}

/// The keys of rope_scaling and rope_parameters for a type.
static std::vector<ConfigKey> ropeKeys(const std::string &type,
                                       const Family &family) {
  std::vector<ConfigKey> keys = {
      {"rope_type", KeyRole::Used},
      {"type", KeyRole::Used},
      {"rope_theta", KeyRole::Used},
      {"mrope_section", KeyRole::Fixed, {"null"}, "positions have one axis"}};
  auto partial = std::find_if(
      family.keys.begin(), family.keys.end(),
      [](const ConfigKey &key) { return std::string(key.name) == kPartial; });
  keys.push_back(*partial);
  auto use = [&](std::vector<const char *> names) {
    for (const char *name : names)
      keys.push_back({name, KeyRole::Used});
  };
  if (type != "default")
    use({"factor", kOriginal});
  if (type == "llama3")
    use({"low_freq_factor", "high_freq_factor"});
  if (type == "yarn")
    use({"attention_factor", "beta_fast", "beta_slow", "mscale",
         "mscale_all_dim", "truncate"});
  if (type == "longrope")
    use({"attention_factor", "short_factor", "long_factor"});
  return keys;
}

namespace {
/// Reads the object of rotary keys that counts, of a type that stretches.
class StretchReader {
public:
  StretchReader(const Members &members, const Members &rope,
                ModelFields &fields)
      : members(members), rope(rope), fields(fields) {}

  void read(const std::string &type, size_t pairs) {
    fields["rope_type"] = type;
    if (type == "linear")
      fields["rope_factor"] = numberText(rope.positive("factor"));
    if (type == "llama3")
      readLlama();
    if (type == "yarn")
      readYarn();
    if (type == "longrope")
      readLongrope(pairs);
  }

private:
  /// The length before the stretch; one beside the rotary keys counts.
  int64_t original() const {
    const Members &holder = members.find(kOriginal) ? members : rope;
    return holder.integer(kOriginal, kMaxDimension);
  }

  void readLlama() {
    double factor = rope.positive("factor");
    double low = rope.positive("low_freq_factor");
    double high = rope.positive("high_freq_factor");
    if (factor != 1 && high <= low)
      throw Error("expected more than low_freq_factor at " +
                  rope.path("high_freq_factor"));
    fields["rope_factor"] = numberText(factor);
    fields["rope_low"] = numberText(low);
    fields["rope_high"] = numberText(high);
    fields["rope_original"] = std::to_string(original());
  }

  /// Factor and original length; either follows from the longest sequence where
  /// it is left out.
  void readLengths() {
    // A family that has the length among its fields has it from there.
    int64_t longest = std::stoll(fields.at("max_seq_len"));
    int64_t before =
        fields.count("rope_original") ? std::stoll(fields.at("rope_original"))
        : members.find(kOriginal) || rope.find(kOriginal) ? original()
                                                          : longest;
    double factor = rope.find("factor") ? rope.positive("factor")
                                        : static_cast<double>(longest) /
                                              static_cast<double>(before);
    fields["rope_original"] = std::to_string(before);
    fields["rope_factor"] = numberText(factor);
    readIf("attention_factor", "rope_scale");
  }

  void readIf(const char *key, const char *field) {
    if (rope.find(key) && rope.notNegative(key) != 0)
      fields[field] = numberText(rope.number(key));
  }

  void readYarn() {
    readLengths();
    readIf("beta_fast", "rope_beta_fast");
    readIf("beta_slow", "rope_beta_slow");
    readIf("mscale", "rope_mscale");
    readIf("mscale_all_dim", "rope_mscale_all_dim");
    if (rope.find("truncate"))
      fields["rope_truncate"] = valueText(rope.boolean("truncate"));
  }

  void readLongrope(size_t pairs) {
    readLengths();
    fields["rope_short"] = valueText(rope.positives("short_factor", pairs));
    fields["rope_long"] = valueText(rope.positives("long_factor", pairs));
  }

  const Members &members, &rope;
  ModelFields &fields;
};
} // namespace

/// The key that counts of the two places of rotary keys, both of which are
/// checked; null: neither says anything.
static const char *ropePlace(const Members &members, const Family &family,
                             std::vector<std::string> &warnings) {
  const char *used = nullptr;
  for (const char *name : {"rope_parameters", "rope_scaling"}) {
    const json *found = members.find(name);
    if (!found)
      continue;
    Members rope(*found, members.path(name));
    rope.check(ropeKeys(ropeType(rope, family), family), warnings);
    if (!found->empty())
      used = name;
  }
  return used;
}

/// The elements of a head that are rotated where `rope` or the file says which
/// part; 0: all of them.
static int64_t rotaryDim(const Members &members, const Members &rope,
                         int64_t headDim) {
  const Members &holder = rope.find(kPartial) ? rope : members;
  if (!holder.find(kPartial))
    return 0;
  double part = holder.positive(kPartial);
  auto dim = static_cast<int64_t>(static_cast<double>(headDim) * part);
  if (part > 1 || dim < 2 || dim % 2 != 0)
    throw Error("expected a part of a head of " + std::to_string(headDim) +
                " elements that is even at " + holder.path(kPartial) +
                ", got " + holder.at(kPartial).dump());
  return dim == headDim ? 0 : dim;
}

void checkpoint::readRope(const Members &members, const json &document,
                          const Family &family, ModelConfig &config) {
  if (family.ropeTypes.empty())
    return;
  ModelFields &fields = config.model.fields;
  const char *place = ropePlace(members, family, config.warnings);
  const json none = json::object();
  const Members rope(place ? document.at(place) : none,
                     members.path(place ? place : "rope_parameters"));
  // What stands in both is checked in both; that of rope_parameters counts.
  for (const Members *holder : {&members, &rope})
    if (holder->find("rope_theta"))
      fields["rope_theta"] = numberText(holder->positive("rope_theta"));
  int64_t headDim = Fields(config.model).product("head_dim");
  int64_t rotated = rotaryDim(members, rope, headDim);
  fields["rotary_dim"] = std::to_string(rotated);
  std::string type = ropeType(rope, family);
  if (type != "default")
    StretchReader(members, rope, fields)
        .read(type, static_cast<size_t>((rotated ? rotated : headDim) / 2));
  // What stands where nothing is stretched.
  fields["rope_halves"] = "true";
  fields.insert({{"rope_theta", "10000"},
                 {"rope_factor", "1"},
                 {"rope_low", "1"},
                 {"rope_high", "4"},
                 {"rope_original", "8192"}});
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

/// Keys of the stretch, null if there is none; theta is not in it.
static ordered_json ropeScaling(const DecoderConfig &model) {
  ordered_json keys;
  const std::string &type = model.ropeType;
  if (type == "llama3" && model.ropeFactor == 1)
    return nullptr;
  keys["factor"] = model.ropeFactor;
  if (type == "llama3") {
    keys["high_freq_factor"] = model.ropeHigh;
    keys["low_freq_factor"] = model.ropeLow;
  }
  if (type == "yarn") {
    keys["beta_fast"] = model.ropeBetaFast;
    keys["beta_slow"] = model.ropeBetaSlow;
    if (model.ropeMscale != 0)
      keys["mscale"] = model.ropeMscale;
    if (model.ropeMscaleAllDim != 0)
      keys["mscale_all_dim"] = model.ropeMscaleAllDim;
    keys["truncate"] = model.ropeTruncate;
  }
  if (type == "longrope") {
    keys["long_factor"] = model.ropeLong;
    keys["short_factor"] = model.ropeShort;
  }
  if (model.ropeScale != 0)
    keys["attention_factor"] = model.ropeScale;
  if (type != "linear")
    keys[kOriginal] = model.ropeOriginal;
  keys["rope_type"] = type;
  return keys;
}

void checkpoint::writeRope(const DecoderConfig &model, const Family &family,
                           std::map<std::string, ordered_json> &config) {
  if (family.ropeTypes.empty())
    return;
  ordered_json scaling = ropeScaling(model);
  config["rope_theta"] = model.ropeTheta;
  config["rope_scaling"] = scaling;
  if (scaling.is_null())
    scaling = {{"rope_type", "default"}};
  scaling["rope_theta"] = model.ropeTheta;
  if (model.rotaryDim)
    config[kPartial] = scaling[kPartial] =
        static_cast<double>(model.rotaryDim) /
        static_cast<double>(model.getHeadDim());
  config["rope_parameters"] = scaling;
}
