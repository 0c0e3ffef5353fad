//===- EmitManifest.cpp - The manifest of a planned exec module -----------===//
#include "fsdp/Emit/EmitManifest.h"
#include "JsonLines.h"
#include "dialects/Exec/Exec.h"
#include "dialects/Fsdp/Placement.h"
#include "fsdp/Artifact/RangeRole.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/SHA256.h"
#include <map>
#include <set>

using namespace mlir;
using namespace fsdp;
using llvm::json::OStream;

namespace {

class ManifestWriter {
public:
  ManifestWriter(ModuleOp module, const ManifestInfo &info, OStream &json)
      : module(module), info(info), json(json) {}

  void write();

private:
  void fingerprint();
  void mesh();
  void model();
  void steps();
  void runs();

  ModuleOp module;
  const ManifestInfo &info;
  OStream &json;
};

} // namespace

//===----------------------------------------------------------------------===//
// Fingerprint: one readable text per field, and a hash of everything
//===----------------------------------------------------------------------===//

static std::string hexHash(StringRef text, size_t digits) {
  auto hash = llvm::SHA256::hash(
      ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()));
  return llvm::toHex(hash, /*LowerCase=*/true).substr(0, digits);
}

static std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

static std::string shapeOf(MemRefType type) {
  if (type.getRank() == 0)
    return "";
  std::string text = "[";
  llvm::raw_string_ostream os(text);
  llvm::interleave(type.getShape(), os, "x");
  os << ']';
  return text;
}

/// Counts the parameters, lists the inputs, hashes all shapes.
static std::string shapesText(ModuleOp module) {
  int64_t tensors = 0, elements = 0;
  std::string inputs, all;
  for (auto range : module.getOps<exec::RangeOp>()) {
    MemRefType type = range.getMemRefType();
    all += llvm::formatv("{0}:{1}:{2};", range.getSymName(), typeText(type),
                         range.getFull() ? typeText(*range.getFull()) : "");
    if (range.getRole() == exec::Role::Parameter) {
      ++tensors;
      elements += range.getFull()
                      ? cast<ShapedType>(*range.getFull()).getNumElements()
                      : type.getNumElements();
    }
    if (range.getRole() == exec::Role::Input)
      inputs += ", " + range.getSymName().str() + shapeOf(type);
  }
  return llvm::formatv("{0} parameters of {1} elements{2}, {3}", tensors,
                       elements, inputs, hexHash(all, 12));
}

/// The element types of what is kept, multiplied and sent.
static std::string typesText(ModuleOp module) {
  std::set<std::string> parameters, matmuls, gathers, reductions;
  auto element = [](Value v) {
    return typeText(cast<MemRefType>(v.getType()).getElementType());
  };
  for (auto range : module.getOps<exec::RangeOp>())
    if (range.getRole() == exec::Role::Parameter)
      parameters.insert(typeText(range.getMemRefType().getElementType()));
  module.walk([&](Operation *op) {
    if (auto gemm = dyn_cast<exec::GemmOp>(op))
      matmuls.insert(element(gemm.getInputs()[0]));
    auto collective = dyn_cast<exec::CollectiveOp>(op);
    if (!collective)
      return;
    std::string in = element(collective.getInputs()[0]);
    std::string out = element(collective.getOutputs()[0]);
    if (!dist::isReduction(collective.getKind()))
      gathers.insert(in);
    else
      reductions.insert(in + " to " + out);
  });
  auto list = [](const std::set<std::string> &types) {
    return types.empty() ? std::string("none") : llvm::join(types, ", ");
  };
  return "parameters " + list(parameters) + "; matmuls " + list(matmuls) +
         "; gathers " + list(gathers) + "; reductions " + list(reductions);
}

static std::string meshText(ModuleOp module) {
  std::string text;
  for (auto mesh : module.getOps<dist::MeshOp>())
    for (Attribute attr : mesh.getAxes()) {
      auto axis = cast<dist::MeshAxisAttr>(attr);
      text += llvm::formatv("{0}{1}={2}", text.empty() ? "" : " x ",
                            axis.getName(), axis.getSize());
    }
  return text.empty() ? "one rank" : text;
}

