//===- Pickle.h - Python's pickles, read and never run ----------*- C++ -*-===//
//
// A pickle is a program for a small stack machine, and in Python it may call
// whatever it names. Here it calls nothing: what it would import is a name out
// of a list that the caller allows, what it would call is a record of the name
// and its arguments. Protocols 2 to 5. Sizes, depths and counts are checked
// before they are used, and no value can contain itself.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_DCP_PICKLE_H
#define FSDP_RUNTIME_CHECKPOINT_DCP_PICKLE_H

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace fsdp::checkpoint {

/// Values within values.
inline constexpr int kMaxPickleDepth = 64;
/// Values of one pickle: a checkpoint of 1000 tensors by 1000 ranks has fewer.
inline constexpr size_t kMaxPickleValues = size_t{1} << 26;
/// Values that wait to become part of others: two for each box of a checkpoint
/// that we write, of those of PyTorch a few thousand.
inline constexpr size_t kMaxPickleStack = size_t{1} << 22;
/// Entries of an object's state; classes of PyTorch have a few.
inline constexpr size_t kMaxPickleFields = 64;

/// What a pickle says, as a tree whose branches may be shared. Text lies where
/// the pickle does.
struct PickleValue {
  enum class Kind : uint8_t {
    None,
    Bool,       // integer
    Int,        // integer
    Float,      // number
    Text,       // text, UTF-8 as Python writes it, unchecked
    Bytes,      // text
    Tuple,      // items
    List,       // items
    Set,        // items
    Dict,       // items: key, value, key, value
    Global,     // text: "module.name", of the allowed ones
    Object,     // items: what is called, its arguments; state; entries
    Persistent, // items: the id
  };

  explicit PickleValue(Kind kind) : kind(kind) {}

  /// The value of a text key of a dictionary, or of an object's state that is
  /// one; null: there is none.
  const PickleValue *find(std::string_view key) const;
  /// Whether it is this name, or an object that calls this name.
  bool isGlobal(std::string_view name) const;
  bool isObjectOf(std::string_view name) const;

  Kind kind;
  uint8_t depth = 0;         // of what is within
  bool isPart = false;       // of another value; it does not change any more
  bool isRemembered = false; // has a place in the memo
  int64_t integer = 0;
  double number = 0;
  std::string_view text;
  std::vector<const PickleValue *> items;
  const PickleValue *state = nullptr; // of an object: what BUILD gave it
  PickleValue *entries = nullptr;     // of an object: its dictionary
};

/// Reads a whole pickle. Throws fsdp::Error, one line that begins with `origin`
/// and names the opcode and its place.
class Pickle {
public:
  /// `bytes` must outlive the object. `allowed` are names as "module.name".
  Pickle(std::string_view bytes, std::string origin,
         const std::vector<std::string_view> &allowed);

  const PickleValue &root() const { return *top; }

private:
  friend class PickleReader;
  std::deque<PickleValue> values;
  const PickleValue *top = nullptr;
};

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_DCP_PICKLE_H
