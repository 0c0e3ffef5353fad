//===- Manifest.cpp - Reading and checking manifests ----------------------===//
#include "fsdp/Artifact/Manifest.h"
#include "fsdp/Support/CheckedSize.h"
#include "fsdp/Support/Error.h"
#include "fsdp/Support/Json.h"
#include "fsdp/Target/CollectivePieces.h"
#include <algorithm>

using namespace fsdp;
using namespace fsdp::rt;
using nlohmann::json;
using Field = JsonField;

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

int64_t RangeInfo::elements() const { return elementCount(shape); }

int64_t Manifest::ranks() const {
  int64_t ranks = 1;
  for (const MeshAxis &axis : mesh)
    ranks *= axis.size;
  return ranks;
}

std::vector<int64_t> Manifest::meshSizes() const {
  std::vector<int64_t> sizes;
  for (const MeshAxis &axis : mesh)
    sizes.push_back(axis.size);
  return sizes;
}

std::string Manifest::meshText() const {
  std::string text;
  for (const MeshAxis &axis : mesh)
    text += (text.empty() ? "" : " x ") + axis.name + "=" +
            std::to_string(axis.size);
  return text;
}

const RangeInfo *Manifest::findRange(const std::string &name) const {
  for (const RangeInfo &range : ranges)
    if (range.name == name)
      return &range;
  return nullptr;
}

int Manifest::findProgram(const std::string &name) const {
  for (size_t i = 0; i < programs.size(); ++i)
    if (programs[i].name == name)
      return static_cast<int>(i);
  return -1;
}

static bool isSame(const AxisRef &a, const AxisRef &b) {
  return a.axis == b.axis && a.pre == b.pre && a.size == b.size;
}

bool RangePlacement::operator==(const RangePlacement &other) const {
  auto sameAxes = [](const std::vector<AxisRef> &a,
                     const std::vector<AxisRef> &b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), isSame);
  };
  return std::equal(dims.begin(), dims.end(), other.dims.begin(),
                    other.dims.end(), [&](const Dim &a, const Dim &b) {
                      return sameAxes(a.compute, b.compute) &&
                             sameAxes(a.storage, b.storage);
                    });
}

ShardView Manifest::shardView(const RangeInfo &range, int64_t rank) const {
  ShardView view;
  std::vector<int64_t> mesh = meshSizes();
  for (size_t d = 0; d < range.full.size(); ++d) {
    RangePlacement::Dim axes;
    if (range.placement)
      axes = range.placement->dims[d];
    Coordinate compute = coordinateOf(axes.compute, mesh, rank);
    Coordinate storage = coordinateOf(axes.storage, mesh, rank);
    int64_t part = range.full[d] / compute.count;
    int64_t size = ceilDiv(part, storage.count);
    Part piece = pieceAt(part, size, storage.index);
    view.offsets.push_back(compute.index * part + piece.offset);
    view.sizes.push_back(piece.count);
    view.stored.push_back(size);
  }
  return view;
}

const char *rt::dtypeName(DType type) {
  switch (type) {
  case DType::F32:
    return "F32";
  case DType::BF16:
    return "BF16";
  case DType::F64:
    return "F64";
  case DType::I8:
    return "I8";
  case DType::I32:
    return "I32";
  case DType::I64:
    return "I64";
  case DType::F16:
    return "F16";
  }
  return "";
}

//===----------------------------------------------------------------------===//
// Ranges
//===----------------------------------------------------------------------===//

static DType parseDType(const Field &field) {
  static const std::map<std::string, DType> types = {
      {"f32", DType::F32}, {"bf16", DType::BF16}, {"f64", DType::F64},
      {"i8", DType::I8},   {"i32", DType::I32},   {"i64", DType::I64}};
  auto found = types.find(field.string());
  if (found == types.end())
    field.fail("unknown type '" + field.string() + "'");
  return found->second;
}