void ManifestWriter::fingerprint() {
  std::vector<std::pair<StringRef, std::string>> fields = {
      {"shapes", shapesText(module)},
      {"types", typesText(module)},
      {"mesh", meshText(module)},
      {"pipeline", info.pipeline},
      {"target", info.target},
      {"threads", std::to_string(info.threads)}};
  if (!info.machine.empty())
    fields.emplace_back("machine", info.machine);
  std::string all;
  llvm::raw_string_ostream os(all);
  for (auto &[name, text] : fields) {
    // File names, of a plan or a compiler, may be any bytes.
    json.attribute(name, llvm::json::fixUTF8(text));
    os << name << '=' << text << '\n';
  }
  os << module;
  json.attribute("sha256", hexHash(all, 64));
}

//===----------------------------------------------------------------------===//
// Mesh, ranges, programs
//===----------------------------------------------------------------------===//

static void shape(OStream &json, StringRef key, ArrayRef<int64_t> sizes) {
  json.attributeArray(key, [&] {
    for (int64_t size : sizes)
      json.value(size);
  });
}

static void initializer(OStream &json, Attribute init) {
  if (!init)
    return json.attribute("init", nullptr);
  json.attributeObject("init", [&] {
    llvm::TypeSwitch<Attribute>(init)
        .Case([&](nn::ZerosAttr) { json.attribute("kind", "zeros"); })
        .Case([&](nn::OnesAttr) { json.attribute("kind", "ones"); })
        .Case([&](nn::NormalAttr a) {
          json.attribute("kind", "normal");
          json.attribute("std", a.getStd());
          json.attribute("cut", a.getCut());
        })
        .Case([&](nn::UniformAttr a) {
          json.attribute("kind", "uniform");
          json.attribute("bound", a.getBound());
        })
        .Case([&](nn::RotaryTableAttr a) {
          json.attribute("kind", "rotary_table");
          json.attributeArray("frequencies", [&] {
            for (double frequency : a.getFrequencies())
              json.value(frequency);
          });
          json.attribute("scale", a.getScale());
          json.attribute("start", a.getStart());
        })
        .Default([](Attribute) { llvm_unreachable("checked before"); });
  });
}

static void axes(OStream &json, StringRef key,
                 ArrayRef<dist::AxisRefAttr> axes) {
  json.attributeArray(key, [&] {
    for (dist::AxisRefAttr axis : axes) {
      if (axis.getSize() == 0) {
        json.value(axis.getName());
        continue;
      }
      json.object([&] {
        json.attribute("axis", axis.getName());
        json.attribute("pre", axis.getPre());
        json.attribute("size", axis.getSize());
      });
    }
  });
}

static void placement(OStream &json, dist::PlacementAttr placement) {
  if (!placement)
    return json.attribute("placement", nullptr);
  json.attributeObject("placement", [&] {
    json.attributeArray("dims", [&] {
      for (dist::DimAxesAttr dim : placement.getDims())
        json.object([&] {
          axes(json, "compute", dim.getCompute());
          axes(json, "storage", dim.getStorage());
        });
    });
  });
}

static rt::RangeRole roleOf(exec::Role role) {
  switch (role) {
  case exec::Role::Parameter:
    return rt::RangeRole::Parameter;
  case exec::Role::State:
    return rt::RangeRole::State;
  case exec::Role::Buffer:
    return rt::RangeRole::Buffer;
  case exec::Role::Gradient:
    return rt::RangeRole::Gradient;
  case exec::Role::Input:
    return rt::RangeRole::Input;
  case exec::Role::Output:
    return rt::RangeRole::Output;
  case exec::Role::ComputeCopy:
    return rt::RangeRole::ComputeCopy;
  }
  llvm_unreachable("a role");
}

static void range(OStream &json, exec::RangeOp range) {
  json.object([&] {
    MemRefType type = range.getMemRefType();
    json.attribute("name", range.getSymName());
    json.attribute("role", rt::roleName(roleOf(range.getRole())));
    json.attribute("dtype", typeText(type.getElementType()));
    shape(json, "shape", type.getShape());
    json.attribute("offset", *range.getOffset());
    json.attribute("bytes", exec::bytesOf(type));
    if (range.getFull())
      shape(json, "full", cast<ShapedType>(*range.getFull()).getShape());
    else
      json.attribute("full", nullptr);
    initializer(json, range.getInitAttr());
    placement(json, range.getPlacementAttr());
  });
}

