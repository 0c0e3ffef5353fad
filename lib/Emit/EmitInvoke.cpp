//===- EmitInvoke.cpp - exec.invoke to calls of the runtime ---------------===//
//
// ExecInvocations.def names the function of every typed operation and the
// order of its buffers; the sizes that stand between them follow from the
// operands' types. One entry of the table below says which.
//
//===----------------------------------------------------------------------===//
#include "Emitter.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

namespace {

/// Collects the arguments of one call in order.
class Call {
public:
  Call(exec::InvokeOp op, const exec::Invocation &known, Tables &tables,
       llvm::function_ref<std::string(Value)> pointer)
      : op(op), tables(tables), known(known), pointer(pointer) {
    arguments = {"c", streamName(op.getStream())};
  }

  void add(std::string text) { arguments.push_back(std::move(text)); }
  void number(int64_t value) { add(std::to_string(value)); }
  void dtype(Value v) {
    add(("DType::" + dtypeName(typeOf(v).getElementType())).str());
  }
  void sizes(ArrayRef<int64_t> values, StringRef wanted) {
    add(tables.sizeList(values, wanted));
  }

  MemRefType typeOf(Value v) { return cast<MemRefType>(v.getType()); }
  Value in(unsigned i) { return op.getInputs()[i]; }
  Value out(unsigned i) { return op.getOutputs()[i]; }

  int64_t integer(StringRef name) {
    return op.getParamsAttr().getAs<IntegerAttr>(name).getInt();
  }
  std::string real(StringRef name) {
    return literal(
        op.getParamsAttr().getAs<FloatAttr>(name).getValueAsDouble());
  }
  void boolean(StringRef name) {
    add(op.getParamsAttr().getAs<BoolAttr>(name).getValue() ? "true" : "false");
  }
  /// An integer array parameter (DenseI64ArrayAttr).
  ArrayRef<int64_t> integers(StringRef name) {
    return op.getParamsAttr().getAs<DenseI64ArrayAttr>(name).asArrayRef();
  }

  void pointers(ValueRange values) {
    for (Value v : values)
      add(pointer(v));
  }
  /// `{a, b, …}` of a multi-tensor operation.
  void list(ValueRange values) {
    std::string text;
    for (Value v : values)
      text += (text.empty() ? "{" : ", ") + pointer(v);
    add(text + "}");
  }
  void counts(ValueRange values) {
    SmallVector<int64_t> elements;
    for (Value v : values)
      elements.push_back(typeOf(v).getNumElements());
    sizes(elements, "counts");
  }
  /// Inputs, outputs, and the workspace if the function takes one.
  void buffers() {
    pointers(op.getInputs());
    pointers(op.getOutputs());
    if (known.workspaces != 0)
      add(op.getWorkspaces().empty() ? "nullptr"
                                     : pointer(op.getWorkspaces()[0]));
  }

  std::string text() {
    return known.function.str() + "(" + llvm::join(arguments, ", ") + ")";
  }

  exec::InvokeOp op;
  Tables &tables;

private:
  const exec::Invocation &known;
  llvm::function_ref<std::string(Value)> pointer;
  SmallVector<std::string> arguments;
};

} // namespace

/// Product of the sizes of all dimensions but the last.
static int64_t rowsOf(MemRefType type) {
  return type.getNumElements() / type.getShape().back();
}

static void attention(Call &c) {
  c.add(c.tables.attention(c.op));
  c.buffers();
}

static void rotary(Call &c) {
  c.dtype(c.in(0));
  for (int64_t size : c.typeOf(c.in(0)).getShape())
    c.number(size);
  c.boolean("halves");
  c.boolean("inverse");
  c.buffers();
}

/// Rows, and the shape of a table of classes.
static void tableSizes(Call &c, Value rows, Value table) {
  c.dtype(table);
  c.number(c.typeOf(rows).getNumElements());
  c.number(c.typeOf(table).getDimSize(0));
  c.number(c.typeOf(table).getDimSize(1));
  c.buffers();
}

static void embedding(Call &c) { tableSizes(c, c.in(0), c.in(1)); }
static void embeddingGrad(Call &c) { tableSizes(c, c.in(0), c.out(0)); }

