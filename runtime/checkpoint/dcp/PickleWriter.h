//===- PickleWriter.h - Pickles that Python reads ---------------*- C++ -*-===//
//
// Writes the opcodes of protocol 2, which PyTorch's restricted reader takes
// too. Names and texts are written once and remembered.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_PICKLEWRITER_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_PICKLEWRITER_H

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::checkpoint {

class PickleWriter {
public:
  PickleWriter();

  PickleWriter &none();
  PickleWriter &boolean(bool value);
  PickleWriter &integer(int64_t value);
  PickleWriter &number(double value);
  PickleWriter &text(std::string_view value);
  PickleWriter &global(std::string_view module, std::string_view name);

  PickleWriter &mark();
  /// A tuple, list entries or dictionary entries of all after the mark.
  PickleWriter &tuple();
  PickleWriter &appends();
  PickleWriter &setItems();
  PickleWriter &emptyTuple();
  PickleWriter &emptyList();
  PickleWriter &emptyDict();
  /// A tuple of the last value.
  PickleWriter &tupleOfOne();
  /// Calls the value before the last one with the last one, a tuple.
  PickleWriter &reduce();
  /// A new object of a class, empty.
  PickleWriter &newObject(std::string_view module, std::string_view name);
  /// Gives the object before the last value this value as its state.
  PickleWriter &build();
  PickleWriter &persistent();

  /// A tuple of numbers; torch.Size of it.
  PickleWriter &integers(const std::vector<int64_t> &values);
  PickleWriter &size(const std::vector<int64_t> &values);

  /// The end of the pickle, and all of it.
  std::string finish();

private:
  PickleWriter &op(char code);
  void raw(uint64_t value, int bytes);
  /// Whether `key` was written before: then it is fetched.
  bool fetch(const std::string &key);
  void remember(const std::string &key);

  std::string out;
  std::map<std::string, uint32_t> memo;
};

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_PICKLEWRITER_H