static void program(OStream &json, exec::ProgramOp program) {
  auto names = [&](StringRef key, StringRef attribute) {
    json.attributeArray(key, [&] {
      if (auto list = program->getAttrOfType<ArrayAttr>(attribute))
        for (Attribute name : list)
          json.value(cast<StringAttr>(name).getValue());
    });
  };
  json.object([&] {
    json.attribute("name", program.getSymName());
    names("inputs", exec::kInputsAttr);
    names("outputs", exec::kOutputsAttr);
    names("reads", exec::kReadsAttr);
    names("writes", exec::kWritesAttr);
    names("adds", exec::kAddsAttr);
    names("clears", exec::kClearsAttr);
    json.attribute("arena_bytes", program.getArena().value_or(0));
    auto flops = program->getAttrOfType<IntegerAttr>(exec::kFlopsAttr);
    json.attribute("flops", flops ? flops.getInt() : 0);
    if (auto model = program->getAttrOfType<IntegerAttr>(exec::kModelFlopsAttr))
      json.attribute("model_flops", model.getInt());
  });
}

void ManifestWriter::mesh() {
  int64_t nodeSize = 0;
  json.attributeArray("axes", [&] {
    for (auto mesh : module.getOps<dist::MeshOp>()) {
      nodeSize = mesh.getNodeSize();
      for (Attribute attr : mesh.getAxes())
        json.object([&] {
          auto axis = cast<dist::MeshAxisAttr>(attr);
          json.attribute("name", axis.getName());
          json.attribute("size", axis.getSize());
        });
    }
  });
  json.attribute("node_size", nodeSize);
}

void ManifestWriter::model() {
  auto model = module->getAttrOfType<DictionaryAttr>(nn::kModelAttr);
  if (!model)
    return json.attribute("model", nullptr);
  auto field = [&](NamedAttribute field) {
    llvm::TypeSwitch<Attribute>(field.getValue())
        .Case(
            [&](BoolAttr a) { json.attribute(field.getName(), a.getValue()); })
        .Case(
            [&](IntegerAttr a) { json.attribute(field.getName(), a.getInt()); })
        .Case([&](FloatAttr a) {
          json.attribute(field.getName(), a.getValueAsDouble());
        })
        .Case([&](StringAttr a) {
          json.attribute(field.getName(), a.getValue());
        });
  };
  json.attributeObject("model", [&] {
    json.attribute(nn::kFamilyKey,
                   model.getAs<StringAttr>(nn::kFamilyKey).getValue());
    json.attributeObject("fields", [&] {
      for (NamedAttribute attribute : model)
        if (attribute.getName() != nn::kFamilyKey)
          field(attribute);
    });
  });
}

void ManifestWriter::steps() {
  for (const auto &[name, actions] : exec::stepsOf(module))
    json.attributeArray(name.getValue(), [&, &actions = actions] {
      for (const exec::StepAction &action : actions)
        json.object([&] {
          json.attribute("program", action.program.getValue());
          json.attribute("times", action.times);
        });
    });
}

/// How often each step is to run each program; unless that is stated, as often
/// as it does.
void ManifestWriter::runs() {
  std::map<std::string, std::map<std::string, int64_t>> runs;
  if (auto stated = module->getAttrOfType<DictionaryAttr>(exec::kStepsAttr)) {
    for (NamedAttribute step : stated)
      for (NamedAttribute program : cast<DictionaryAttr>(step.getValue()))
        runs[step.getName().str()][program.getName().str()] =
            cast<IntegerAttr>(program.getValue()).getInt();
  } else {
    for (const auto &[name, actions] : exec::stepsOf(module))
      for (const exec::StepAction &action : actions)
        runs[name.str()][action.program.getValue().str()] += action.times;
  }
  for (const auto &[step, programs] : runs)
    json.attributeObject(step, [&, &programs = programs] {
      for (const auto &[program, times] : programs)
        json.attribute(program, times);
    });
}

