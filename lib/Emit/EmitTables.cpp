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

size_t Table::index(std::string initializer) {
  auto [it, isNew] = position.try_emplace(initializer, entries.size());
  if (isNew)
    entries.push_back({std::move(initializer), {}});
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

static std::string dtypeText(Type type) {
  return ("DType::" + dtypeName(type)).str();
}

static MemRefType typeOf(Value v) { return cast<MemRefType>(v.getType()); }

std::string Tables::gemm(exec::GemmOp op) {
  MemRefType lhs = typeOf(op.getInputs()[0]), out = typeOf(op.getOutputs()[0]);
  int64_t rank = out.getRank();
  int64_t m = out.getDimSize(rank - 2), n = out.getDimSize(rank - 1);
  int64_t k = lhs.getDimSize(lhs.getRank() - (op.getTransposeLhs() ? 2 : 1));
  int64_t batch = out.getNumElements() / (m * n);
  bool bias = op.getInputs().size() > 2;
  Type inType = lhs.getElementType(), outType = out.getElementType();
  int64_t workspace = 0;
  for (Value w : op.getWorkspaces())
    workspace = typeOf(w).getNumElements();

  std::string initializer = llvm::formatv(
      "{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}}", batch, m, n, k,
      boolText(op.getTransposeLhs()), boolText(op.getTransposeRhs()),
      boolText(bias), dtypeText(inType), dtypeText(outType), workspace);
  std::string name = "gemm_";
  if (batch != 1)
    name += llvm::formatv("{0}_times_", batch);
  name += llvm::formatv("{0}x{1}x{2}_{3}{4}", m, n, k,
                        op.getTransposeLhs() ? 't' : 'n',
                        op.getTransposeRhs() ? 't' : 'n');
  if (bias)
    name += "_bias";
  name += "_" + dtypeName(inType).lower();
  if (inType != outType)
    name += "_" + dtypeName(outType).lower();
  return gemms.entry(initializer, name);
}

std::string Tables::attention(exec::InvokeOp op) {
  // Layouts as in fsdp/Runtime/Types.h: q [batch, qLen, heads, headDim],
  // k [batch, kvLen, kvHeads, headDim].
  MemRefType q = typeOf(op.getInputs()[0]), k = typeOf(op.getInputs()[1]);
  DictionaryAttr params = op.getParamsAttr();
  double scale = params.getAs<FloatAttr>("scale").getValueAsDouble();
  bool causal = params.getAs<BoolAttr>("causal").getValue();
  std::string initializer = llvm::formatv(
      "{{{0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}}", q.getDimSize(0),
      q.getDimSize(1), k.getDimSize(1), q.getDimSize(2), k.getDimSize(2),
      q.getDimSize(3), literal(scale), boolText(causal),
      dtypeText(q.getElementType()));
  std::string name =
      llvm::formatv("attention_{0}x{1}_{2}heads_{3}", q.getDimSize(0),
                    q.getDimSize(1), q.getDimSize(2), q.getDimSize(3));
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
  return groups.index(list);
}

static StringRef kindName(exec::CollectiveKind kind) {
  switch (kind) {
  case exec::CollectiveKind::AllGather:
    return "AllGather";
  case exec::CollectiveKind::ReduceScatter:
    return "ReduceScatter";
  case exec::CollectiveKind::AllReduce:
    return "AllReduce";
  }
  llvm_unreachable("a collective");
}

/// Elements that every rank contributes to or receives of the i-th tensor,
/// and elements of the whole one without padding.
static std::string itemText(exec::CollectiveOp op, unsigned i) {
  int64_t in = typeOf(op.getInputs()[i]).getNumElements();
  int64_t out = typeOf(op.getOutputs()[i]).getNumElements();
  bool gathers = op.getKind() == exec::CollectiveKind::AllGather;
  int64_t shard = gathers ? in : out, full = gathers ? out : in;
  return llvm::formatv("{{{0}, {1}}", shard, full);
}

std::string Tables::collective(exec::CollectiveOp op) {
  std::string items;
  for (unsigned i = 0; i < op.getInputs().size(); ++i)
    items += (i == 0 ? "" : ", ") + itemText(op, i);
  std::string list = collectiveItems.entry(items, "items");
  StringRef serves = op.getServes().value_or("");
  StringRef kind = kindName(op.getKind());
  std::string initializer = llvm::formatv(
      "{{CollectiveKind::{0}, ReduceKind::{1}, {2}, {3}, {4}, {5}, {6}, "
      "collective_{7}, {8}}",
      kind, op.getReduce() == exec::ReduceKind::Sum ? "Sum" : "Max",
      dtypeText(typeOf(op.getInputs()[0]).getElementType()),
      dtypeText(typeOf(op.getOutputs()[0]).getElementType()),
      literal(op.getScale().convertToDouble()),
      group(op, op.getMeshAttr(), op.getAxesAttr()), op.getInputs().size(),
      list, quoted(serves));
  std::string name = stringifyCollectiveKind(op.getKind()).str();
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
    os << llvm::formatv("    {{std::size({0}{1}), {0}{1}},\n", prefix, i);
  os << "};\n";
}

void Tables::print(llvm::raw_ostream &os) const {
  gemms.print(os,
              "Matmuls: batch, m, n, k, transpose lhs, transpose rhs, bias,\n"
              "// type of operands, type of the result.",
              "GemmDesc", "gemms");
  attentions.print(os,
                   "Attention: batch, query length, key length, heads, key "
                   "heads, head size,\n// scale, causal, type.",
                   "AttentionDesc", "attentions");
  groups.printLists(os, "Groups of ranks: mesh axis, ranks before, size.",
                    "AxisRef", "group_");
  groups.printReferences(os, "GroupDesc", "groups", "group_");
  collectiveItems.printLists(
      os, "Tensors of a collective: elements per rank, elements in all.",
      "CollectiveItem", "collective_");
  collectives.print(os,
                    "Collectives: kind, reduction, type on the wire, type of "
                    "the result, scale,\n// group, tensors, what they serve.",
                    "CollectiveDesc", "collectives");
  sizes.printLists(os, "Sizes that calls refer to.", "int64_t", "");
}
