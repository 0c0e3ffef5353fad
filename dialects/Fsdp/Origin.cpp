//===- Origin.cpp - Where in a program something comes from ---------------===//
#include "dialects/Fsdp/Origin.h"
#include "dialects/Fsdp/Fsdp.h"
#include "dialects/NN/ModulePath.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::dist;

//===----------------------------------------------------------------------===//
// Phases
//===----------------------------------------------------------------------===//

static constexpr Phase kPhases[] = {Phase::Forward, Phase::Again,
                                    Phase::Backward, Phase::Update};

StringRef fsdp::dist::stringifyPhase(Phase phase) {
  switch (phase) {
  case Phase::Forward:
    return "fwd";
  case Phase::Again:
    return "again";
  case Phase::Backward:
    return "bwd";
  case Phase::Update:
    return "update";
  }
  llvm_unreachable("unknown phase");
}

Phase fsdp::dist::phaseOf(StringRef path, bool afterSeed) {
  if (nn::firstComponent(path) == nn::kOptimizerModule)
    return Phase::Update;
  return afterSeed ? Phase::Backward : Phase::Forward;
}

//===----------------------------------------------------------------------===//
// Words
//===----------------------------------------------------------------------===//

static constexpr char kSeparator = ' ', kNumber = '#';

std::string Origin::str() const {
  std::string words = stringifyPhase(phase).str();
  for (StringRef part : {path, op})
    if (!part.empty())
      (words += kSeparator) += part;
  if (index != 1)
    (words += kNumber) += std::to_string(index);
  return words;
}

bool Origin::isValid() const {
  if (op.empty())
    return !path.empty() && index == 1;
  return index >= 1 && op.find(kSeparator) == StringRef::npos &&
         op.find(kNumber) == StringRef::npos;
}

static llvm::Error problem(StringRef words, const Twine &what) {
  return llvm::createStringError("'" + words + "' is no origin: " + what);
}

/// "'fwd ', 'again ', 'bwd ' or 'update '".
static std::string listOfPhases() {
  std::string list;
  for (auto [i, phase] : llvm::enumerate(kPhases)) {
    if (i > 0)
      list += i + 1 == std::size(kPhases) ? " or " : ", ";
    list += ("'" + stringifyPhase(phase) + Twine(kSeparator) + "'").str();
  }
  return list;
}

/// What follows the phase of `words`.
static llvm::Expected<StringRef> parsePhase(StringRef words, Phase &phase) {
  size_t end = words.find(kSeparator);
  for (Phase one : kPhases)
    if (end != StringRef::npos &&
        words.take_front(end) == stringifyPhase(one)) {
      phase = one;
      return words.drop_front(end + 1);
    }
  return problem(words, "it has to begin with " + listOfPhases());
}

llvm::Expected<Origin> fsdp::dist::parseOrigin(StringRef words) {
  Origin origin;
  llvm::Expected<StringRef> rest = parsePhase(words, origin.phase);
  if (!rest)
    return rest.takeError();
  // A bucket may be called what its plan likes, with spaces.
  size_t space = rest->rfind(kSeparator);
  if (space != StringRef::npos)
    origin.path = rest->take_front(space);
  if (space == 0)
    return problem(words, "the path is empty");
  StringRef op = rest->drop_front(space + 1), number;
  size_t sign = op.find(kNumber);
  origin.op = op.take_front(sign);
  if (origin.op.empty())
    return problem(words, "the op has no name");
  if (sign == StringRef::npos)
    return origin;
  number = op.drop_front(sign + 1);
  if (number.starts_with("0") || number.getAsInteger(10, origin.index) ||
      origin.index < 2)
    return problem(words, "'" + number +
                              "' is no number of an op; the second is 'op#2'");
  return origin;
}

llvm::Expected<Origin> fsdp::dist::parseOriginOfPath(StringRef words) {
  Origin origin;
  llvm::Expected<StringRef> rest = parsePhase(words, origin.phase);
  if (!rest)
    return rest.takeError();
  origin.path = *rest;
  if (origin.path.empty())
    return problem(words, "the path is empty");
  return origin;
}

//===----------------------------------------------------------------------===//
// The attribute
//===----------------------------------------------------------------------===//

/// Before the words of what has no op: they could be those of an op too.
static constexpr llvm::StringLiteral kAll = "all";

Attribute OriginAttr::parse(AsmParser &parser, Type) {
  std::string words;
  if (parser.parseLess())
    return {};
  bool isPath = succeeded(parser.parseOptionalKeyword(kAll));
  SMLoc location = parser.getCurrentLocation();
  if (parser.parseString(&words) || parser.parseGreater())
    return {};
  llvm::Expected<Origin> origin =
      isPath ? parseOriginOfPath(words) : parseOrigin(words);
  if (origin)
    return get(parser.getContext(), *origin);
  parser.emitError(location) << llvm::toString(origin.takeError());
  return {};
}

void OriginAttr::print(AsmPrinter &printer) const {
  printer << "<";
  if (getOp().empty())
    printer << kAll << " ";
  printer.printString(getText());
  printer << ">";
}

OriginAttr fsdp::dist::originOf(Operation *op) {
  return op->getAttrOfType<OriginAttr>(kOriginAttr);
}

OriginAttr fsdp::dist::commonOrigin(ArrayRef<OriginAttr> origins) {
  OriginAttr first = origins.front();
  SmallVector<StringRef> paths;
  for (OriginAttr origin : origins) {
    if (origin.getPhase() != first.getPhase())
      return {};
    paths.push_back(origin.getPath());
  }
  std::string path = nn::commonName(paths);
  return OriginAttr::get(first.getContext(),
                         Origin{first.getPhase(), path, {}});
}
