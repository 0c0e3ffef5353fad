//===- Index.h - What the files of a checkpoint say -------------*- C++ -*-===//
//
// index.json, the marker beside it, and the records with which ranks say that
// their part is written. The texts are the same for the same contents; parsers
// believe nothing: what they return is whole and consistent in itself.
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_RUNTIME_CHECKPOINT_NATIVE_INDEX_H
#define FSDP_RUNTIME_CHECKPOINT_NATIVE_INDEX_H

#include "fsdp/Artifact/Manifest.h"
#include "runtime/checkpoint/store/Contents.h"
#include "runtime/checkpoint/store/RunState.h"
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace fsdp::checkpoint {

struct Index {
  RunState state;
  std::optional<rt::ModelInfo> model;
  Contents contents;
};

/// What one rank has written in one attempt.
struct IndexPart {
  std::string attempt;
  Contents contents;
};

// Names in the directory of a step.
inline constexpr char kIndexName[] = "index.json";
inline constexpr char kMarkerName[] = "committed";
/// "rank-00003" and `suffix`.
std::string rankFileName(int64_t rank, const char *suffix);
inline constexpr char kTensorsSuffix[] = ".safetensors";
inline constexpr char kPartSuffix[] = ".json";
/// What follows the name of a file that is being written, before the
/// number of a process.
inline constexpr char kPartialFile[] = ".partial-";
/// Whether a save makes such a file, on the way or at the end.
bool isOurFile(const std::string &name);

std::string indexText(const Index &index);
std::string partText(const IndexPart &part);
/// The one text that the marker may have.
std::string markerText(const std::string &indexText);

/// Throw fsdp::Error that begins with `origin` (a path) and names the tensor.
Index parseIndex(const std::string &text, const std::string &origin);
IndexPart parsePart(const std::string &text, const std::string &origin);

} // namespace fsdp::checkpoint

#endif // FSDP_RUNTIME_CHECKPOINT_NATIVE_INDEX_H
