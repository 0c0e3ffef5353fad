//===- HuggingFaceConfig.cpp - Reads and writes config.json ---------------===//
#include "ConfigMembers.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::checkpoint;
using nlohmann::json;
using nlohmann::ordered_json;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

/// Our spelling of a name.
static std::string nameHere(const Members &members, const ConfigField &field) {
  std::string name = members.string(field.key), known;
  for (const auto &[theirs, ours] : field.names) {
    if (name == theirs)
      return ours;
    known += (known.empty() ? "\"" : ", \"") + std::string(theirs) + "\"";
  }
  throw Error("expected one of " + known + " at " + members.path(field.key) +
              ", got " + json(name).dump());
}

/// The value of a key that is there.
static std::string valueHere(const Members &members, const ConfigField &field) {
  switch (field.type) {
  case ConfigField::Type::Integer:
    return std::to_string(members.integer(field.key, field.max));
  case ConfigField::Type::Number:
    return numberText(members.notNegative(field.key));
  case ConfigField::Type::Boolean:
    return valueText(members.boolean(field.key));
  case ConfigField::Type::Name:
    return nameHere(members, field);
  }
  return "";
}

/// What a fallback stands for: the value of a field, a multiple of one, or
/// itself.
static std::string fallbackHere(const std::string &fallback,
                                const ModelFields &fields) {
  auto other = fields.find(fallback);
  if (other != fields.end())
    return other->second;
  size_t star = fallback.find('*');
  if (star == std::string::npos)
    return fallback;
  CheckedSize product = std::stoll(fallback.substr(0, star));
  product *= std::stoll(fields.at(fallback.substr(star + 1)));
  return std::to_string(product.saturated());
}

static void readFields(const Members &members, const Family &family,
                       ModelFields &fields) {
  for (const ConfigField &field : family.fields) {
    bool isNull = members.isThere(field.key) && !members.find(field.key);
    if (isNull && field.ifNull)
      fields[field.field] = fallbackHere(field.ifNull, fields);
    else if (!field.fallback || members.find(field.key))
      fields[field.field] = valueHere(members, field);
    else
      fields[field.field] = fallbackHere(field.fallback, fields);
  }
}

/// Leaves those that models of the family state, and of the rare ones those
/// that are not what the family has otherwise.
static void keepStated(const Family &family, ModelFields &fields) {
  ModelFields stated;
  for (const FamilyField &field : family.modelFields) {
    std::string base = fieldText(family.base, field.key);
    auto found = fields.find(field.key);
    const std::string &is = found == fields.end() ? base : found->second;
    if (!field.isRare || !isSameValue(is, base))
      stated[field.key] = is;
  }
  fields = std::move(stated);
}

/// The family whose model_type this is.
static const Family &familyOfConfig(const Members &members) {
  std::string type = members.string("model_type"), listed;
  std::vector<std::string> known;
  for (const Family &family : families()) {
    if (type == family.modelType)
      return family;
    known.emplace_back(family.modelType);
    listed += (listed.empty() ? "\"" : ", \"") + known.back() + "\"";
  }
  throw Error("expected one of " + listed +
              " (others are not supported) at config.model_type, got " +
              json(type).dump() + didYouMean(type, known));
}

/// Heads share the width of the model, and queries the heads of keys, also
/// where no shape of a tensor says so.
static void checkHeads(const rt::ModelInfo &model) {
  Fields fields(model);
  fields.product("head_dim");
  if (model.fields.count("n_kv_heads") == 0)
    return;
  int64_t heads = fields.integer("n_heads");
  int64_t keyHeads = fields.integer("n_kv_heads");
  if (heads % keyHeads != 0)
    throw Error(
        "n_heads = " + std::to_string(heads) +
        " is not divisible by n_kv_heads = " + std::to_string(keyHeads));
}

ModelConfig checkpoint::readModelConfig(const std::string &text) {
  json document = parseJson(text, "");
  Members members(document, "config");
  const Family &family = familyOfConfig(members);
  ModelConfig config;
  config.model.family = family.name;
  members.check(family.keys, config.warnings);
  ModelFields &fields = config.model.fields;
  readFields(members, family, fields);
  fields.insert({"head_dim", "0"}); // where no key says it
  checkHeads(config.model);
  readRope(members, document, family, config);
  readWindows(members, family, fields);
  keepStated(family, fields);
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

static ordered_json fieldThere(const Fields &fields, const ConfigField &field) {
  if (field.ifNull && isSameValue(fields.text(field.field), field.ifNull))
    return nullptr;
  switch (field.type) {
  case ConfigField::Type::Integer:
    return fields.product(field.field); // of head_dim, what 0 stands for
  case ConfigField::Type::Number:
    return fields.number(field.field);
  case ConfigField::Type::Boolean:
    return fields.boolean(field.field);
  case ConfigField::Type::Name:
    return std::find_if(field.names.begin(), field.names.end(),
                        [&](const auto &name) {
                          return fields.text(field.field) == name.second;
                        })
        ->first;
  }
  return nullptr;
}

std::string
checkpoint::writeModelConfig(const rt::ModelInfo &stated, rt::DType dtype,
                             const std::map<std::string, std::string> &more) {
  const Family &family = familyOf(stated);
  DecoderConfig decoder = decoderOf(stated);
  // With what the model shares with its family.
  rt::ModelInfo model = stated;
  for (const FamilyField &field : family.modelFields)
    if (field.isRare)
      model.fields.insert({field.key, fieldText(decoder, field.key)});
  Fields fields(model);
  std::map<std::string, ordered_json> config; // transformers sorts keys too
  for (const ConfigKey &key : family.keys)
    if (key.isWritten)
      config[key.name] = ordered_json::parse(key.values.front());
  for (const ConfigField &field : family.fields)
    config[field.key] = fieldThere(fields, field);
  writeWindows(decoder, family, config);
  if (decoder.vocab <= family.defaultPadToken)
    config["pad_token_id"] = nullptr;
  for (const auto &[key, text] : more)
    config[key] = ordered_json::parse(text);
  config["model_type"] = family.modelType;
  config["dtype"] = config["torch_dtype"] = torchName(dtype);
  writeRope(decoder, family, config);
  return ordered_json(config).dump(2) + "\n";
}
