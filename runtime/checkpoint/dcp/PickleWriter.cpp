//===- PickleWriter.cpp - Pickles that Python reads -----------------------===//
#include "PickleWriter.h"
#include <cstring>
#include <limits>

using namespace fsdp::checkpoint;

PickleWriter::PickleWriter() : out("\x80\x02") {}

PickleWriter &PickleWriter::op(char code) {
  out.push_back(code);
  return *this;
}

void PickleWriter::raw(uint64_t value, int bytes) {
  out.append(reinterpret_cast<const char *>(&value), bytes);
}

bool PickleWriter::fetch(const std::string &key) {
  auto known = memo.find(key);
  if (known == memo.end())
    return false;
  op(known->second < 256 ? 'h' : 'j');
  raw(known->second, known->second < 256 ? 1 : 4);
  return true;
}

void PickleWriter::remember(const std::string &key) {
  auto index = static_cast<uint32_t>(memo.size());
  memo.emplace(key, index);
  op(index < 256 ? 'q' : 'r');
  raw(index, index < 256 ? 1 : 4);
}

PickleWriter &PickleWriter::none() { return op('N'); }
PickleWriter &PickleWriter::boolean(bool value) {
  return op(value ? '\x88' : '\x89');
}

PickleWriter &PickleWriter::integer(int64_t value) {
  if (value >= 0 && value < 256) {
    op('K');
    raw(value, 1);
  } else if (value >= std::numeric_limits<int32_t>::min() &&
             value <= std::numeric_limits<int32_t>::max()) {
    op('J');
    raw(value, 4);
  } else {
    op('\x8a');
    raw(8, 1);
    raw(value, 8);
  }
  return *this;
}

PickleWriter &PickleWriter::number(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  op('G');
  raw(__builtin_bswap64(bits), 8);
  return *this;
}

PickleWriter &PickleWriter::text(std::string_view value) {
  std::string key = "'" + std::string(value);
  if (fetch(key))
    return *this;
  op('X');
  raw(value.size(), 4);
  out.append(value);
  remember(key);
  return *this;
}

PickleWriter &PickleWriter::global(std::string_view module,
                                   std::string_view name) {
  std::string key = std::string(module) + "\n" + std::string(name) + "\n";
  if (fetch(key))
    return *this;
  op('c');
  out.append(key);
  remember(key);
  return *this;
}

PickleWriter &PickleWriter::mark() { return op('('); }
PickleWriter &PickleWriter::tuple() { return op('t'); }
PickleWriter &PickleWriter::appends() { return op('e'); }
PickleWriter &PickleWriter::setItems() { return op('u'); }
PickleWriter &PickleWriter::emptyTuple() { return op(')'); }
PickleWriter &PickleWriter::emptyList() { return op(']'); }
PickleWriter &PickleWriter::emptyDict() { return op('}'); }
PickleWriter &PickleWriter::tupleOfOne() { return op('\x85'); }
PickleWriter &PickleWriter::reduce() { return op('R'); }
PickleWriter &PickleWriter::build() { return op('b'); }
PickleWriter &PickleWriter::persistent() { return op('Q'); }

PickleWriter &PickleWriter::newObject(std::string_view module,
                                      std::string_view name) {
  return global(module, name).emptyTuple().op('\x81');
}

PickleWriter &PickleWriter::integers(const std::vector<int64_t> &values) {
  mark();
  for (int64_t value : values)
    integer(value);
  return tuple();
}

PickleWriter &PickleWriter::size(const std::vector<int64_t> &values) {
  return global("torch", "Size").integers(values).tupleOfOne().reduce();
}

std::string PickleWriter::finish() {
  op('.');
  return std::move(out);
}
