//===- Pickle.cpp - Python's pickles, read and never run ------------------===//
#include "Pickle.h"
#include "PickleOpcodes.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Text.h"
#include <algorithm>
#include <cstring>

using namespace fsdp;
using namespace fsdp::checkpoint;

using Kind = PickleValue::Kind;

const PickleValue *PickleValue::find(std::string_view key) const {
  const PickleValue *dict = kind == Kind::Object ? state : this;
  if (!dict || dict->kind != Kind::Dict)
    return nullptr;
  for (size_t i = 0; i + 1 < dict->items.size(); i += 2)
    if (dict->items[i]->kind == Kind::Text && dict->items[i]->text == key)
      return dict->items[i + 1];
  return nullptr;
}

bool PickleValue::isGlobal(std::string_view name) const {
  return kind == Kind::Global && text == name;
}

bool PickleValue::isObjectOf(std::string_view name) const {
  return kind == Kind::Object && items[0]->isGlobal(name);
}

namespace {

/// A name out of the pickle, fit for a message.
std::string shown(std::string_view text) {
  constexpr size_t most = 80;
  return printableLine(text.substr(0, most)) +
         (text.size() > most ? "..." : "");
}

} // namespace

namespace fsdp::checkpoint {

/// The stack machine. Every opcode takes at least a byte and makes at most one
/// value, so that what is made is bounded by what is read.
class PickleReader {
public:
  PickleReader(Pickle &pickle, std::string_view bytes,
               const std::string &origin,
               const std::vector<std::string_view> &allowed)
      : values(pickle.values), bytes(bytes), origin(origin), allowed(allowed) {}

  const PickleValue *read();

private:
  [[noreturn]] void fail(const std::string &what) const;

  // Bytes.
  std::string_view take(uint64_t count);
  uint64_t number(int bytes);
  std::string_view line();

  // The stack.
  PickleValue *make(Kind kind);
  PickleValue *push(PickleValue *value);
  void mark();
  PickleValue *pop();
  PickleValue *last();
  /// What was pushed after the last mark, which goes too.
  std::vector<PickleValue *> popMark();

  // Values.
  void pushText(Kind kind, uint64_t size) {
    push(make(kind))->text = take(size);
  }
  void pushInt(int64_t value) { push(make(Kind::Int))->integer = value; }
  void pushBool(bool value) { push(make(Kind::Bool))->integer = value; }
  void pushLong(uint64_t size);
  void pushFloat();
  void pushGlobal(std::string_view module, std::string_view name);
  void stackGlobal();
  void pushTuple(size_t size);
  void pushItems(Kind kind);
  void pushObject(size_t parts);
  void build();
  void adopt(PickleValue *whole, PickleValue *part);
  void addItems(Kind kind, const std::vector<PickleValue *> &items);
  void setItems(const std::vector<PickleValue *> &items);
  void remember(uint64_t index);
  void recall(uint64_t index);

  void frame();
  void step(uint8_t opcode);
  bool stepConstant(uint8_t opcode);
  bool stepContainer(uint8_t opcode);
  bool stepItems(uint8_t opcode);

  std::deque<PickleValue> &values;
  std::string_view bytes;
  const std::string &origin;
  const std::vector<std::string_view> &allowed;
  size_t at = 0, opcodeAt = 0;
  std::vector<PickleValue *> stack, memo;
  std::vector<size_t> marks; // heights of the stack
};

} // namespace fsdp::checkpoint

void PickleReader::fail(const std::string &what) const {
  std::string opcode = opcodeAt < bytes.size()
                           ? opcodeName(static_cast<uint8_t>(bytes[opcodeAt]))
                           : "end";
  throw Error(origin + ": damaged or foreign pickle: " + opcode + " at byte " +
              std::to_string(opcodeAt) + " " + what);
}

std::string_view PickleReader::take(uint64_t count) {
  if (count > bytes.size() - at)
    fail("wants " + std::to_string(count) + " bytes, and " +
         std::to_string(bytes.size() - at) + " are left");
  std::string_view taken = bytes.substr(at, count);
  at += count;
  return taken;
}

