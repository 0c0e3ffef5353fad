//===- HuggingFaceConfig.cpp - Reads and writes config.json ---------------===//
//
// Rotary scaling stands in "rope_scaling" up to version 4 of transformers and
// in "rope_parameters", together with rope_theta, from version 5. Where a file
// has both, version 5 takes the former, and so does this reader.
//
//===----------------------------------------------------------------------===//
#include "fsdp/Families/Families.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cmath>

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// The members of an object in config.json; messages end with the place.
class Members {
public:
  Members(const json &object, std::string place)
      : object(object), place(std::move(place)) {
    if (!object.is_object())
      throw Error("expected object at " + this->place);
  }

  /// Null if it is not there or null.
  const json *find(const char *key) const {
    auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }
  const json &at(const char *key) const {
    if (const json *value = find(key))
      return *value;
    throw Error("missing value at " + path(key));
  }
  int64_t integer(const char *key, int64_t max) const {
    const json &value = at(key);
    if (!value.is_number() ||
        std::trunc(value.get<double>()) != value.get<double>())
      throw Error("expected integer at " + path(key));
    double number = value.get<double>();
    if (number < 1 || number > static_cast<double>(max))
      throw Error("expected 1 to " + std::to_string(max) + " at " + path(key) +
                  ", got " + value.dump());
    return static_cast<int64_t>(number);
  }
  double number(const char *key) const {
    const json &value = at(key);
    if (!value.is_number())
      throw Error("expected number at " + path(key));
    return value.get<double>();
  }
  double positive(const char *key) const {
    double value = number(key);
    if (!(value > 0))
      throw Error("expected a positive number at " + path(key) + ", got " +
                  at(key).dump());
    return value;
  }
  double notNegative(const char *key) const {
    return number(key) == 0 ? 0 : positive(key);
  }
  bool boolean(const char *key) const {
    const json &value = at(key);
    if (!value.is_boolean())
      throw Error("expected boolean at " + path(key));
    return value.get<bool>();
  }
  std::string string(const char *key) const {
    const json &value = at(key);
    if (!value.is_string())
      throw Error("expected string at " + path(key));
    return value.get<std::string>();
  }
  std::string path(const std::string &key) const { return place + "." + key; }

  void check(const std::vector<ConfigKey> &keys,
             std::vector<std::string> &warnings) const;

private:
  const json &object;
  std::string place;
};

} // namespace

/// Refuses what the model cannot express. Unknown keys are only warned about:
/// files carry notes of the tools that wrote them.
void Members::check(const std::vector<ConfigKey> &keys,
                    std::vector<std::string> &warnings) const {
  std::vector<std::string> known;
  for (const ConfigKey &key : keys) {
    known.emplace_back(key.name);
    auto value = object.find(key.name);
    if (key.role != KeyRole::Fixed || value == object.end())
      continue;
    auto isValue = [&](const char *good) {
      return *value == json::parse(good);
    };
    if (std::none_of(key.values.begin(), key.values.end(), isValue))
      throw Error("expected " + std::string(key.values.front()) + " (" +
                  key.why + ") at " + path(key.name) + ", got " +
                  printableLine(value->dump()));
  }
  for (const auto &[key, value] : object.items())
    if (std::find(known.begin(), known.end(), key) == known.end())
      warnings.push_back("unknown key '" + printableLine(key) + "' at " +
                         place + " is ignored" + didYouMean(key, known));
}

/// As a manifest has it: a number without a fraction is written without one.
static std::string numberText(double value) {
  bool isWhole = std::trunc(value) == value && std::abs(value) < 1e15;
  return isWhole ? std::to_string(static_cast<int64_t>(value))
                 : json(value).dump();
}

/// The value of a key that is there.
static std::string valueText(const Members &members, const ConfigField &field) {
  switch (field.type) {
  case ConfigField::Type::Integer:
    return std::to_string(members.integer(field.key, field.max));
  case ConfigField::Type::Number:
    return numberText(members.notNegative(field.key));
  case ConfigField::Type::Boolean:
    return members.boolean(field.key) ? "true" : "false";
  }
  return "";
}

static void readFields(const Members &members, const Family &family,
                       std::map<std::string, std::string> &fields) {
  for (const ConfigField &field : family.fields) {
    if (!field.fallback || members.find(field.key)) {
      fields[field.field] = valueText(members, field);
      continue;
    }
    auto other = fields.find(field.fallback);
    fields[field.field] =
        other != fields.end() ? other->second : std::string(field.fallback);
  }
}