static Initializer parseInitializer(const Field &field) {
  Initializer init;
  std::string kind = field.at("kind").string();
  if (kind == "zeros") {
    init.kind = Initializer::Kind::Zeros;
  } else if (kind == "ones") {
    init.kind = Initializer::Kind::Ones;
  } else if (kind == "normal") {
    init.kind = Initializer::Kind::Normal;
    init.std = field.at("std").number();
    init.cut = field.at("cut").number();
    // A cut near zero would draw again for ever.
    if (init.cut != 0 && init.cut < 0.1)
      field.fail("cut is below 0.1");
  } else if (kind == "uniform") {
    init.kind = Initializer::Kind::Uniform;
    init.bound = field.at("bound").number();
  } else if (kind == "rotary_table") {
    init.kind = Initializer::Kind::RotaryTable;
    if (field.find("theta"))
      field.fail("the rotary table states a base instead of frequencies; the "
                 "artifact is from an older version, compile it again");
    for (const Field &frequency : field.at("frequencies").items())
      init.frequencies.push_back(frequency.number());
    init.scale = field.at("scale").number();
    init.start = field.at("start").integer();
  } else {
    field.fail("unknown kind '" + kind + "'");
  }
  return init;
}

/// Index of the mesh's axis of this name, or -1.
static int findAxis(const Manifest &manifest, const std::string &name) {
  for (size_t i = 0; i < manifest.mesh.size(); ++i)
    if (manifest.mesh[i].name == name)
      return static_cast<int>(i);
  return -1;
}

/// "tp", or {"axis": "tp", "pre": 1, "size": 2} for a part of it.
static AxisRef parseAxis(const Manifest &manifest, const Field &field) {
  bool isWhole = field.isString();
  std::string name = isWhole ? field.string() : field.at("axis").string();
  int index = findAxis(manifest, name);
  if (index < 0)
    field.fail("the mesh has no axis '" + name + "'");
  int64_t ranks = manifest.mesh[static_cast<size_t>(index)].size;
  if (isWhole)
    return {index, 1, ranks};
  AxisRef axis{index, field.at("pre").integer(1), field.at("size").integer(1)};
  CheckedSize used = CheckedSize(axis.pre) * axis.size;
  if (!used.fits(ranks) || ranks % used.get() != 0)
    field.fail("the axis '" + name + "' of " + std::to_string(ranks) +
               " ranks has no sub-axis of " + std::to_string(axis.size) +
               " after " + std::to_string(axis.pre));
  return axis;
}

/// Whether a coordinate along one fixes part of the other's.
static bool overlap(AxisRef a, AxisRef b) {
  if (a.axis != b.axis || isSame(a, b))
    return a.axis == b.axis;
  if (std::pair(a.pre, a.size) > std::pair(b.pre, b.size))
    std::swap(a, b);
  return b.pre % (a.pre * a.size) != 0;
}

static RangePlacement parsePlacement(const Manifest &manifest,
                                     const Field &field) {
  RangePlacement placement;
  std::vector<AxisRef> seen;
  auto parseAxes = [&](const Field &list) {
    std::vector<AxisRef> axes;
    for (const Field &item : list.items()) {
      AxisRef axis = parseAxis(manifest, item);
      for (const AxisRef &other : seen)
        if (overlap(axis, other))
          item.fail("the placement names ranks of the axis '" +
                    manifest.mesh[static_cast<size_t>(axis.axis)].name +
                    "' twice");
      axes.push_back(axis);
      seen.push_back(axis);
    }
    return axes;
  };
  for (const Field &item : field.at("dims").items())
    placement.dims.push_back(
        {parseAxes(item.at("compute")), parseAxes(item.at("storage"))});
  return placement;
}

/// Checks that the stored shape is the rank's part of the full one.
static void checkPlacement(const Manifest &manifest, const RangeInfo &range,
                           const Field &field) {
  if (range.placement) {
    const std::vector<RangePlacement::Dim> &dims = range.placement->dims;
    if (dims.size() != range.full.size())
      field.fail("the placement has " + std::to_string(dims.size()) +
                 " dimensions, the tensor has " +
                 std::to_string(range.full.size()));
    std::vector<int64_t> mesh = manifest.meshSizes();
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t parts = coordinateOf(dims[d].compute, mesh, 0).count;
      if (range.full[d] % parts != 0)
        field.fail("the compute axes split dimension " + std::to_string(d) +
                   " into " + std::to_string(parts) +
                   " parts, which do not divide its " +
                   std::to_string(range.full[d]));
    }
  }
  // All ranks have room for as much.
  if (manifest.shardView(range, /*rank=*/0).stored != range.shape)
    field.fail("the shape is not the rank's shard of the full shape");
}

