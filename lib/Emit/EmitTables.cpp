//===- EmitTables.cpp - Descriptors that the runtime prepares at load -----===//
//
// Everything that a library has to prepare (matmul primitives, communicators)
// is described by a table of the artifact, so that the step path only names
// an entry. Equal descriptors are one entry.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

//===----------------------------------------------------------------------===//
// A table
//===----------------------------------------------------------------------===//

size_t Table::index(std::string initializer, size_t length) {
  auto [it, isNew] = position.try_emplace(initializer, entries.size());
  if (isNew)
    entries.push_back({std::move(initializer), length, {}});
  return it->second;
}

std::string Table::entry(std::string initializer, StringRef wanted) {
  Entry &e = entries[index(std::move(initializer))];
  if (e.name.empty())
    e.name = names.unique(wanted);
  return e.name;
}

void Table::print(llvm::raw_ostream &os, StringRef title, StringRef type,
                  StringRef array) const {
  if (entries.empty())
    return;
  os << "\n// " << title << "\nenum {\n";
  for (const Entry &e : entries)
    os << "  " << e.name << ",\n";
  os << "};\nstatic const " << type << ' ' << array << "[] = {\n";
  for (const Entry &e : entries)
    wrap(os, e.initializer + ",", 4);
  os << "};\n";
}

//===----------------------------------------------------------------------===//
// Matmul and attention
//===----------------------------------------------------------------------===//

static StringRef boolText(bool value) { return value ? "true" : "false"; }

static std::string dtypeText(rt::DType type) {
  return ("DType::" + dtypeName(type)).str();
}

std::string Tables::gemm(const rt::GemmDesc &desc) {
  std::string initializer = llvm::formatv(
      "{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}{10}}", desc.batch,
      desc.m, desc.n, desc.k, boolText(desc.transposeLhs),
      boolText(desc.transposeRhs), boolText(desc.bias), dtypeText(desc.in),
      dtypeText(desc.out), desc.workspace, desc.accumulate ? ", true" : "");
  std::string name = "gemm_";
  if (desc.batch != 1)
    name += llvm::formatv("{0}_times_", desc.batch);
  name += llvm::formatv("{0}x{1}x{2}_{3}{4}", desc.m, desc.n, desc.k,
                        desc.transposeLhs ? 't' : 'n',
                        desc.transposeRhs ? 't' : 'n');
  if (desc.bias)
    name += "_bias";
  if (desc.accumulate)
    name += "_add";
  name += "_" + dtypeName(desc.in).lower();
  if (desc.in != desc.out)
    name += "_" + dtypeName(desc.out).lower();
  return gemms.entry(initializer, name);
}

