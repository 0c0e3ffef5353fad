//===- Plan.cpp - Rules, checks and text forms of plans -------------------===//

#include "fsdp/Schedule/Plan.h"
#include "dialects/Fsdp/Fsdp.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace fsdp::schedule;
using namespace mlir;

//===----------------------------------------------------------------------===//
// The rule-based planner
//===----------------------------------------------------------------------===//

/// "layers.3" for "layers.3.attention.wq.weight"; empty without a number.
static StringRef numberedBlock(StringRef parameter) {
  size_t begin = 0;
  while (begin < parameter.size()) {
    size_t end = parameter.find('.', begin);
    StringRef part = parameter.slice(begin, end);
    if (!part.empty() && llvm::all_of(part, llvm::isDigit))
      return parameter.take_front(begin + part.size());
    if (end == StringRef::npos)
      break;
    begin = end + 1;
  }
  return {};
}

static StringRef firstComponent(StringRef parameter) {
  return parameter.take_until([](char c) { return c == '.'; });
}

/// Blocks are units; modules before the first block are units of their own;
/// what follows the last block (norm, output) is needed together, so it is one
/// unit.
static std::string unitName(StringRef parameter, bool afterBlocks) {
  StringRef block = numberedBlock(parameter);
  if (!block.empty())
    return block.str();
  return afterBlocks ? "head" : firstComponent(parameter).str();
}

Plan fsdp::schedule::planByRule(ArrayRef<StringRef> parameters,
                                const PlanOptions &options) {
  Plan plan;
  bool seenBlock = false;
  for (StringRef parameter : parameters) {
    bool isBlock = !numberedBlock(parameter).empty();
    seenBlock |= isBlock;
    std::string name = options.units == UnitPolicy::Whole
                           ? "model"
                           : unitName(parameter, seenBlock && !isBlock);
    if (plan.units.empty() || plan.units.back().name != name) {
      Unit unit;
      unit.name = name;
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
// JSON
//===----------------------------------------------------------------------===//

llvm::json::Value fsdp::schedule::toJSON(const Plan &plan) {
  llvm::json::Array units;
  for (const Unit &unit : plan.units) {
    llvm::json::Array parameters;
    for (const std::string &parameter : unit.parameters)
      parameters.push_back(parameter);
    units.push_back(
        llvm::json::Object{{"name", unit.name},
                           {"parameters", std::move(parameters)},
                           {"bucket", unit.bucket},
                           {"reshard_after_forward", unit.reshardAfterForward},
                           {"overlap", unit.overlap},
                           {"forward_prefetch", unit.forwardPrefetch},
                           {"backward_prefetch", unit.backwardPrefetch},
                           {"reduce_defer", unit.reduceDefer}});
  }
  return llvm::json::Object{{"version", 1}, {"units", std::move(units)}};
}

static bool readUnit(const llvm::json::Value &value, Unit &unit,
                     llvm::json::Path path) {
  llvm::json::ObjectMapper map(value, path);
  return map && map.map("name", unit.name) &&
         map.map("parameters", unit.parameters) &&
         map.mapOptional("bucket", unit.bucket) &&
         map.mapOptional("reshard_after_forward", unit.reshardAfterForward) &&
         map.mapOptional("overlap", unit.overlap) &&
         map.mapOptional("forward_prefetch", unit.forwardPrefetch) &&
         map.mapOptional("backward_prefetch", unit.backwardPrefetch) &&
         map.mapOptional("reduce_defer", unit.reduceDefer);
}

llvm::Expected<Plan> fsdp::schedule::parseJSON(StringRef text) {
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(text);
  if (!value)
    return value.takeError();
  llvm::json::Path::Root root("plan");
  llvm::json::Path path(root);
  llvm::json::Object *object = value->getAsObject();
  if (!object || object->getInteger("version") != 1)
    return llvm::createStringError("a plan is an object with \"version\": 1");
  llvm::json::Array *units = object->getArray("units");
  if (!units)
    return llvm::createStringError("the plan has no array \"units\"");
  Plan plan;
  for (auto [index, unit] : llvm::enumerate(*units)) {
    plan.units.emplace_back();
    if (!readUnit(unit, plan.units.back(), path.field("units").index(index)))
      return root.getError();
  }
  return plan;
}

//===----------------------------------------------------------------------===//
// Attribute
//===----------------------------------------------------------------------===//

Attribute fsdp::schedule::toAttribute(MLIRContext *context, const Plan &plan) {
  Builder b(context);
  SmallVector<Attribute> units;
  for (const Unit &unit : plan.units) {
    SmallVector<StringRef> parameters(unit.parameters.begin(),
                                      unit.parameters.end());
    units.push_back(b.getDictionaryAttr(
        {b.getNamedAttr("name", b.getStringAttr(unit.name)),
         b.getNamedAttr("parameters", b.getStrArrayAttr(parameters)),
         b.getNamedAttr("bucket", b.getBoolAttr(unit.bucket)),
         b.getNamedAttr("reshard_after_forward",
                        b.getBoolAttr(unit.reshardAfterForward)),
         b.getNamedAttr("overlap", b.getBoolAttr(unit.overlap)),
         b.getNamedAttr("forward_prefetch",
                        b.getI64IntegerAttr(unit.forwardPrefetch)),
         b.getNamedAttr("backward_prefetch",
                        b.getI64IntegerAttr(unit.backwardPrefetch)),
         b.getNamedAttr("reduce_defer",
                        b.getI64IntegerAttr(unit.reduceDefer))}));
  }
  return b.getArrayAttr(units);
}

/// Reads a unit; false if a field is missing or has the wrong type.
static bool readUnit(DictionaryAttr dictionary, Unit &unit) {
  auto boolean = [&](StringRef key, bool &value) {
    auto attr = dictionary.getAs<BoolAttr>(key);
    if (attr)
      value = attr.getValue();
    return static_cast<bool>(attr);
  };
  auto integer = [&](StringRef key, int64_t &value) {
    auto attr = dictionary.getAs<IntegerAttr>(key);
    if (attr)
      value = attr.getInt();
    return static_cast<bool>(attr);
  };
  auto name = dictionary.getAs<StringAttr>("name");
  auto parameters = dictionary.getAs<ArrayAttr>("parameters");
  if (!name || !parameters)
    return false;
  unit.name = name.str();
  for (Attribute parameter : parameters) {
    auto text = dyn_cast<StringAttr>(parameter);
    if (!text)
      return false;
    unit.parameters.push_back(text.str());
  }
  return boolean("bucket", unit.bucket) &&
         boolean("reshard_after_forward", unit.reshardAfterForward) &&
         boolean("overlap", unit.overlap) &&
         integer("forward_prefetch", unit.forwardPrefetch) &&
         integer("backward_prefetch", unit.backwardPrefetch) &&
         integer("reduce_defer", unit.reduceDefer);
}

FailureOr<Plan> fsdp::schedule::planOf(ModuleOp module) {
  auto units = module->getAttrOfType<ArrayAttr>(dist::kPlanAttr);
  if (!units)
    return module.emitError("has no plan; run fsdp-plan first");
  Plan plan;
  for (auto [index, unit] : llvm::enumerate(units)) {
    plan.units.emplace_back();
    auto dictionary = dyn_cast<DictionaryAttr>(unit);
    if (!dictionary || !readUnit(dictionary, plan.units.back()))
      return module.emitError("fsdp.plan: unit ")
             << index << " is not well formed: " << unit;
  }
  return plan;
}
