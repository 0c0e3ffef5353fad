//===- EmitRuntime.cpp - Calls of the runtime -----------------------------===//
//
// The record of an operation (dialects/Exec/ExecRuntimeOps.td) says which
// function it is and gives the arguments one by one; here they are spelled.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

namespace {

/// Collects the arguments of one call in order.
class CallSpeller : public exec::RuntimeCall {
public:
  CallSpeller(exec::RuntimeOpInterface op, Tables &tables,
              llvm::function_ref<std::string(Value)> spellPointer)
      : tables(tables), spellPointer(spellPointer) {
    arguments = {"c", streamName(op.getStream())};
  }

  void index(const rt::GemmDesc &desc) override { add(tables.gemm(desc)); }
  void index(const rt::AttentionDesc &desc) override {
    add(tables.attention(desc));
  }
  void index(exec::CollectiveOp op) override { add(tables.collective(op)); }
  void group(Operation *op, FlatSymbolRefAttr mesh, ArrayAttr axes) override {
    number(tables.group(op, mesh, axes));
  }
  void dtype(Type element) override { add(spell(element)); }
  void number(int64_t value) override { add(std::to_string(value)); }
  void boolean(bool value) override { add(value ? "true" : "false"); }
  void real(const llvm::APFloat &value) override {
    add(literal(value.convertToDouble()));
  }
  void reals(ArrayRef<llvm::APFloat> values) override {
    add(braced(llvm::map_to_vector(values, [](const llvm::APFloat &value) {
      return literal(value.convertToDouble());
    })));
  }
  void sizes(ArrayRef<int64_t> values, StringRef name) override {
    add(tables.sizeList(values, name));
  }
  void dtypes(ArrayRef<Type> elements, StringRef name) override {
    bool areWide = llvm::all_of(elements, [](Type t) { return t.isF32(); });
    add(areWide ? "nullptr"
                : tables.typeList(llvm::map_to_vector(elements, spell), name));
  }
  void pointer(Value buffer) override {
    add(buffer ? spellPointer(buffer) : "nullptr");
  }
  void pointers(ValueRange buffers) override {
    add(braced(llvm::map_to_vector(buffers, spellPointer)));
  }

  /// Arguments after context and stream.
  SmallVector<std::string> arguments;

private:
  void add(std::string text) { arguments.push_back(std::move(text)); }
  static std::string spell(Type element) {
    return ("DType::" + dtypeName(exec::dtypeOf(element))).str();
  }
  static std::string braced(ArrayRef<std::string> items) {
    return "{" + llvm::join(items, ", ") + "}";
  }

  Tables &tables;
  llvm::function_ref<std::string(Value)> spellPointer;
};

} // namespace

std::string emit::runtimeCall(exec::RuntimeOpInterface op, Tables &tables,
                              llvm::function_ref<std::string(Value)> pointer) {
  CallSpeller call(op, tables, pointer);
  op.spellCall(call);
  return op.getSignature().function.str() + "(" +
         llvm::join(call.arguments, ", ") + ")";
}