static RangeInfo parseRange(const Manifest &manifest, const Field &unnamed) {
  RangeInfo range;
  range.name = unnamed.at("name").string();
  const Field &field = unnamed;
  std::string role = field.at("role").string();
  std::optional<RangeRole> known = roleNamed(role);
  if (!known)
    field.fail("'" + range.name + "' has the unknown role '" + role + "'");
  range.role = *known;
  range.dtype = parseDType(field.at("dtype"));
  range.shape = field.at("shape").shape();
  range.full = range.shape;
  if (auto full = field.find("full"))
    range.full = full->shape();
  range.offset = field.at("offset").integer();
  range.bytes = field.at("bytes").integer();
  if (auto init = field.find("init"))
    range.init = parseInitializer(*init);
  if (auto placement = field.find("placement"))
    range.placement = parsePlacement(manifest, *placement);
  checkPlacement(manifest, range, field);
  if ((uint64_t)(range.elements() * sizeOf(range.dtype)) != range.bytes)
    field.fail("'" + range.name + "' has " + std::to_string(range.bytes) +
               " bytes, its shape and type need " +
               std::to_string(range.elements() * sizeOf(range.dtype)));
  if (range.offset % 64 != 0)
    field.fail("the offset of '" + range.name + "' is no multiple of 64");
  // An output that one program alone gives shares bytes with what others need.
  bool isOutput = range.role == RangeRole::Output;
  if (range.offset + range.bytes >
      (isOutput ? manifest.arenaBytes : manifest.persistentBytes))
    field.fail("'" + range.name + "' lies outside the " +
               (isOutput ? "arena" : "persistent ranges"));
  return range;
}

static void checkOverlap(const Manifest &manifest, const std::string &origin) {
  std::vector<const RangeInfo *> sorted;
  for (const RangeInfo &range : manifest.ranges)
    if (range.bytes != 0)
      sorted.push_back(&range);
  std::sort(sorted.begin(), sorted.end(),
            [](const RangeInfo *a, const RangeInfo *b) {
              return a->offset < b->offset;
            });
  for (size_t i = 1; i < sorted.size(); ++i)
    if (sorted[i - 1]->offset + sorted[i - 1]->bytes > sorted[i]->offset)
      throw Error(origin + ": the ranges '" + sorted[i - 1]->name + "' and '" +
                  sorted[i]->name + "' overlap");
}

static void checkUniqueNames(const Manifest &manifest,
                             const std::string &origin) {
  std::vector<std::string> names;
  for (const RangeInfo &range : manifest.ranges)
    names.push_back(range.name);
  std::sort(names.begin(), names.end());
  auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end())
    throw Error(origin + ": two ranges are called '" + *twice + "'");
}

//===----------------------------------------------------------------------===//
// The rest
//===----------------------------------------------------------------------===//

/// Fields are kept as text; what a family's fields mean is its reader's
/// question.
static ModelInfo parseModel(const Field &field) {
  ModelInfo model;
  model.family = field.at("family").string();
  if (model.family.empty())
    field.at("family").fail("expected a string that is not empty");
  for (const auto &[key, item] : field.at("fields").fields())
    model.fields[key] = item.scalarText();
  return model;
}

static void parseMesh(Manifest &manifest, const Field &field) {
  for (const Field &item : field.at("axes").items()) {
    MeshAxis axis{item.at("name").string(), item.at("size").integer(1)};
    if (!(CheckedSize(manifest.ranks()) * axis.size).fits(kMaxRanks))
      item.fail("the mesh is beyond 2^20 ranks");
    if (findAxis(manifest, axis.name) >= 0)
      item.fail("a second axis '" + axis.name + "'");
    manifest.mesh.push_back(axis);
  }
  manifest.nodeSize = field.at("node_size").integer();
}

using RangesByName = std::map<std::string, const RangeInfo *, std::less<>>;