std::string Tables::attention(const rt::AttentionDesc &desc) {
  std::string view;
  if (desc.window != 0 || desc.cap != 0 || desc.starts || desc.fast) {
    view = llvm::formatv(", {0}, {1}", desc.window, literal(desc.cap));
    hasViews = true;
  }
  if (desc.starts || desc.fast)
    view += ", " + boolText(desc.starts).str();
  if (desc.fast)
    view += ", true";
  std::string initializer =
      llvm::formatv("{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}{10}}",
                    desc.batch, desc.qLen, desc.kvLen, desc.heads, desc.kvHeads,
                    desc.headDim, literal(desc.scale), boolText(desc.causal),
                    dtypeText(desc.type), boolText(desc.plain), view);
  std::string name = llvm::formatv("attention_{0}x{1}_{2}heads_{3}", desc.batch,
                                   desc.qLen, desc.heads, desc.headDim);
  if (desc.window != 0)
    name += llvm::formatv("_window_{0}", desc.window);
  if (desc.cap != 0)
    name += "_capped";
  if (desc.starts)
    name += "_documents";
  if (desc.fast)
    name += "_fast";
  return attentions.entry(initializer, name);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

size_t Tables::group(Operation *op, FlatSymbolRefAttr name, ArrayAttr axes) {
  // Ops verify that the mesh exists and has the axes.
  dist::MeshOp mesh = dist::lookupMesh(op, name);
  std::string list;
  for (dist::AxisRefAttr ref : dist::axisRefs(axes)) {
    size_t position = 0;
    for (auto [i, axis] : llvm::enumerate(mesh.getAxes()))
      if (cast<dist::MeshAxisAttr>(axis).getName() == ref.getName())
        position = i;
    if (!list.empty())
      list += ", ";
    list += llvm::formatv("{{{0}, {1}, {2}}", position, ref.getPre(),
                          mesh.sizeOf(ref));
  }
  return groups.index(list, axes.size());
}

/// Who adds, and the levels: the last fields, where they are not the default.
static std::string levelsText(const rt::CollectiveDesc &desc) {
  if (desc.nodeRanks > 1)
    return llvm::formatv(", false, {0}", desc.nodeRanks);
  return desc.fast ? ", true" : "";
}

std::string Tables::collective(exec::CollectiveOp op) {
  SmallVector<rt::CollectiveItem> items = op.getItems();
  rt::CollectiveDesc desc = op.getDescriptor(items);
  std::string itemText = llvm::join(
      llvm::map_range(
          items,
          [](const rt::CollectiveItem &item) {
            return llvm::formatv("{{{0}, {1}}", item.shard, item.full).str();
          }),
      ", ");
  std::string list = collectiveItems.entry(itemText, "items");
  dist::OriginAttr origin = op.getServesAttr();
  StringRef serves = origin ? origin.getText() : StringRef();
  StringRef kind = stringifyCollectiveKind(op.getKind());
  std::string initializer = llvm::formatv(
      "{{CollectiveKind::{0}, ReduceKind::{1}, {2}, {3}, {4}, {5}, "
      "collective_{6}, {7}{8}}",
      llvm::convertToCamelFromSnakeCase(kind, /*capitalizeFirst=*/true),
      desc.reduce == rt::ReduceKind::Sum ? "Sum" : "Max", dtypeText(desc.in),
      dtypeText(desc.out), group(op, op.getMeshAttr(), op.getAxesAttr()),
      desc.items, list, quoted(serves), levelsText(desc));
  std::string name = kind.str();
  if (!serves.empty())
    name += "_" + words(serves);
  return collectives.entry(initializer, name);
}

//===----------------------------------------------------------------------===//
// Lists of sizes, and the text of all tables
//===----------------------------------------------------------------------===//

std::string Tables::sizeList(ArrayRef<int64_t> values, StringRef wanted) {
  std::string list;
  for (int64_t value : values)
    list += (list.empty() ? "" : ", ") + std::to_string(value);
  return sizes.entry(list, wanted);
}

std::string Tables::typeList(ArrayRef<std::string> values, StringRef wanted) {
  return types.entry(llvm::join(values, ", "), wanted);
}

void Table::printLists(llvm::raw_ostream &os, StringRef title, StringRef type,
                       StringRef prefix) const {
  if (!entries.empty())
    os << "\n// " << title << '\n';
  for (auto [i, e] : llvm::enumerate(entries))
    wrap(os,
         llvm::formatv("static const {0} {1}{2}[] = {{{3}};", type, prefix,
                       e.name.empty() ? std::to_string(i) : e.name,
                       e.initializer)
             .str(),
         0);
}

void Table::printReferences(llvm::raw_ostream &os, StringRef type,
                            StringRef array, StringRef prefix) const {
  if (entries.empty())
    return;
  os << "static const " << type << ' ' << array << "[] = {\n";
  for (size_t i = 0; i < entries.size(); ++i)
    os << llvm::formatv("    {{{0}, {1}{2}},\n", entries[i].length, prefix, i);
  os << "};\n";
}

void Tables::print(llvm::raw_ostream &os) const {
  gemms.print(os,
              "Matmuls: batch, m, n, k, transpose lhs, transpose rhs, bias,\n"
              "// type of operands, type of the result.",
              "GemmDesc", "gemms");
  attentions.print(
      os,
      "Attention: batch, query length, key length, heads, key "
      "heads, head size,\n// scale, causal, type, without the library" +
          std::string(hasViews ? ", window, cap of scores, starts of documents." : "."),
      "AttentionDesc", "attentions");
  groups.printLists(os, "Groups of ranks: mesh axis, ranks before, size.",
                    "AxisRef", "group_");
  groups.printReferences(os, "GroupDesc", "groups", "group_");
  collectiveItems.printLists(
      os, "Tensors of a collective: elements per rank, elements in all.",
      "CollectiveItem", "collective_");
  collectives.print(os,
                    "Collectives: kind, reduction, type on the wire, type of "
                    "the result,\n// group, tensors, what they serve.",
                    "CollectiveDesc", "collectives");
  sizes.printLists(os, "Sizes that calls refer to.", "int64_t", "");
  types.printLists(os, "Types that calls refer to.", "DType", "");
}
