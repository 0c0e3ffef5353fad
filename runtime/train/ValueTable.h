//===- ValueTable.h - What the calls of an artifact produce -----*- C++ -*-===//
//
// The table that fsdp-compile writes beside the manifest, values.json: which
// call of a program writes which values into which bytes of the arena, and
// what people call them. Like the manifest it is believed in nothing.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_TRAIN_VALUETABLE_H
#define FSDP_RUNTIME_TRAIN_VALUETABLE_H

#include "fsdp/Artifact/Loader.h"

namespace fsdp {

/// What a call writes whole: elements of floating point, one after another.
struct MadeValue {
  int64_t call; // of its program, from 0
  size_t name, type;
  uint64_t offset; // in the arena
};

struct ValueTable {
  struct Type {
    rt::DType dtype;
    std::vector<int64_t> shape;
  };
  struct Program {
    int64_t calls = 0;
    std::vector<MadeValue> values; // in the order of their calls
  };

  /// "fwd layers.3.attention.wq linear".
  std::vector<std::string> names;
  std::vector<Type> types;
  std::vector<Program> programs; // as in the manifest
};

/// Reads the table of an artifact. Throws fsdp::Error if there is none, if it
/// is damaged, or if it is another artifact's.
ValueTable readValueTable(const rt::ArtifactFolder &artifact);

/// By program, by call: the name of what the call produces, of its first value
/// where there are several; empty where the table has none.
std::vector<std::vector<std::string>> callNames(const ValueTable &table);

} // namespace fsdp

#endif // FSDP_RUNTIME_TRAIN_VALUETABLE_H
