//===- Plan.cpp - Rules, checks and text forms of plans -------------------===//

#include "fsdp/Schedule/Plan.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "fsdp/Input/StrictJson.h"
#include "fsdp/Support/NearestName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace fsdp;
using namespace fsdp::schedule;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The rule-based planner
//===----------------------------------------------------------------------===//

/// Blocks are units; modules before the first block are units of their own;
/// what follows the last block (norm, output) is needed together, so it is one
/// unit.
static std::string unitName(StringRef parameter, bool afterBlocks) {
  StringRef block = nn::blockOf(parameter);
  if (!block.empty())
    return block.str();
  return afterBlocks ? "head" : nn::firstComponent(parameter).str();
}

/// A module whose parameters are not next to each other has several units.
static std::string uniqueName(const std::string &name, int use) {
  return use == 1 ? name : name + " (" + std::to_string(use) + ")";
}

Plan fsdp::schedule::planByRule(ArrayRef<StringRef> parameters,
                                const PlanOptions &options) {
  Plan plan;
  bool seenBlock = false;
  std::string last; // the name by rule of the last unit
  llvm::StringMap<int> uses;
  for (StringRef parameter : parameters) {
    bool isBlock = !nn::blockOf(parameter).empty();
    seenBlock |= isBlock;
    std::string name = options.units == UnitPolicy::Whole
                           ? "model"
                           : unitName(parameter, seenBlock && !isBlock);
    if (plan.units.empty() || name != last) {
      last = name;
      Unit unit;
      unit.name = uniqueName(name, ++uses[name]);
      unit.bucket = options.bucket;
      unit.overlap = options.overlap;
      unit.reshardAfterForward = options.reshard != ReshardPolicy::Never;
      unit.forwardPrefetch = unit.backwardPrefetch = options.prefetch;
      unit.reduceDefer = options.reduceDefer;
      plan.units.push_back(std::move(unit));
    }
    plan.units.back().parameters.push_back(parameter.str());
  }
  if (options.reshard == ReshardPolicy::Default && !plan.units.empty())
    plan.units.back().reshardAfterForward = false;
  return plan;
}

std::string fsdp::schedule::check(const Plan &plan,
                                  ArrayRef<StringRef> parameters) {
  llvm::StringMap<StringRef> unitOf;
  llvm::StringMap<char> known;
  for (StringRef parameter : parameters)
    known[parameter] = 1;
  for (const Unit &unit : plan.units) {
    if (unit.forwardPrefetch < 0 || unit.backwardPrefetch < 0 ||
        unit.reduceDefer < 0)
      return "unit '" + unit.name + "' has a negative distance";
    for (const std::string &parameter : unit.parameters) {
      if (!known.count(parameter))
        return "unit '" + unit.name + "' names the unknown parameter '" +
               parameter + "'";
      auto [it, isNew] = unitOf.try_emplace(parameter, unit.name);
      if (!isNew)
        return "parameter '" + parameter + "' is in units '" +
               it->second.str() + "' and '" + unit.name + "'";
    }
  }
  for (StringRef parameter : parameters)
    if (!unitOf.count(parameter))
      return "parameter '" + parameter.str() + "' is in no unit";
  return {};
}

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

/// The fields of a unit, for every form of it. A name and a list must be
/// stated; booleans and integers have defaults in JSON.
template <typename Unit, typename Visit>
static void visitFields(Unit &unit, Visit visit) {
  visit(llvm::StringLiteral("name"), unit.name);
  visit(llvm::StringLiteral("parameters"), unit.parameters);
  visit(llvm::StringLiteral("bucket"), unit.bucket);
  visit(llvm::StringLiteral("reshard_after_forward"), unit.reshardAfterForward);
  visit(llvm::StringLiteral("overlap"), unit.overlap);
  visit(llvm::StringLiteral("forward_prefetch"), unit.forwardPrefetch);
  visit(llvm::StringLiteral("backward_prefetch"), unit.backwardPrefetch);
  visit(llvm::StringLiteral("reduce_defer"), unit.reduceDefer);
}

static std::vector<std::string> fieldNames() {
  std::vector<std::string> names;
  Unit unit;
  visitFields(unit,
              [&](StringRef name, auto &) { names.push_back(name.str()); });
  return names;
}

