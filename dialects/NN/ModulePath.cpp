//===- ModulePath.cpp - Which module an op belongs to ---------------------===//
#include "dialects/NN/ModulePath.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fsdp;

static constexpr char kCall = '#';

static bool isNumber(StringRef component) {
  return !component.empty() && llvm::all_of(component, llvm::isDigit);
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

StringRef nn::parentOf(StringRef path) {
  size_t dot = path.rfind('.');
  return dot == StringRef::npos ? StringRef() : path.take_front(dot);
}

StringRef nn::moduleOfParameter(StringRef parameter) {
  return parentOf(parameter);
}

StringRef nn::shortParameterName(StringRef parameter) {
  parameter.consume_back(".weight");
  return parameter;
}

StringRef nn::firstComponent(StringRef path) {
  return withoutCall(path.take_until([](char c) { return c == '.'; }));
}

StringRef nn::blockOf(StringRef path) {
  path = withoutCall(path);
  for (size_t begin = 0, end; begin < path.size(); begin = end + 1) {
    end = std::min(path.find('.', begin), path.size());
    if (isNumber(path.slice(begin, end)))
      return path.take_front(end);
  }
  return {};
}

/// "wq" of "layers.3.wq".
static StringRef lastComponent(StringRef path) {
  return path.drop_front(path.rfind('.') + 1);
}

StringRef nn::blockNumberOf(StringRef path) {
  return lastComponent(blockOf(path));
}

StringRef nn::blockListOf(StringRef path) {
  return lastComponent(parentOf(blockOf(path)));
}

std::string nn::callPath(StringRef path, unsigned call) {
  return call == 1 ? path.str() : (path + Twine(kCall) + Twine(call)).str();
}

unsigned nn::callOf(StringRef path) {
  unsigned call = 1;
  size_t at = path.rfind(kCall);
  // What does not parse is part of the name.
  if (at == StringRef::npos || path.drop_front(at + 1).getAsInteger(10, call))
    return 1;
  return call;
}

StringRef nn::withoutCall(StringRef path) {
  size_t at = path.rfind(kCall);
  return at != StringRef::npos && isNumber(path.drop_front(at + 1))
             ? path.take_front(at)
             : path;
}

std::string nn::commonPath(ArrayRef<StringRef> paths) {
  if (paths.empty())
    return {};
  if (llvm::all_equal(paths))
    return paths.front().str();
  SmallVector<StringRef> common;
  withoutCall(paths.front()).split(common, '.');
  for (StringRef path : paths.drop_front()) {
    SmallVector<StringRef> parts;
    withoutCall(path).split(parts, '.');
    size_t same = 0, limit = std::min(common.size(), parts.size());
    while (same < limit && common[same] == parts[same])
      ++same;
    common.truncate(same);
  }
  return llvm::join(common, ".");
}

//===----------------------------------------------------------------------===//
// Names that begin with a path
//===----------------------------------------------------------------------===//

std::string nn::withoutNumbers(StringRef name) {
  SmallVector<StringRef> parts;
  name.split(parts, '.');
  for (StringRef &part : parts)
    if (isNumber(part))
      part = "*";
  return llvm::join(parts, ".");
}

static constexpr llvm::StringLiteral kLabel = ": ";

std::string nn::labelOf(StringRef place, StringRef what) {
  return (place + kLabel + what).str();
}

std::string nn::labelWithoutNumbers(StringRef label) {
  StringRef place = label.take_front(label.find(kLabel));
  return withoutNumbers(place) + label.drop_front(place.size()).str();
}

std::string nn::commonName(ArrayRef<StringRef> names) {
  StringRef first = names.front();
  if (llvm::all_equal(names))
    return first.str();
  size_t prefix = first.size(), suffix = first.size();
  for (StringRef name : names.drop_front()) {
    size_t limit = std::min(first.size(), name.size());
    size_t same = 0;
    while (same < limit && first[same] == name[same])
      ++same;
    prefix = std::min(prefix, same);
    same = 0;
    while (same < limit &&
           first[first.size() - 1 - same] == name[name.size() - 1 - same])
      ++same;
    suffix = std::min(suffix, same);
  }
  // Numbers are replaced as a whole.
  while (prefix > 0 && llvm::isDigit(first[prefix - 1]))
    --prefix;
  suffix = std::min(suffix, first.size() - prefix);
  while (suffix > 0 && llvm::isDigit(first[first.size() - suffix]))
    --suffix;
  return (first.take_front(prefix) + "*" + first.take_back(suffix)).str();
}

StringRef nn::withoutBlock(StringRef name) {
  for (size_t begin = 0, dot; (dot = name.find('.', begin)) != StringRef::npos;
       begin = dot + 1) {
    StringRef part = name.slice(begin, dot);
    if (part == "*" || isNumber(part))
      return name.drop_front(dot + 1);
  }
  return name;
}

bool nn::isFragment(StringRef name) {
  auto [before, after] = name.split('*');
  return (!after.empty() && llvm::isAlnum(after.front())) ||
         (!before.empty() && after.size() + before.size() < name.size() &&
          llvm::isAlnum(before.back()));
}

//===----------------------------------------------------------------------===//
// Ops
//===----------------------------------------------------------------------===//

StringAttr nn::moduleOf(Operation *op) {
  return op->getAttrOfType<StringAttr>(kModuleAttr);
}

StringAttr nn::moduleOfValue(Value value) {
  Operation *op = value.getDefiningOp();
  return op ? moduleOf(op) : StringAttr();
}

StringRef nn::modulePathOf(Operation *op) {
  StringAttr module = moduleOf(op);
  return module ? module.getValue() : StringRef();
}

void nn::setModule(Operation *op, StringAttr module) {
  if (module)
    op->setAttr(kModuleAttr, module);
  else
    op->removeAttr(kModuleAttr);
}

StringAttr nn::commonModule(ArrayRef<Operation *> ops) {
  SmallVector<StringRef> paths;
  for (Operation *op : ops) {
    StringAttr module = moduleOf(op);
    if (!module)
      return {};
    paths.push_back(module);
  }
  std::string common = commonPath(paths);
  return common.empty() ? StringAttr()
                        : StringAttr::get(ops.front()->getContext(), common);
}

void nn::nameLocations(Operation *root) {
  root->walk([](Operation *op) {
    StringAttr module = moduleOf(op);
    if (!module)
      return;
    // A value's name has no room for the sign of a call.
    StringRef name = withoutCall(module);
    auto named = op->getLoc()->findInstanceOf<NameLoc>();
    if (!named || named.getName() != name)
      op->setLoc(
          NameLoc::get(StringAttr::get(op->getContext(), name), op->getLoc()));
  });
}

nn::ModuleScope::ModuleScope(OpBuilder &builder, StringAttr module)
    : builder(builder), outer(builder.getListener()), module(module) {
  builder.setListener(this);
}

nn::ModuleScope::~ModuleScope() { builder.setListener(outer); }

void nn::ModuleScope::notifyOperationInserted(Operation *op,
                                              OpBuilder::InsertPoint previous) {
  bool isNew = !previous.isSet();
  bool belongs = !op->hasTrait<OpTrait::ConstantLike>() &&
                 !op->hasTrait<OpTrait::IsTerminator>();
  if (isNew && module && belongs && !op->hasAttr(kModuleAttr))
    setModule(op, module);
  if (outer)
    outer->notifyOperationInserted(op, previous);
}
