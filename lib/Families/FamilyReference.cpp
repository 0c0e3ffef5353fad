//===- FamilyReference.cpp - The tables of families, for people -----------===//
#include "fsdp/Families/Families.h"
#include "fsdp/Support/Markdown.h"
#include "fsdp/Support/Text.h"

using namespace fsdp;
using namespace fsdp::checkpoint;
using markdown::code;

static std::string typeOf(const ConfigField &field) {
  switch (field.type) {
  case ConfigField::Type::Integer:
    return "integer";
  case ConfigField::Type::Number:
    return "number";
  case ConfigField::Type::Boolean:
    return "boolean";
  case ConfigField::Type::Name:
    break;
  }
  std::vector<std::string> names;
  for (const auto &[theirs, ours] : field.names)
    names.push_back(theirs);
  return joinedText(names, ", ");
}

/// What a file says of the model.
static std::string fieldTable(const Family &family) {
  std::string text = markdown::head({"key", "value", "left out", "field here"});
  for (const ConfigField &field : family.fields)
    text += markdown::row({code(field.key), typeOf(field),
                           field.fallback ? code(field.fallback) : "an error",
                           code(field.field)});
  return text;
}

/// The names of the keys of `role` that are no fields.
static std::string keysOfRole(const Family &family, KeyRole role) {
  std::vector<std::string> names;
  for (const ConfigKey &key : family.keys) {
    bool isField = false;
    for (const ConfigField &field : family.fields)
      isField |= std::string(field.key) == key.name;
    if (key.role == role && !isField)
      names.push_back(code(key.name));
  }
  return joinedText(names, ", ");
}

static std::string fixedTable(const Family &family) {
  std::string text = markdown::head({"key", "must be", "because"});
  for (const ConfigKey &key : family.keys) {
    if (key.role != KeyRole::Fixed)
      continue;
    std::vector<std::string> values;
    for (const char *value : key.values)
      values.push_back(code(value));
    text += markdown::row(
        {code(key.name), joinedText(values, " or ") + " or left out", key.why});
  }
  return text;
}

static std::string windowText(const Family &family) {
  switch (family.windows) {
  case WindowRule::None:
    return "no layer";
  case WindowRule::AllLayers:
    return "every layer, if there is `sliding_window`";
  case WindowRule::Even:
    return "layers 0, 2, 4, … or those of `layer_types`";
  case WindowRule::FromLayer:
    return "with `use_sliding_window` layers from `max_window_layers` on, or "
           "those of `layer_types`";
  }
  return "";
}

/// How a tensor lies in files.
static std::string layoutOf(const FamilyTensor &tensor) {
  std::vector<std::string> parts;
  if (tensor.isTransposed)
    parts.push_back("transposed");
  if (tensor.rotary)
    parts.push_back("rotary rows of " + code(tensor.rotary));
  if (tensor.when)
    parts.push_back("only with " + code(tensor.when));
  if (tensor.tiedTo)
    parts.push_back("not there where the model is tied");
  return joinedText(parts, ", ");
}

static std::string tensorTable(const Family &family) {
  std::string text =
      markdown::head({"tensor here", "shape here", "in files", "there"});
  for (const FamilyTensor &tensor : family.tensors) {
    std::vector<std::string> sizes(tensor.shape.begin(), tensor.shape.end());
    text += markdown::row({code(tensor.ours), joinedText(sizes, " × "),
                           code(tensor.theirs), layoutOf(tensor)});
  }
  return text;
}

static std::string ropeTypesOf(const Family &family) {
  std::vector<std::string> names;
  for (const auto &[theirs, ours] : family.ropeTypes)
    names.push_back(code(theirs));
  return names.empty() ? "none, positions are learned"
                       : joinedText(names, ", ");
}

std::string checkpoint::familyReference() {
  std::string text =
      "<!-- Made by `fsdp-trace --families`. -->\n# Families of models\n\n"
      "What is read of a `config.json`, what is refused, and where tensors are "
      "in files. [Hugging Face directories](../hugging-face.md)\nexplains the "
      "layouts. A key that no table has is a warning.\n";
  for (const Family &family : families()) {
    text += "\n## " + std::string(family.title) + "\n\n`model_type` " +
            code(family.modelType) + ". Windows: " + windowText(family) +
            ". `rope_type`: " + ropeTypesOf(family) + ".\n";
    text += fieldTable(family) + fixedTable(family) + tensorTable(family);
    text += "\nAlso used: " + keysOfRole(family, KeyRole::Used) + ".\n";
    std::string dropout = keysOfRole(family, KeyRole::Dropout);
    if (!dropout.empty())
      text += "\nA warning unless it is 0, as training goes without dropout: " +
              dropout + ".\n";
    text +=
        "\nChange nothing: " + keysOfRole(family, KeyRole::Harmless) + ".\n";
  }
  return text;
}