/// The index of the first unit whose name an earlier one has, if there is one.
static std::optional<size_t> findRepeatedUnit(const Plan &plan) {
  llvm::StringSet<> names;
  for (auto [index, unit] : llvm::enumerate(plan.units))
    if (!names.insert(unit.name).second)
      return index;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Value fsdp::schedule::toJSON(const Plan &plan) {
  llvm::json::Array units;
  for (const Unit &unit : plan.units) {
    llvm::json::Object object;
    visitFields(unit, [&](StringRef name, const auto &value) {
      object[name] = llvm::json::Value(value);
    });
    units.push_back(std::move(object));
  }
  return llvm::json::Object{{"version", 1}, {"units", std::move(units)}};
}

/// Refuses keys that no plan has: they would be dropped.
static llvm::Error checkKeys(const llvm::json::Object &object,
                             const std::vector<std::string> &known,
                             const std::string &place) {
  std::vector<std::string> unknown = unknownKeys(object, known);
  if (unknown.empty())
    return llvm::Error::success();
  return llvm::createStringError("unknown key '" + unknown.front() + "' at " +
                                 place + didYouMean(unknown.front(), known));
}

static bool readUnit(const llvm::json::Value &value, Unit &unit,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  bool isGood = static_cast<bool>(map);
  visitFields(unit, [&](llvm::StringLiteral name, auto &field) {
    using Field = std::decay_t<decltype(field)>;
    if (isGood && std::is_arithmetic_v<Field>)
      isGood = map.mapOptional(name, field);
    else if (isGood)
      isGood = map.map(name, field);
  });
  return isGood;
}

static llvm::Expected<std::vector<Unit>>
readUnits(const llvm::json::Array &values) {
  llvm::json::Path::Root root("plan");
  llvm::json::Path path(root);
  std::vector<Unit> units;
  for (auto [index, value] : llvm::enumerate(values)) {
    if (const llvm::json::Object *object = value.getAsObject())
      if (llvm::Error error =
              checkKeys(*object, fieldNames(),
                        "plan.units[" + std::to_string(index) + "]"))
        return error;
    units.emplace_back();
    if (!readUnit(value, units.back(), path.field("units").index(index)))
      return root.getError();
  }
  return units;
}

llvm::Expected<Plan> fsdp::schedule::parseJSON(StringRef text) {
  llvm::Expected<llvm::json::Value> value = parseStrictJson(text, "plan");
  if (!value)
    return value.takeError();
  llvm::json::Object *object = value->getAsObject();
  if (!object || object->getInteger("version") != 1)
    return llvm::createStringError("a plan is an object with \"version\": 1");
  if (llvm::Error error = checkKeys(*object, {"version", "units"}, "plan"))
    return error;
  llvm::json::Array *values = object->getArray("units");
  if (!values)
    return llvm::createStringError("the plan has no array \"units\"");
  llvm::Expected<std::vector<Unit>> units = readUnits(*values);
  if (!units)
    return units.takeError();
  Plan plan{std::move(*units)};
  if (std::optional<size_t> index = findRepeatedUnit(plan))
    return llvm::createStringError(
        "an earlier unit is called '" + plan.units[*index].name +
        "' too, at plan.units[" + std::to_string(*index) + "].name");
  return plan;
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
  SmallVector<Attribute> units;
  for (const Unit &unit : plan.units) {
    NamedAttrList fields;
    visitFields(unit, [&](StringRef name, const auto &value) {
      fields.set(name, attributeOf(b, value));
    });
    units.push_back(fields.getDictionary(context));
  }
  return b.getArrayAttr(units);
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

/// Reads a unit; gives what is wrong with it, or an empty string.
static std::string readUnit(DictionaryAttr dictionary, Unit &unit) {
  std::string problem;
  std::vector<std::string> known = fieldNames();
  for (NamedAttribute attribute : dictionary)
    if (!llvm::is_contained(known, attribute.getName().getValue()))
      return ("unknown key '" + attribute.getName().getValue() + "'").str() +
             didYouMean(attribute.getName().str(), known);
  visitFields(unit, [&](StringRef name, auto &field) {
    const char *wanted = take(dictionary.get(name), field);
    if (wanted && problem.empty())
      problem = ("'" + name + "' must be " + wanted).str();
  });
  return problem;
}

FailureOr<Plan> fsdp::schedule::planOf(ModuleOp module) {
  auto units = module->getAttrOfType<ArrayAttr>(dist::kPlanAttr);
  if (!units)
    return module.emitError("the module has no plan; run fsdp-plan first");
  Plan plan;
  for (auto [index, unit] : llvm::enumerate(units)) {
    plan.units.emplace_back();
    auto dictionary = dyn_cast<DictionaryAttr>(unit);
    std::string problem = dictionary ? readUnit(dictionary, plan.units.back())
                                     : "it must be a dictionary";
    if (!problem.empty())
      return module.emitError("fsdp.plan: unit ") << index << ": " << problem;
  }
  if (std::optional<size_t> index = findRepeatedUnit(plan))
    return module.emitError("fsdp.plan: unit ")
           << *index << ": an earlier unit is called '"
           << plan.units[*index].name << "' too";
  return plan;
}
