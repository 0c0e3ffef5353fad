//===- Families.cpp - The table of families -------------------------------===//
#include "fsdp/Families/Families.h"
#include "FamilyParts.h"
#include "fsdp/Families/ModelConfig.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

using namespace fsdp;
using namespace fsdp::checkpoint;
using rt::ModelInfo;

/// With the name of the family in what it describes.
static Family named(Family family) {
  family.base.family = family.name;
  for (FamilySize &size : family.sizes)
    size.config.family = family.name;
  return family;
}

/// What comes and goes leaves the others where they are.
static std::list<Family> &allFamilies() {
  static std::list<Family> all = {named(llamaFamily()),   named(gpt2Family()),
                                  named(qwen2Family()),   named(qwen3Family()),
                                  named(mistralFamily()), named(gemma2Family()),
                                  named(phi3Family()),    named(olmo2Family())};
  return all;
}

const std::list<Family> &checkpoint::families() { return allFamilies(); }

AddedFamily::AddedFamily(Family family)
    : place(allFamilies().insert(allFamilies().end(),
                                 named(std::move(family)))) {}

AddedFamily::~AddedFamily() { allFamilies().erase(place); }

const Family *checkpoint::findFamily(const std::string &name) {
  for (const Family &family : families())
    if (name == family.name)
      return &family;
  return nullptr;
}

const Family &checkpoint::familyOf(const ModelInfo &model) {
  if (const Family *family = findFamily(model.family))
    return *family;
  std::string known;
  for (const Family &family : families())
    known += (known.empty() ? "" : ", ") + std::string(family.name);
  throw Error("no table says how Hugging Face names the tensors of the family "
              "'" +
              printableLine(model.family) + "'; known: " + known);
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

void Fields::refuse(const std::string &key, const char *what) const {
  throw Error("the model's field '" + key + "' is " + what + ": '" +
              printableLine(text(key)) + "'");
}

const std::string &Fields::text(const std::string &key) const {
  auto found = model.fields.find(key);
  if (found == model.fields.end())
    throw Error("the model's field '" + key + "' is missing");
  return found->second;
}

int64_t Fields::integer(const std::string &key) const {
  const std::string &is = text(key);
  int64_t value = 0;
  auto [end, error] = std::from_chars(is.data(), is.data() + is.size(), value);
  if (error != std::errc() || end != is.data() + is.size() || value < 0 ||
      value > kMaxVocabulary)
    refuse(key, "no size");
  return value;
}

double Fields::number(const std::string &key) const {
  const std::string &is = text(key);
  char *end = nullptr;
  double value = std::strtod(is.c_str(), &end);
  if (is.empty() || *end != '\0' || !std::isfinite(value))
    refuse(key, "no number");
  return value;
}

bool Fields::boolean(const std::string &key) const {
  const std::string &is = text(key);
  if (is != "true" && is != "false")
    refuse(key, "neither true nor false");
  return is == "true";
}

/// head_dim, which may be left to the heads.
static int64_t headDim(const Fields &fields) {
  if (int64_t stated = fields.integer("head_dim"))
    return stated;
  int64_t dim = fields.integer("dim"), heads = fields.integer("n_heads");
  if (heads == 0 || dim % heads != 0)
    throw Error("dim = " + std::to_string(dim) +
                " is not divisible by n_heads = " + std::to_string(heads));
  return dim / heads;
}

int64_t Fields::product(const std::string &text) const {
  CheckedSize size = 1;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find('*', begin), text.size());
    std::string key = text.substr(begin, end - begin);
    size *= key == "head_dim" ? headDim(*this) : integer(key);
    begin = end + 1;
  }
  if (!size.fits(kMaxTensorBytes))
    throw Error("a size of the model is beyond 2^56: " + text);
  return size.get();
}

static const FieldOf<DecoderConfig> &fieldNamed(const std::string &key) {
  for (const FieldOf<DecoderConfig> &field : decoderFields())
    if (key == field.key)
      return field;
  throw Error("no decoder has a field '" + printableLine(key) + "'");
}

std::string checkpoint::fieldText(const DecoderConfig &config,
                                  const std::string &key) {
  auto textOf = [&](auto member) { return valueText(config.*member); };
  return std::visit(textOf, fieldNamed(key).member);
}

DecoderConfig checkpoint::decoderOf(const ModelInfo &model) {
  DecoderConfig config = familyOf(model).base;
  for (const auto &[key, text] : model.fields) {
    auto assign = [&, &text = text](auto member) {
      return parseValue(text, config.*member);
    };
    if (!std::visit(assign, fieldNamed(key).member))
      throw Error("the model's field '" + key + "' has the value '" +
                  printableLine(text) + "', which is none of its kind");
  }
  return config;
}

bool checkpoint::isSameValue(const std::string &a, const std::string &b) {
  if (a == b)
    return true;
  char *endA = nullptr, *endB = nullptr;
  double valueA = std::strtod(a.c_str(), &endA);
  double valueB = std::strtod(b.c_str(), &endB);
  bool areNumbers = !a.empty() && !b.empty() && *endA == '\0' && *endB == '\0';
  return areNumbers && valueA == valueB;
}

//===----------------------------------------------------------------------===//
// Differences
//===----------------------------------------------------------------------===//

std::map<std::string, std::string>
checkpoint::effectiveFields(const ModelInfo &model) {
  std::map<std::string, std::string> fields = model.fields;
  auto head = fields.find("head_dim");
  if (head != fields.end() && head->second == "0")
    head->second = std::to_string(headDim(Fields(model)));
  // A factor of 1 leaves all frequencies.
  if (fields.count("rope_factor") && Fields(model).number("rope_factor") == 1)
    for (const char *key : {"rope_low", "rope_high", "rope_original"})
      fields.erase(key);
  return fields;
}

/// Whether a tensor of the family has this size.
static bool isSizeOfTensor(const std::string &family, const std::string &key) {
  const Family *table = findFamily(family);
  return table && std::any_of(table->tensors.begin(), table->tensors.end(),
                              [&](const FamilyTensor &tensor) {
                                return std::count(tensor.shape.begin(),
                                                  tensor.shape.end(), key);
                              });
}

/// The fields that say what weights mean. Positions that are learned are
/// weights.
static std::map<std::string, std::string> meaning(const ModelInfo &model) {
  std::map<std::string, std::string> fields = effectiveFields(model);
  if (!isSizeOfTensor(model.family, "max_seq_len"))
    fields.erase("max_seq_len");
  fields.erase("rope_halves");
  return fields;
}

std::string checkpoint::modelDifference(const ModelInfo &is,
                                        const ModelInfo &wanted) {
  if (is.family != wanted.family)
    return "the family is " + is.family + " instead of " + wanted.family;
  std::map<std::string, std::string> have = meaning(is), want = meaning(wanted);
  std::string text;
  auto say = [&](const std::string &key, const std::string &a,
                 const std::string &b) {
    text += (text.empty() ? "" : ", ") + key + " is " + a + " instead of " + b;
  };
  for (const auto &[key, value] : want) {
    auto found = have.find(key);
    if (found == have.end())
      say(key, "unset", value);
    else if (!isSameValue(found->second, value))
      say(key, found->second, value);
  }
  for (const auto &[key, value] : have)
    if (!want.count(key))
      say(key, value, "unset");
  return text;
}