void ManifestWriter::write() {
  auto bytes = [&](StringRef attribute) {
    return module->getAttrOfType<IntegerAttr>(attribute).getInt();
  };
  json.object([&] {
    json.attribute("format", 5);
    json.attributeObject("config", [&] {
      for (const auto &[key, value] : info.config)
        json.attribute(key, value);
    });
    json.attribute("model_from", info.modelFrom);
    json.attributeObject("policy", [&] {
      for (const auto &[place, rule] : info.policy)
        json.attribute(place, rule);
    });
    json.attributeObject("fingerprint", [&] { fingerprint(); });
    model();
    json.attributeObject("mesh", [&] { mesh(); });
    json.attributeObject("arena", [&] {
      json.attribute("bytes", bytes(exec::kArenaBytesAttr));
      json.attribute("persistent_bytes", bytes(exec::kPersistentBytesAttr));
    });
    emit::jsonLines(json, "ranges", module.getOps<exec::RangeOp>(), range);
    emit::jsonLines(json, "programs", module.getOps<exec::ProgramOp>(),
                    program);
    json.attributeObject("steps", [&] { steps(); });
    json.attributeObject("runs", [&] { runs(); });
  });
}

/// Counts are 64 bits, the elements of all ranks' shards might not be.
static LogicalResult checkCount(ModuleOp module) {
  CheckedSize elements = 0;
  for (auto range : module.getOps<exec::RangeOp>())
    if (range.getRole() == exec::Role::Parameter)
      elements += range.getFull()
                      ? cast<ShapedType>(*range.getFull()).getNumElements()
                      : range.getMemRefType().getNumElements();
  if (!elements.fits(kMaxArenaBytes))
    return module.emitError("the parameters have more than 2^62 elements");
  return success();
}

/// Ranks hold partial values only while a program runs, and the range has to be
/// the part of the tensor that its placement says.
static LogicalResult checkPlacement(exec::RangeOp range) {
  dist::PlacementAttr attribute = range.getPlacementAttr();
  if (!attribute)
    return success();
  if (!attribute.getPartial().empty())
    return range.emitOpError("is partial, which the manifest cannot state: ")
           << attribute;
  auto meshes = range->getParentOfType<ModuleOp>().getOps<dist::MeshOp>();
  if (meshes.empty())
    return range.emitOpError("has a placement, but there is no fsdp.mesh");
  dist::MeshOp mesh = *meshes.begin();
  MemRefType type = range.getMemRefType();
  auto whole = range.getFull() ? cast<RankedTensorType>(*range.getFull())
                               : RankedTensorType::get(type.getShape(),
                                                       type.getElementType());
  if (failed(dist::verifyPlacement([&] { return range.emitOpError("has a "); },
                                   whole, attribute, mesh,
                                   /*mayBeStored=*/true)))
    return failure();
  auto part = dist::localType(whole, dist::Placement(attribute), mesh);
  if (part.getShape() != type.getShape())
    return range.emitOpError("is ")
           << type << ", but a rank's shard of " << whole << " is " << part;
  return success();
}

/// What a step runs has to be a program by now.
static LogicalResult checkSteps(ModuleOp module) {
  for (const auto &[name, actions] : exec::stepsOf(module))
    for (const exec::StepAction &action : actions)
      if (!module.lookupSymbol<exec::ProgramOp>(action.program.getAttr()))
        return module.emitError("step '")
               << name.getValue() << "' runs " << action.program
               << ", which is no exec.program";
  return success();
}

/// Whether a manifest can state everything about the range.
static LogicalResult check(exec::RangeOp range) {
  if (!range.getOffset())
    return range.emitOpError("has no offset; run exec-plan-memory first");
  if (Attribute init = range.getInitAttr())
    if (!isa<nn::ZerosAttr, nn::OnesAttr, nn::NormalAttr, nn::UniformAttr,
             nn::RotaryTableAttr>(init))
      return range.emitOpError("has an initialiser the runtime does not know: ")
             << init;
  return checkPlacement(range);
}

FailureOr<std::string> fsdp::makeManifest(ModuleOp module,
                                          const ManifestInfo &info) {
  if (!module->getAttrOfType<IntegerAttr>(exec::kArenaBytesAttr) ||
      !module->getAttrOfType<IntegerAttr>(exec::kPersistentBytesAttr))
    return module.emitError(
        "the module's memory is not planned; run exec-plan-memory first");
  for (auto range : module.getOps<exec::RangeOp>())
    if (failed(check(range)))
      return failure();
  if (failed(checkCount(module)) || failed(checkSteps(module)))
    return failure();
  std::string text;
  llvm::raw_string_ostream os(text);
  OStream json(os, /*IndentSize=*/1);
  ManifestWriter(module, info, json).write();
  os << '\n';
  return text;
}