uint64_t PickleReader::number(int size) {
  std::string_view digits = take(size);
  uint64_t value = 0;
  std::memcpy(&value, digits.data(), digits.size());
  return value;
}

std::string_view PickleReader::line() {
  size_t end = bytes.find('\n', at);
  if (end == std::string_view::npos)
    fail("has a name without end");
  std::string_view text = bytes.substr(at, end - at);
  at = end + 1;
  return text;
}

PickleValue *PickleReader::make(Kind kind) {
  if (values.size() == kMaxPickleValues)
    fail("produces more than " + std::to_string(kMaxPickleValues) + " values");
  return &values.emplace_back(kind);
}

PickleValue *PickleReader::push(PickleValue *value) {
  if (stack.size() == kMaxPickleStack)
    fail("has more than " + std::to_string(kMaxPickleStack) +
         " values on its stack");
  stack.push_back(value);
  return value;
}

/// What comes after a mark goes into one value, so that marks nest as values
/// do.
void PickleReader::mark() {
  if (marks.size() == kMaxPickleDepth)
    fail("nests values deeper than " + std::to_string(kMaxPickleDepth));
  marks.push_back(stack.size());
}

PickleValue *PickleReader::last() {
  if (stack.size() == (marks.empty() ? 0 : marks.back()))
    fail("takes from an empty stack");
  return stack.back();
}

PickleValue *PickleReader::pop() {
  PickleValue *value = last();
  stack.pop_back();
  return value;
}

std::vector<PickleValue *> PickleReader::popMark() {
  if (marks.empty())
    fail("has no mark");
  std::vector<PickleValue *> items(stack.begin() + marks.back(), stack.end());
  stack.resize(marks.back());
  marks.pop_back();
  return items;
}

void PickleReader::pushLong(uint64_t size) {
  std::string_view digits = take(size);
  if (size > sizeof(int64_t))
    fail("has an integer of more than 64 bits");
  int64_t value = 0;
  std::memcpy(&value, digits.data(), digits.size());
  // The sign is that of the last byte.
  if (size > 0 && size < sizeof value && digits.back() < 0)
    value -= int64_t{1} << (8 * size);
  pushInt(value);
}

void PickleReader::pushFloat() {
  uint64_t bits = __builtin_bswap64(number(8));
  double value;
  std::memcpy(&value, &bits, sizeof value);
  push(make(Kind::Float))->number = value;
}

void PickleReader::pushGlobal(std::string_view module, std::string_view name) {
  auto is = [&](std::string_view known) {
    return known.size() == module.size() + 1 + name.size() &&
           known.substr(0, module.size()) == module &&
           known[module.size()] == '.' &&
           known.substr(module.size() + 1) == name;
  };
  auto known = std::find_if(allowed.begin(), allowed.end(), is);
  if (known == allowed.end())
    fail("names '" + shown(module) + "." + shown(name) +
         "', which is not among the names that this file may have; nothing of "
         "it was run");
  push(make(Kind::Global))->text = *known;
}

void PickleReader::stackGlobal() {
  PickleValue *name = pop(), *module = pop();
  if (name->kind != Kind::Text || module->kind != Kind::Text)
    fail("has a name that is no text");
  pushGlobal(module->text, name->text);
}

/// What is part of a value does not change any more. So a value cannot come
/// into itself, not by way of others either, and depths stay true.
void PickleReader::adopt(PickleValue *whole, PickleValue *part) {
  if (whole->isPart || whole == part)
    fail("changes a value that is part of another one, as values do that "
         "contain themselves");
  if (part->depth + 1 > kMaxPickleDepth)
    fail("nests values deeper than " + std::to_string(kMaxPickleDepth));
  part->isPart = true;
  whole->depth = std::max(whole->depth, static_cast<uint8_t>(part->depth + 1));
}

void PickleReader::pushTuple(size_t size) {
  PickleValue *tuple = make(Kind::Tuple);
  tuple->items.resize(size);
  while (size-- > 0) {
    PickleValue *item = pop();
    adopt(tuple, item);
    tuple->items[size] = item;
  }
  push(tuple);
}