static ProgramInfo parseProgram(const Manifest &manifest,
                                const RangesByName &ranges,
                                const Field &field) {
  ProgramInfo program;
  program.name = field.at("name").string();
  program.inputs = field.at("inputs").strings();
  program.outputs = field.at("outputs").strings();
  program.reads = field.at("reads").strings();
  program.writes = field.at("writes").strings();
  program.adds = field.at("adds").strings();
  program.clears = field.at("clears").strings();
  program.arenaBytes = field.at("arena_bytes").integer();
  program.flops = field.at("flops").number();
  auto ofModel = field.find("model_flops");
  program.modelFlops = ofModel ? ofModel->number() : program.flops;
  if (program.arenaBytes > manifest.arenaBytes)
    field.fail("'" + program.name + "' needs more than the arena");
  for (const auto *names : {&program.inputs, &program.outputs, &program.reads,
                            &program.writes, &program.adds, &program.clears})
    for (const std::string &name : *names)
      if (ranges.count(name) == 0)
        field.fail("'" + program.name + "' uses '" + name +
                   "', which is no range");
  if (std::string fault = faultOf(program); !fault.empty())
    field.fail(fault);
  for (const std::string &name : program.reads)
    if (ranges.at(name)->role == RangeRole::Input &&
        std::find(program.inputs.begin(), program.inputs.end(), name) ==
            program.inputs.end())
      field.fail("'" + program.name + "' reads '" + name +
                 "', which is none of its inputs");
  return program;
}

static std::vector<ProgramRuns> parseStep(const Manifest &manifest,
                                          const Field &field) {
  std::vector<ProgramRuns> step;
  for (const Field &item : field.items()) {
    Field program = item.at("program");
    int index = manifest.findProgram(program.string());
    int64_t times = item.at("times").integer(1);
    if (index < 0)
      program.fail("there is no program '" + program.string() + "'");
    if (times > kMaxProgramRuns)
      item.fail("a step runs a program at most 2^20 times");
    step.push_back({static_cast<size_t>(index), times});
  }
  if (step.empty())
    field.fail("a step runs at least one program");
  return step;
}

static SharedRange sharedRange(const RangeInfo &range) {
  SharedRange shared;
  shared.shape = range.full;
  shared.isOfModel = range.role == RangeRole::Parameter ||
                     range.role == RangeRole::Buffer ||
                     range.role == RangeRole::ComputeCopy;
  shared.beginsWithZeros =
      !range.init || range.init->kind == Initializer::Kind::Zeros;
  return shared;
}

/// Checks that the steps do what their programs need, and each as often as is
/// stated.
static void checkSteps(const Manifest &manifest, const Field &runs,
                       const Field &root) {
  std::vector<const ProgramEffects *> programs;
  for (const ProgramInfo &program : manifest.programs)
    programs.push_back(&program);
  std::map<std::string, SharedRange> ranges;
  for (const RangeInfo &range : manifest.ranges)
    ranges[range.name] = sharedRange(range);
  std::map<std::string, StepEffects> steps;
  for (const auto &[name, list] : manifest.steps)
    steps[name].list = list;
  for (const auto &[name, step] : runs.fields())
    for (const auto &[program, times] : step.fields())
      steps[name].stated[program] = times.integer(1);
  if (auto fault = faultOfSteps(programs, ranges, steps))
    root.fail(fault->message + "; compile the model again");
}

Manifest rt::parseManifest(const std::string &text, const std::string &origin) {
  std::string place = "damaged manifest " + origin;
  json document = parseJson(text, place);
  Field root(document, place);
  if (root.at("format").integer() != 5)
    root.fail("format is not 5; the artifact is from another version; "
              "compile it again with fsdp-compile");
  Manifest manifest;
  manifest.config = root.at("config").texts();
  if (auto from = root.find("model_from"))
    manifest.modelFrom = from->string();
  if (auto policy = root.find("policy"))
    manifest.policy = policy->texts();
  manifest.fingerprint = root.at("fingerprint").texts();
  if (auto model = root.find("model"))
    manifest.model = parseModel(*model);
  parseMesh(manifest, root.at("mesh"));
  manifest.arenaBytes = root.at("arena").at("bytes").integer();
  manifest.persistentBytes = root.at("arena").at("persistent_bytes").integer();
  if (manifest.persistentBytes > manifest.arenaBytes)
    root.fail("the persistent ranges are larger than the arena");
  for (const Field &item : root.at("ranges").items())
    manifest.ranges.push_back(parseRange(manifest, item));
  checkUniqueNames(manifest, place);
  checkOverlap(manifest, place);
  RangesByName ranges;
  for (const RangeInfo &range : manifest.ranges)
    ranges[range.name] = &range;
  for (const Field &item : root.at("programs").items())
    manifest.programs.push_back(parseProgram(manifest, ranges, item));
  for (const auto &[name, step] : root.at("steps").fields())
    manifest.steps[name] = parseStep(manifest, step);
  checkSteps(manifest, root.at("runs"), root);
  return manifest;
}
