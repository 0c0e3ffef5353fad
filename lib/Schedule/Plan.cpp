//===- Plan.cpp - Text forms of plans -------------------------------------===//

#include "fsdp/Schedule/Plan.h"
#include "dialects/Fsdp/Fsdp.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Support/NearestName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace fsdp;
using namespace fsdp::schedule;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kMatch = "match";

bool fsdp::schedule::saysSomething(const DecisionOverrides &overrides) {
  bool says = false;
  dist::forEachDecisionField(
      [&](const auto &field) { says |= field.in(overrides).has_value(); });
  return says;
}

static std::vector<std::string> ruleKeys() {
  std::vector<std::string> names = {kMatch.str()};
  dist::forEachDecisionField(
      [&](const auto &field) { names.push_back(field.name.str()); });
  return names;
}

/// What is wrong with a plan whatever the module: the place in it, and why.
/// Empty if nothing is.
static std::pair<std::string, std::string> findProblem(const Plan &plan) {
  for (const auto &entry : llvm::enumerate(plan.rules)) {
    const Rule &rule = entry.value();
    std::string place = "rules[" + std::to_string(entry.index()) + "]";
    if (rule.match.empty())
      return {place + ": match", "a rule needs an address or a glob"};
    if (!saysSomething(rule.overrides))
      return {place, "the rule decides nothing about what it matches"};
    std::string field, problem;
    dist::forEachDecisionField([&](const auto &record) {
      const auto &value = record.in(rule.overrides);
      if (!value || !problem.empty())
        return;
      field = record.name.str();
      problem = dist::problemOf(record.domain, *value).str();
    });
    if (!problem.empty())
      return {place + ": " + field, problem};
  }
  return {};
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

std::string fsdp::schedule::toJSON(const Plan &plan) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream json(stream, /*IndentSize=*/2);
  json.object([&] {
    json.attribute("version", 2);
    json.attributeArray("rules", [&] {
      for (const Rule &rule : plan.rules)
        json.object([&] {
          if (rule.match.size() == 1)
            json.attribute(kMatch, rule.match.front());
          else
            json.attribute(kMatch, llvm::json::Value(rule.match));
          dist::forEachDecisionField([&](const auto &field) {
            if (const auto &value = field.in(rule.overrides))
              json.attribute(field.name, llvm::json::Value(*value));
          });
        });
    });
  });
  return text;
}

static void read(const JsonField &field, bool &value) {
  value = field.boolean();
}
static void read(const JsonField &field, int64_t &value) {
  value = field.integer();
}
static void read(const JsonField &field, std::string &value) {
  value = field.string();
}

static Rule readRule(const JsonField &field) {
  Rule rule;
  field.allowKeys(ruleKeys());
  JsonField match = field.at(kMatch.str());
  if (match.isString())
    rule.match = {match.string()};
  else
    rule.match = match.strings();
  // A field that is there has a value: null is none.
  dist::forEachDecisionField([&](const auto &record) {
    std::string name = record.name.str();
    if (field.has(name))
      read(field.at(name), record.in(rule.overrides).emplace());
  });
  return rule;
}

/// Throws fsdp::Error.
static Plan readPlan(StringRef text, const std::string &place) {
  nlohmann::json document = parseJson(text, place);
  JsonField root(document, place);
  int64_t version = root.at("version").integer();
  if (version == 1)
    root.fail("the plan has version 1, with units instead of rules; convert it "
              "with 'python3 tools/convert-plan.py OLD.json > NEW.json'");
  if (version != 2)
    root.at("version").fail("expected 2");
  root.allowKeys({"version", "rules"});
  Plan plan;
  for (const JsonField &rule : root.at("rules").items())
    plan.rules.push_back(readRule(rule));
  auto [where, why] = findProblem(plan);
  if (!why.empty())
    root.fail(where + ": " + why);
  return plan;
}

llvm::Expected<Plan> fsdp::schedule::parseJSON(StringRef text,
                                               const std::string &place) {
  try {
    return readPlan(text, place);
  } catch (const Error &error) {
    return llvm::createStringError(error.what());
  }
}

//===----------------------------------------------------------------------===//
// Attribute
//===----------------------------------------------------------------------===//