void PickleReader::pushItems(Kind kind) {
  std::vector<PickleValue *> items = popMark();
  push(make(kind));
  if (kind == Kind::Dict)
    setItems(items);
  else
    addItems(kind, items);
}

void PickleReader::addItems(Kind kind,
                            const std::vector<PickleValue *> &items) {
  PickleValue *whole = last();
  if (whole->kind != kind)
    fail("adds to what is no list or set");
  for (PickleValue *item : items) {
    adopt(whole, item);
    whole->items.push_back(item);
  }
}

void PickleReader::setItems(const std::vector<PickleValue *> &items) {
  PickleValue *whole = last();
  if (items.size() % 2 != 0)
    fail("has a key without a value");
  // An object may be a dictionary besides; its entries come in several batches.
  PickleValue *dict = whole;
  if (whole->kind == Kind::Object) {
    if (!whole->entries)
      whole->entries = make(Kind::Dict);
    dict = whole->entries;
  }
  if (dict->kind != Kind::Dict)
    fail("adds entries to what is no dictionary");
  for (PickleValue *item : items) {
    adopt(whole, item);
    dict->items.push_back(item);
  }
}

/// Of two parts, what is called and its arguments, or of three: by name too.
void PickleReader::pushObject(size_t parts) {
  PickleValue *object = make(Kind::Object);
  object->items.resize(parts);
  for (size_t i = parts; i-- > 0;) {
    PickleValue *part = pop();
    adopt(object, part);
    object->items[i] = part;
  }
  if (object->items[0]->kind != Kind::Global)
    fail("calls what is no name");
  if (object->items[1]->kind != Kind::Tuple)
    fail("has arguments that are no tuple");
  push(object);
}

void PickleReader::build() {
  PickleValue *state = pop(), *object = last();
  if (object->kind != Kind::Object)
    fail("gives a state to what is no object");
  if (object->state)
    fail("gives a state to an object for a second time");
  // Fields are looked for one by one, of every object anew.
  if (state->kind == Kind::Dict && state->items.size() / 2 > kMaxPickleFields)
    fail("gives an object more than " + std::to_string(kMaxPickleFields) +
         " fields");
  adopt(object, state);
  object->state = state;
}

void PickleReader::remember(uint64_t index) {
  // A larger index would only make us reserve memory.
  if (index > memo.size())
    fail("has the memo index " + std::to_string(index) + " after " +
         std::to_string(memo.size()) + " others; they count up");
  PickleValue *value = last();
  // Python does so once; else every byte could take a place.
  if (value->isRemembered)
    fail("remembers a value for a second time");
  value->isRemembered = true;
  if (index == memo.size())
    memo.push_back(value);
  memo[index] = value;
}

void PickleReader::recall(uint64_t index) {
  if (index >= memo.size() || !memo[index])
    fail("asks for memo " + std::to_string(index) + ", which nothing set");
  push(memo[index]);
}

void PickleReader::frame() {
  uint64_t size = number(8);
  if (size > bytes.size() - at)
    fail("has a frame of " + std::to_string(size) + " bytes, and " +
         std::to_string(bytes.size() - at) + " are left");
}

/// Opcodes that push what follows them.
bool PickleReader::stepConstant(uint8_t opcode) {
  switch (opcode) {
  case kNone:
    push(make(Kind::None));
    return true;
  case kNewTrue:
  case kNewFalse:
    pushBool(opcode == kNewTrue);
    return true;
  case kBinInt:
    pushInt(static_cast<int32_t>(number(4)));
    return true;
  case kBinInt1:
    pushInt(static_cast<int64_t>(number(1)));
    return true;
  case kBinInt2:
    pushInt(static_cast<int64_t>(number(2)));
    return true;
  case kLong1:
    pushLong(number(1));
    return true;
  case kLong4:
    pushLong(number(4));
    return true;
  case kBinFloat:
    pushFloat();
    return true;
  case kShortBinUnicode:
    pushText(Kind::Text, number(1));
    return true;
  case kBinUnicode:
    pushText(Kind::Text, number(4));
    return true;
  case kBinUnicode8:
    pushText(Kind::Text, number(8));
    return true;
  case kShortBinString:
  case kShortBinBytes:
    pushText(Kind::Bytes, number(1));
    return true;
  case kBinString:
  case kBinBytes:
    pushText(Kind::Bytes, number(4));
    return true;
  case kBinBytes8:
  case kByteArray8:
    pushText(Kind::Bytes, number(8));
    return true;
  case kGlobal: {
    std::string_view module = line();
    pushGlobal(module, line());
    return true;
  }
  default:
    return false;
  }
}

