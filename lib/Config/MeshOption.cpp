//===- MeshOption.cpp - The mesh of a run as text -------------------------===//
#include "fsdp/Config/MeshOption.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/NearestName.h"
#include "fsdp/Support/Text.h"
#include <charconv>

using namespace fsdp;

/// Without the blanks at both ends.
static std::string trimmed(const std::string &text) {
  const char *const blanks = " \t\n\v\f\r";
  size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

/// The kinds of axes that are known by their names, which torchtitan has too.
static std::optional<AxisKind> usualKind(const std::string &name) {
  static const std::pair<const char *, AxisKind> usual[] = {
      {"dp", AxisKind::Data},
      {"dp_replicate", AxisKind::Data},
      {"dp_shard", AxisKind::Data},
      {"tp", AxisKind::Tensor}};
  for (const auto &[known, kind] : usual)
    if (name == known)
      return kind;
  return std::nullopt;
}

/// Reads one axis; `what` is the mesh, for messages.
static MeshAxisOption parseAxis(const std::string &part,
                                const std::string &what) {
  MeshAxisOption axis{trimmed(part.substr(0, part.find('='))), 0, {}};
  std::string size, kind;
  if (size_t equals = part.find('='); equals != std::string::npos)
    size = part.substr(equals + 1);
  size_t colon = size.find(':');
  if (colon != std::string::npos) {
    kind = trimmed(size.substr(colon + 1));
    size.erase(colon);
  }
  size = trimmed(size);
  auto [end, error] =
      std::from_chars(size.data(), size.data() + size.size(), axis.size);
  if (axis.name.find(':') != std::string::npos)
    throw Error(what +
                ": the kind of an axis stands after its size, "
                "NAME=SIZE:KIND, got \"" +
                part + "\"");
  if (axis.name.empty() || error != std::errc() ||
      end != size.data() + size.size() || axis.size < 1)
    throw Error(what + ": expected NAME=SIZE with SIZE at least 1, got \"" +
                part + "\"");
  axis.kind = colon == std::string::npos ? usualKind(axis.name)
                                         : readSpelling<AxisKind>(kind);
  if (colon != std::string::npos && !axis.kind)
    throw Error(what + ": the kind of an axis is " +
                joinedText(allSpellings<AxisKind>(), " or ") + ", got \"" +
                kind + "\"" + didYouMean(kind, allSpellings<AxisKind>()));
  return axis;
}

std::vector<MeshAxisOption> fsdp::parseMesh(const std::string &text) {
  std::vector<MeshAxisOption> mesh;
  std::string what = "mesh \"" + text + "\"";
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(',', begin), text.size());
    mesh.push_back(parseAxis(text.substr(begin, end - begin), what));
    begin = end + 1;
  }
  return mesh;
}

std::string fsdp::meshText(const std::vector<MeshAxisOption> &mesh) {
  std::vector<std::string> axes;
  for (const MeshAxisOption &axis : mesh)
    axes.push_back(axis.name + "=" + std::to_string(axis.size) +
                   (axis.kind ? ":" + spelled(*axis.kind) : ""));
  return joinedText(axes, ",");
}