static Attribute attributeOf(Builder &b, bool value) {
  return b.getBoolAttr(value);
}
static Attribute attributeOf(Builder &b, int64_t value) {
  return b.getI64IntegerAttr(value);
}
static Attribute attributeOf(Builder &b, const std::string &value) {
  return b.getStringAttr(value);
}
static Attribute attributeOf(Builder &b,
                             const std::vector<std::string> &value) {
  SmallVector<StringRef> strings(value.begin(), value.end());
  return b.getStrArrayAttr(strings);
}

Attribute fsdp::schedule::toAttribute(MLIRContext *context, const Plan &plan) {
  Builder b(context);
  SmallVector<Attribute> rules;
  for (const Rule &rule : plan.rules) {
    NamedAttrList fields;
    fields.set(kMatch, attributeOf(b, rule.match));
    dist::forEachDecisionField([&](const auto &field) {
      if (const auto &value = field.in(rule.overrides))
        fields.set(field.name, attributeOf(b, *value));
    });
    rules.push_back(fields.getDictionary(context));
  }
  return b.getArrayAttr(rules);
}

// Each takes over an attribute of its type; it returns what it wants, for the
// message, if the attribute is missing or has another type.

static const char *take(Attribute attribute, bool &value) {
  auto boolean = dyn_cast_or_null<BoolAttr>(attribute);
  if (!boolean)
    return "true or false";
  value = boolean.getValue();
  return nullptr;
}

static const char *take(Attribute attribute, int64_t &value) {
  auto integer = dyn_cast_or_null<IntegerAttr>(attribute);
  if (!integer || !integer.getType().isSignlessInteger(64))
    return "an i64 integer";
  value = integer.getInt();
  return nullptr;
}

static const char *take(Attribute attribute, std::string &value) {
  auto string = dyn_cast_or_null<StringAttr>(attribute);
  if (!string)
    return "a string";
  value = string.str();
  return nullptr;
}

static const char *take(Attribute attribute, std::vector<std::string> &value) {
  auto array = dyn_cast_or_null<ArrayAttr>(attribute);
  if (!array || !llvm::all_of(array, llvm::IsaPred<StringAttr>))
    return "an array of strings";
  for (auto string : array.getAsRange<StringAttr>())
    value.push_back(string.str());
  return nullptr;
}

template <typename T>
static const char *take(Attribute attribute, std::optional<T> &value) {
  return attribute ? take(attribute, value.emplace()) : nullptr;
}

/// Reads fields by `visit`; gives what is wrong, or an empty string.
template <typename Visit>
static std::string readFields(DictionaryAttr dictionary,
                              const std::vector<std::string> &known,
                              Visit visit) {
  std::string problem;
  for (NamedAttribute attribute : dictionary)
    if (!llvm::is_contained(known, attribute.getName().getValue()))
      return ("unknown key '" + attribute.getName().getValue() + "'").str() +
             didYouMean(attribute.getName().str(), known);
  visit([&](StringRef name, auto &field) {
    const char *wanted = take(dictionary.get(name), field);
    if (wanted && problem.empty())
      problem = ("'" + name + "' must be " + wanted).str();
  });
  return problem;
}

static std::string readEntry(DictionaryAttr dictionary, Plan &plan) {
  return readFields(dictionary, ruleKeys(), [&](auto read) {
    Rule &rule = plan.rules.emplace_back();
    read(kMatch, rule.match);
    dist::forEachDecisionField(
        [&](const auto &field) { read(field.name, field.in(rule.overrides)); });
  });
}

FailureOr<Plan> fsdp::schedule::planOf(ModuleOp module) {
  auto entries = module->getAttrOfType<ArrayAttr>(dist::kPlanAttr);
  if (!entries)
    return module.emitError("the module has no plan; run fsdp-plan first");
  Plan plan;
  for (auto [index, entry] : llvm::enumerate(entries)) {
    auto dictionary = dyn_cast<DictionaryAttr>(entry);
    std::string problem =
        !dictionary ? "it must be a dictionary" : readEntry(dictionary, plan);
    if (!problem.empty())
      return module.emitError("fsdp.plan[") << index << "]: " << problem;
  }
  auto [place, why] = findProblem(plan);
  if (!why.empty())
    return module.emitError("fsdp.plan: ") << place << ": " << why;
  return plan;
}