static void readRope(const Members &members, const json &document,
                     const Family &family, ModelConfig &config) {
  double theta =
      members.find("rope_theta") ? members.positive("rope_theta") : 10000;
  double factor = 1, low = 1, high = 4;
  int64_t original = 8192;
  const char *used = nullptr;
  for (const char *name : {"rope_parameters", "rope_scaling"}) {
    const json *rope = members.find(name);
    if (!rope)
      continue;
    Members(*rope, members.path(name)).check(family.ropeKeys, config.warnings);
    if (!rope->empty())
      used = name;
  }
  if (used) {
    Members rope(document.at(used), members.path(used));
    if (rope.find("rope_theta"))
      theta = rope.positive("rope_theta");
    // Before "rope_type" the key was "type".
    const char *key = rope.find("rope_type") ? "rope_type" : "type";
    std::string type = rope.find(key) ? rope.string(key) : "default";
    if (type != "default" && type != "llama3")
      throw Error("expected \"llama3\" or \"default\" at " +
                  rope.path("rope_type"));
    if (type == "llama3") {
      factor = rope.positive("factor");
      low = rope.positive("low_freq_factor");
      high = rope.positive("high_freq_factor");
      if (factor != 1 && high <= low)
        throw Error("expected more than low_freq_factor at " +
                    rope.path("high_freq_factor"));
      original =
          rope.integer("original_max_position_embeddings", kMaxDimension);
    }
  }
  std::map<std::string, std::string> &fields = config.model.fields;
  fields["rope_theta"] = numberText(theta);
  fields["rope_factor"] = numberText(factor);
  fields["rope_low"] = numberText(low);
  fields["rope_high"] = numberText(high);
  fields["rope_original"] = std::to_string(original);
  fields["rope_halves"] = "true";
}

/// The family whose model_type this is.
static const Family &familyOfConfig(const Members &members) {
  std::string type = members.string("model_type"), known;
  for (const Family &family : families()) {
    if (type == family.modelType)
      return family;
    known += (known.empty() ? "\"" : " or \"") + std::string(family.modelType) +
             "\"";
  }
  throw Error("expected " + known +
              " (others are not supported) at config.model_type, got " +
              json(type).dump());
}

ModelConfig checkpoint::readModelConfig(const std::string &text) {
  json document = parseJson(text, "");
  Members members(document, "config");
  const Family &family = familyOfConfig(members);
  ModelConfig config;
  config.model.family = family.name;
  members.check(family.keys, config.warnings);
  readFields(members, family, config.model.fields);
  readRope(members, document, family, config);
  return config;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static const char *torchName(rt::DType dtype) {
  return dtype == rt::DType::BF16  ? "bfloat16"
         : dtype == rt::DType::F16 ? "float16"
                                   : "float32";
}

rt::DType checkpoint::weightType(const std::string &name) {
  for (rt::DType dtype : {rt::DType::F32, rt::DType::BF16, rt::DType::F16})
    if (name == torchName(dtype))
      return dtype;
  throw Error("no weights are written as '" + name +
              "'; there are float32, bfloat16 and float16");
}

static ordered_json fieldValue(const Fields &fields, const ConfigField &field) {
  switch (field.type) {
  case ConfigField::Type::Integer:
    return fields.product(field.field); // of head_dim, what 0 stands for
  case ConfigField::Type::Number:
    return fields.number(field.field);
  case ConfigField::Type::Boolean:
    return fields.boolean(field.field);
  }
  return nullptr;
}

/// Scaling as version 4 has it, null if there is none; theta is not in it.
static ordered_json ropeScaling(const Fields &fields) {
  double factor = fields.number("rope_factor");
  if (factor == 1)
    return nullptr;
  return {{"factor", factor},
          {"high_freq_factor", fields.number("rope_high")},
          {"low_freq_factor", fields.number("rope_low")},
          {"original_max_position_embeddings", fields.integer("rope_original")},
          {"rope_type", "llama3"}};
}

std::string
checkpoint::writeModelConfig(const rt::ModelInfo &model, rt::DType dtype,
                             const std::map<std::string, std::string> &more) {
  const Family &family = familyOf(model);
  Fields fields(model);
  std::map<std::string, ordered_json> config; // transformers sorts keys too
  for (const ConfigKey &key : family.keys)
    if (key.isWritten)
      config[key.name] = ordered_json::parse(key.values.front());
  for (const ConfigField &field : family.fields)
    config[field.key] = fieldValue(fields, field);
  for (const auto &[key, text] : more)
    config[key] = ordered_json::parse(text);
  config["model_type"] = family.modelType;
  config["dtype"] = config["torch_dtype"] = torchName(dtype);
  double theta = fields.number("rope_theta");
  ordered_json scaling = ropeScaling(fields);
  config["rope_theta"] = theta;
  config["rope_scaling"] = scaling;
  if (scaling.is_null())
    scaling = {{"rope_type", "default"}};
  scaling["rope_theta"] = theta;
  config["rope_parameters"] = scaling;
  return ordered_json(config).dump(2) + "\n";
}
