//===- Decision.cpp - The attribute #fsdp.decision ------------------------===//
#include "dialects/Fsdp/Decision.h"
#include "fsdp/Support/NearestName.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

//===----------------------------------------------------------------------===//
// Fields
//===----------------------------------------------------------------------===//

StringRef fsdp::dist::nameOf(DecidedOps ops) {
  switch (ops) {
  case DecidedOps::Values:
    return "values of the forward pass that the backward pass needs";
  case DecidedOps::Collectives:
    return "collectives";
  case DecidedOps::ParameterCollectives:
    return "collectives that move parameters";
  case DecidedOps::Gathers:
    return "gathers";
  case DecidedOps::Reductions:
    return "reductions";
  }
  llvm_unreachable("unknown kind of ops");
}

Decision::Decision() {
  forEachDecisionField(
      [&](const auto &field) { field.in(*this) = field.initial; });
}

bool Decision::operator==(const Decision &other) const {
  bool equal = true;
  forEachDecisionField([&](const auto &field) {
    equal = equal && field.in(*this) == field.in(other);
  });
  return equal;
}

llvm::hash_code fsdp::dist::hash_value(const Decision &decision) {
  llvm::hash_code hash(0);
  forEachDecisionField([&](const auto &field) {
    hash = llvm::hash_combine(hash, field.in(decision));
  });
  return hash;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kAgain = "again";

static ParseResult parseValue(AsmParser &parser, bool &value) {
  if (succeeded(parser.parseOptionalKeyword("true"))) {
    value = true;
    return success();
  }
  value = false;
  return parser.parseKeyword("false", ": true or false");
}
static ParseResult parseValue(AsmParser &parser, int64_t &value) {
  return parser.parseInteger(value);
}
static ParseResult parseValue(AsmParser &parser, std::string &value) {
  return parser.parseString(&value);
}

static void printValue(AsmPrinter &printer, bool value) {
  printer << (value ? "true" : "false");
}
static void printValue(AsmPrinter &printer, int64_t value) { printer << value; }
static void printValue(AsmPrinter &printer, const std::string &value) {
  printer.printString(value);
}

/// The value of the field `name`; `isKnown` says whether there is such a field.
static ParseResult parseField(AsmParser &parser, StringRef name,
                              Decision &decision, bool &isKnown) {
  ParseResult result = success();
  isKnown = false;
  forEachDecisionField([&](const auto &field) {
    if (field.name != name)
      return;
    isKnown = true;
    result = parseValue(parser, field.in(decision));
  });
  return result;
}

static std::vector<std::string> fieldNames() {
  std::vector<std::string> names;
  forEachDecisionField(
      [&](const auto &field) { names.push_back(field.name.str()); });
  return names;
}

/// `<bucket = "layers.0", prefetch = 1>`; with `mayBeAgain`, also `again` and
/// such a decision, which has none itself.
static DecisionAttr parseDecision(AsmParser &parser, bool mayBeAgain) {
  Decision decision;
  DecisionAttr again;
  llvm::StringSet<> seen;
  SMLoc start = parser.getCurrentLocation();
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    SMLoc location = parser.getCurrentLocation();
    if (parser.parseKeywordOrString(&name) || parser.parseEqual())
      return failure();
    if (!seen.insert(name).second)
      return parser.emitError(location) << "'" << name << "' appears twice";
    if (mayBeAgain && name == kAgain) {
      again = parseDecision(parser, /*mayBeAgain=*/false);
      return success(again != nullptr);
    }
    bool isKnown;
    ParseResult result = parseField(parser, name, decision, isKnown);
    if (!isKnown)
      return parser.emitError(location)
             << "a decision has no field '" << name << "'"
             << didYouMean(name, fieldNames());
    return result;
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseOne))
    return {};
  return DecisionAttr::getChecked([&] { return parser.emitError(start); },
                                  parser.getContext(), decision, again);
}

Attribute DecisionAttr::parse(AsmParser &parser, Type) {
  return parseDecision(parser, /*mayBeAgain=*/true);
}

void DecisionAttr::print(AsmPrinter &printer) const {
  StringRef separator;
  auto printName = [&](StringRef name) {
    printer << separator << name << " = ";
    separator = ", ";
  };
  printer << "<";
  forEachDecisionField([&](const auto &field) {
    const auto &value = field.in(getDecision());
    if (value == field.initial)
      return;
    printName(field.name);
    printValue(printer, value);
  });
  if (getAgain()) {
    printName(kAgain);
    getAgain().print(printer);
  }
  printer << ">";
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

LogicalResult
DecisionAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     Decision decision, DecisionAttr again) {
  LogicalResult result = success();
  forEachDecisionField([&](const auto &field) { // 1
    StringRef problem = problemOf(field.domain, field.in(decision));
    if (!problem.empty() && succeeded(result))
      result = emitError() << field.name << ": " << problem;
  });
  if (succeeded(result) && again && again.getAgain()) // 2
    return emitError() << "what is computed again has no '" << kAgain
                       << "' of its own";
  return result;
}

Decision fsdp::dist::decisionOf(Operation *op) {
  auto decision = op->getAttrOfType<DecisionAttr>(kDecisionAttr);
  return decision ? decision.getDecision() : Decision();
}

/// Whether a field can say something of `op`.
static bool isAbout(DecidedOps ops, Operation *op) {
  auto collective = dyn_cast<CollectiveOpInterface>(op);
  switch (ops) {
  case DecidedOps::Values:
    return collective || (isa_and_nonnull<nn::NNDialect>(op->getDialect()) &&
                          op->getNumResults() > 0 && isMemoryEffectFree(op));
  case DecidedOps::Collectives:
    return collective;
  case DecidedOps::ParameterCollectives:
    return collective && !firstParameterOf(op).empty();
  case DecidedOps::Gathers:
    return collective && collective.isGather();
  case DecidedOps::Reductions:
    return collective && collective.isReduction();
  }
  llvm_unreachable("unknown kind of ops");
}

static LogicalResult verifyFields(Operation *op, const Decision &decision) {
  LogicalResult result = success();
  forEachDecisionField([&](const auto &field) {
    if (field.in(decision) == field.initial || isAbout(field.about, op) ||
        failed(result))
      return;
    result = op->emitOpError("has '")
             << field.name << "' in its '" << kDecisionAttr
             << "', which is about " << nameOf(field.about);
  });
  return result;
}

LogicalResult fsdp::dist::verifyDecision(Operation *op, Attribute attribute) {
  auto decision = dyn_cast<DecisionAttr>(attribute);
  if (!decision || !isAbout(DecidedOps::Values, op))
    return op->emitOpError("needs '")
           << kDecisionAttr
           << "' to be a #fsdp.decision on a collective or an op that computes";
  if (failed(verifyFields(op, decision.getDecision())))
    return failure();
  if (!decision.getAgain())
    return success();
  if (!isAbout(DecidedOps::Collectives, op))
    return op->emitOpError("has '") << kAgain << "' in its '" << kDecisionAttr
                                    << "', which is about collectives";
  if (!decision.getDecision().recompute)
    return op->emitOpError("has '")
           << kAgain << "' in its '" << kDecisionAttr
           << "', but nothing says that it is computed again; add recompute = "
              "true";
  if (decision.getAgain().getDecision().recompute)
    return op->emitOpError("has 'recompute' in the '")
           << kAgain << "' of its '" << kDecisionAttr
           << "'; what is computed again is not computed a third time";
  return verifyFields(op, decision.getAgain().getDecision());
}