/// Opcodes that make tuples, lists, sets and dictionaries.
bool PickleReader::stepContainer(uint8_t opcode) {
  switch (opcode) {
  case kEmptyTuple:
    push(make(Kind::Tuple));
    return true;
  case kTuple1:
  case kTuple2:
  case kTuple3:
    pushTuple(opcode - kTuple1 + 1);
    return true;
  case kTuple:
    pushItems(Kind::Tuple);
    return true;
  case kEmptyList:
    push(make(Kind::List));
    return true;
  case kList:
    pushItems(Kind::List);
    return true;
  case kEmptySet:
    push(make(Kind::Set));
    return true;
  case kFrozenSet:
    pushItems(Kind::Set);
    return true;
  case kEmptyDict:
    push(make(Kind::Dict));
    return true;
  case kDict:
    pushItems(Kind::Dict);
    return true;
  default:
    return false;
  }
}

/// Opcodes that fill them, and those that make objects of them.
bool PickleReader::stepItems(uint8_t opcode) {
  switch (opcode) {
  case kAppend:
    addItems(Kind::List, {pop()});
    return true;
  case kAppends:
    addItems(Kind::List, popMark());
    return true;
  case kAddItems:
    addItems(Kind::Set, popMark());
    return true;
  case kSetItem: {
    PickleValue *value = pop(), *key = pop();
    setItems({key, value});
    return true;
  }
  case kSetItems:
    setItems(popMark());
    return true;
  case kReduce:
  case kNewObj:
    pushObject(2);
    return true;
  case kNewObjEx:
    pushObject(3);
    return true;
  case kBuild:
    build();
    return true;
  default:
    return false;
  }
}

void PickleReader::step(uint8_t opcode) {
  if (stepConstant(opcode) || stepContainer(opcode) || stepItems(opcode))
    return;
  switch (opcode) {
  case kFrame:
    return frame();
  case kMark:
    return mark();
  case kPop:
    pop();
    return;
  case kPopMark:
    popMark();
    return;
  case kDup:
    push(last());
    return;
  case kStackGlobal:
    return stackGlobal();
  case kBinPersId: {
    PickleValue *persistent = make(Kind::Persistent), *id = pop();
    adopt(persistent, id);
    persistent->items = {id};
    push(persistent);
    return;
  }
  case kMemoize:
    return remember(memo.size());
  case kBinPut:
    return remember(number(1));
  case kLongBinPut:
    return remember(number(4));
  case kBinGet:
    return recall(number(1));
  case kLongBinGet:
    return recall(number(4));
  default:
    fail("is no opcode that checkpoints of tensors have");
  }
}

const PickleValue *PickleReader::read() {
  if (bytes.size() < 2 || static_cast<uint8_t>(bytes[0]) != kProto)
    fail("is not how a pickle of protocol 2 or later begins");
  int protocol = static_cast<uint8_t>(bytes[1]);
  if (protocol < 2 || protocol > 5)
    fail("says protocol " + std::to_string(protocol) + "; 2 to 5 can be read");
  at = 2;
  while (true) {
    opcodeAt = at;
    auto opcode = static_cast<uint8_t>(number(1));
    if (opcode == kStop)
      break;
    step(opcode);
  }
  const PickleValue *value = pop();
  if (!stack.empty() || !marks.empty())
    fail("leaves values on its stack");
  if (at != bytes.size())
    fail("is followed by " + std::to_string(bytes.size() - at) + " bytes");
  return value;
}

Pickle::Pickle(std::string_view bytes, std::string origin,
               const std::vector<std::string_view> &allowed)
    : top(PickleReader(*this, bytes, origin, allowed).read()) {}