static void crossEntropy(Call &c) {
  MemRefType logits = c.typeOf(c.in(0));
  c.dtype(c.in(0));
  c.number(rowsOf(logits));
  c.number(logits.getShape().back());
  c.number(c.integer("ignore_index"));
  c.buffers();
}

static void countLabels(Call &c) {
  c.number(c.typeOf(c.in(0)).getNumElements());
  c.number(c.integer("ignore_index"));
  c.buffers();
}

static void transpose(Call &c) {
  ArrayRef<int64_t> shape = c.typeOf(c.in(0)).getShape();
  c.dtype(c.in(0));
  c.number(shape.size());
  c.sizes(shape, "shape");
  c.sizes(c.integers("permutation"), "permutation");
  c.buffers();
}

static void copyBox(Call &c) {
  c.dtype(c.in(0));
  c.number(c.integers("shape").size());
  c.sizes(c.integers("shape"), "box");
  c.sizes(c.typeOf(c.in(0)).getShape(), "shape");
  c.sizes(c.integers("in_offsets"), "offsets");
  c.sizes(c.typeOf(c.out(0)).getShape(), "shape");
  c.sizes(c.integers("out_offsets"), "offsets");
  c.buffers();
}

static void fillZero(Call &c) {
  c.buffers();
  c.number(exec::bytesOf(c.typeOf(c.out(0))));
}

static void shardOf(Call &c) {
  DictionaryAttr params = c.op.getParamsAttr();
  c.number(c.tables.group(c.op, params.getAs<FlatSymbolRefAttr>("mesh"),
                          params.getAs<ArrayAttr>("axes")));
  c.number(exec::bytesOf(c.typeOf(c.in(0))));
  c.number(exec::bytesOf(c.typeOf(c.out(0))));
  c.buffers();
}

static void absMax(Call &c) {
  c.counts(c.op.getInputs());
  c.list(c.op.getInputs());
  c.pointers(c.op.getOutputs());
}

static void sumSquares(Call &c) {
  ValueRange tensors = c.op.getInputs().drop_front();
  c.counts(tensors);
  c.pointers(c.op.getInputs().take_front());
  c.list(tensors);
  c.pointers(c.op.getOutputs());
}

static void clipCoefficient(Call &c) {
  c.add(c.real("max_norm"));
  c.number(c.typeOf(c.in(1)).getNumElements() / 2);
  c.buffers();
}

/// Parameters, first moments, second moments, gradients, then three scalars.
/// The outputs are the first three again.
static void adamw(Call &c) {
  OperandRange in = c.op.getInputs();
  size_t n = (in.size() - 3) / 4;
  c.add("{" + c.real("beta1") + ", " + c.real("beta2") + ", " + c.real("eps") +
        ", " + c.real("weight_decay") + "}");
  c.counts(in.take_front(n));
  for (size_t i = 0; i < 4; ++i)
    c.list(in.slice(i * n, n));
  c.pointers(in.take_back(3));
}

FailureOr<std::string>
emit::invokeCall(exec::InvokeOp op, Tables &tables,
                 llvm::function_ref<std::string(Value)> pointer) {
  using Arguments = void (*)(Call &);
  static const llvm::StringMap<Arguments> spelling = {
      {"attention", attention},
      {"attention_grad", attention},
      {"rotary", rotary},
      {"embedding", embedding},
      {"embedding_grad", embeddingGrad},
      {"cross_entropy", crossEntropy},
      {"cross_entropy_grad", crossEntropy},
      {"count_labels", countLabels},
      {"transpose", transpose},
      {"copy_box", copyBox},
      {"fill_zero", fillZero},
      {"shard_of", shardOf},
      {"abs_max", absMax},
      {"sum_squares", sumSquares},
      {"clip_coefficient", clipCoefficient},
      {"adamw", adamw},
  };
  const exec::Invocation *known = exec::lookupInvocation(op.getCallee());
  auto arguments = spelling.find(op.getCallee());
  if (!known || arguments == spelling.end())
    return op.emitOpError("has no spelling in C++: '") << op.getCallee() << "'";
  Call call(op, *known, tables, pointer);
  arguments->second(call);
  return call.text();
}
