//===- RuntimeOps.cpp - Records of runtime operations, read ---------------===//
#include "dialects/Exec/Exec.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/InterleavedRange.h"
#include <map>

using namespace mlir;

namespace fsdp::exec {

WorkspaceSizes::~WorkspaceSizes() = default;

int64_t WorkspaceSizes::embeddingGradWorkspaceBytes(rt::DType type, int64_t,
                                                    int64_t classes,
                                                    int64_t cols) const {
  if (type == rt::DType::F32)
    return 0;
  return (CheckedSize(classes) * cols * rt::sizeOf(rt::DType::F32)).saturated();
}

rt::DType dtypeOf(Type element) {
  if (element.isF32())
    return rt::DType::F32;
  if (element.isBF16())
    return rt::DType::BF16;
  if (element.isF64())
    return rt::DType::F64;
  if (element.isInteger(8))
    return rt::DType::I8;
  if (element.isInteger(32))
    return rt::DType::I32;
  assert(element.isInteger(64) && "exec buffers hold f32, bf16, f64, i8-i64");
  return rt::DType::I64;
}

StringRef chooseAttention(RuntimeOpInterface op, const WorkspaceSizes &target,
                          const AttentionOptions &options) {
  std::optional<rt::AttentionDesc> desc = attentionOf(op);
  if (!desc)
    return {};
  bool isNoSurprise = options.reference || !target.hasAttention(desc->type);
  StringRef why = target.whyNoLibrary(*desc);
  if (isNoSurprise || !why.empty())
    op->setAttr("plain", UnitAttr::get(op->getContext()));
  else if (options.fast && isa<AttentionGradOp>(op.getOperation()))
    op->setAttr("fast", UnitAttr::get(op->getContext()));
  return isNoSurprise ? StringRef() : why;
}

//===----------------------------------------------------------------------===//
// Which operands a name stands for
//===----------------------------------------------------------------------===//

using Specs = ArrayRef<BufferSpec>;

static int64_t countOf(Specs specs, BufferSpec::Kind kind) {
  return llvm::count_if(
      specs, [&](const BufferSpec &spec) { return spec.kind == kind; });
}

/// Tensors of a list, if `count` buffers are those of `specs`.
static int64_t tensorsIn(Specs specs, int64_t count) {
  int64_t lists = countOf(specs, BufferSpec::Kind::List);
  int64_t single = countOf(specs, BufferSpec::Kind::One);
  return lists == 0 ? 0 : (count - single) / lists;
}

/// Gives `visit` every spec with its buffers. The counts have been verified.
static void
forEachSpec(Specs specs, ValueRange buffers,
            function_ref<void(const BufferSpec &, ValueRange)> visit) {
  int64_t tensors = tensorsIn(specs, buffers.size());
  int64_t left = buffers.size() - countOf(specs, BufferSpec::Kind::One) -
                 tensors * countOf(specs, BufferSpec::Kind::List);
  for (const BufferSpec &spec : specs) {
    int64_t size = 1;
    if (spec.kind == BufferSpec::Kind::List)
      size = tensors;
    else if (spec.kind == BufferSpec::Kind::Optional)
      size = std::exchange(left, 0);
    visit(spec, buffers.take_front(size));
    buffers = buffers.drop_front(size);
  }
}

static void
forEachSpec(RuntimeOpInterface op,
            function_ref<void(const BufferSpec &, ValueRange)> visit) {
  forEachSpec(op.getSignature().inputs, op.getInputs(), visit);
  forEachSpec(op.getSignature().outputs, op.getOutputs(), visit);
}

ValueRange buffersOf(RuntimeOpInterface op, StringRef name) {
  if (name == "workspace")
    return op.getWorkspaces();
  ValueRange found;
  bool isKnown = false;
  forEachSpec(op, [&](const BufferSpec &spec, ValueRange buffers) {
    if (spec.name == name && !isKnown) {
      found = buffers;
      isKnown = true;
    }
  });
  assert(isKnown && "a name of the record");
  return found;
}

Value bufferOf(RuntimeOpInterface op, StringRef name) {
  ValueRange buffers = buffersOf(op, name);
  return buffers.empty() ? Value() : buffers.front();
}

static MemRefType typeOf(Value buffer) {
  return cast<MemRefType>(buffer.getType());
}

Type elementOf(RuntimeOpInterface op, StringRef name) {
  return typeOf(buffersOf(op, name).front()).getElementType();
}

ArrayRef<int64_t> shapeOf(RuntimeOpInterface op, StringRef name) {
  return typeOf(buffersOf(op, name).front()).getShape();
}

SmallVector<int64_t> countsOf(RuntimeOpInterface op, StringRef name) {
  return llvm::map_to_vector(buffersOf(op, name), [](Value buffer) {
    return typeOf(buffer).getNumElements();
  });
}

SmallVector<Type> elementsOf(RuntimeOpInterface op, StringRef name) {
  return llvm::map_to_vector(buffersOf(op, name), [](Value buffer) {
    return typeOf(buffer).getElementType();
  });
}

/// The position of the first buffer that `specs` call `name`.
static unsigned positionOf(Specs specs, ValueRange buffers, StringRef name) {
  unsigned at = 0, found = 0;
  forEachSpec(specs, buffers, [&](const BufferSpec &spec, ValueRange list) {
    if (spec.name == name)
      found = at;
    at += list.size();
  });
  return found;
}

std::optional<unsigned> updatedInput(RuntimeOpInterface op, unsigned output) {
  const RuntimeSignature &signature = op.getSignature();
  std::optional<unsigned> input;
  unsigned begin = 0;
  forEachSpec(signature.outputs, op.getOutputs(),
              [&](const BufferSpec &spec, ValueRange list) {
                unsigned end = begin + list.size();
                if (!spec.updates.empty() && output >= begin && output < end)
                  input = positionOf(signature.inputs, op.getInputs(),
                                     spec.updates) +
                          output - begin;
                begin = end;
              });
  return input;
}

//===----------------------------------------------------------------------===//
// Shapes by names
//===----------------------------------------------------------------------===//

namespace {

/// A word of BufferSpec::shape.
struct Dimension {
  enum class Kind { Number, Name, AtLeast, Half, Group };

  explicit Dimension(StringRef word) : name(word) {
    if (!word.getAsInteger(10, number))
      kind = Kind::Number;
    else if (name.consume_front(">="))
      kind = Kind::AtLeast;
    else if (name.consume_back("/2"))
      kind = Kind::Half;
    else if (name.consume_back("..."))
      kind = Kind::Group;
  }

  Kind kind = Kind::Name;
  StringRef name;
  int64_t number = 0;
};

} // namespace

static SmallVector<Dimension> dimensionsOf(StringRef shape) {
  SmallVector<Dimension> dimensions;
  for (StringRef word : llvm::split(shape, ' '))
    if (!word.empty())
      dimensions.emplace_back(word);
  return dimensions;
}

/// Gives `visit` every word of `pattern` with its sizes; false if the numbers
/// of dimensions differ.
static bool matchDimensions(
    ArrayRef<Dimension> pattern, ArrayRef<int64_t> shape,
    function_ref<bool(const Dimension &, ArrayRef<int64_t>)> visit) {
  bool hasGroup = llvm::any_of(pattern, [](const Dimension &dimension) {
    return dimension.kind == Dimension::Kind::Group;
  });
  size_t fixed = pattern.size() - (hasGroup ? 1 : 0);
  if (hasGroup ? shape.size() < fixed : shape.size() != fixed)
    return false;
  size_t grouped = shape.size() - fixed;
  for (const Dimension &dimension : pattern) {
    size_t size = dimension.kind == Dimension::Kind::Group ? grouped : 1;
    if (!visit(dimension, shape.take_front(size)))
      return false;
    shape = shape.drop_front(size);
  }
  return true;
}

int64_t sizeOf(RuntimeOpInterface op, StringRef name) {
  std::optional<int64_t> found;
  forEachSpec(op, [&](const BufferSpec &spec, ValueRange buffers) {
    if (found || spec.shape == "*" || spec.kind != BufferSpec::Kind::One)
      return;
    matchDimensions(dimensionsOf(spec.shape),
                    typeOf(buffers.front()).getShape(),
                    [&](const Dimension &dimension, ArrayRef<int64_t> sizes) {
                      bool isExact = dimension.kind == Dimension::Kind::Name ||
                                     dimension.kind == Dimension::Kind::Group;
                      if (isExact && dimension.name == name)
                        found = llvm::product_of(sizes);
                      return true;
                    });
  });
  assert(found && "a dimension of the record");
  return *found;
}

//===----------------------------------------------------------------------===//
// The verifier that a record implies
//===----------------------------------------------------------------------===//

/// "q, k, v" or "max, in..., bias?".
static std::string namesOf(Specs specs) {
  return llvm::join(
      llvm::map_range(specs,
                      [](const BufferSpec &spec) {
                        bool list = spec.kind == BufferSpec::Kind::List;
                        bool optional = spec.kind == BufferSpec::Kind::Optional;
                        return (spec.name + (list ? "..." : "") +
                                (optional ? "?" : ""))
                            .str();
                      }),
      ", ");
}

/// Is `count` the number of buffers of these specs, `tensors` of a list if it
/// is not negative?
static bool fits(Specs specs, int64_t count, int64_t tensors) {
  int64_t lists = countOf(specs, BufferSpec::Kind::List);
  int64_t optional = countOf(specs, BufferSpec::Kind::Optional);
  int64_t single = countOf(specs, BufferSpec::Kind::One);
  if (lists > 0 && tensors < 0)
    tensors = tensorsIn(specs, count);
  if (lists > 0 && tensors < 1)
    return false;
  int64_t least = single + lists * std::max<int64_t>(tensors, 0);
  return count >= least && count <= least + optional;
}

static LogicalResult verifyCounts(RuntimeOpInterface op) {
  const RuntimeSignature &signature = op.getSignature();
  int64_t inputs = op.getInputs().size(), outputs = op.getOutputs().size();
  if (!fits(signature.inputs, inputs, /*tensors=*/-1))
    return op->emitOpError("does not take ")
           << inputs << " inputs, but (" << namesOf(signature.inputs) << ")";
  if (!fits(signature.outputs, outputs, tensorsIn(signature.inputs, inputs)))
    return op->emitOpError("does not have ")
           << outputs << " outputs, but (" << namesOf(signature.outputs) << ")";
  return success();
}

static LogicalResult verifyWorkspaces(RuntimeOpInterface op) {
  std::optional<BufferSpec::Kind> kind = op.getSignature().workspace;
  size_t most = kind ? 1 : 0;
  if (kind != BufferSpec::Kind::List && op.getWorkspaces().size() > most)
    return op->emitOpError("takes ")
           << (most == 0 ? "no workspace" : "at most one workspace");
  for (Value space : op.getWorkspaces())
    if (!typeOf(space).getElementType().isInteger(8) ||
        typeOf(space).getRank() != 1)
      return op->emitOpError("needs a workspace of bytes, 'memref<…xi8>', got ")
             << space.getType();
  return success();
}

namespace {

/// Checks the buffers of an op one after another, and keeps what names stand
/// for.
class SignatureChecker {
public:
  explicit SignatureChecker(RuntimeOpInterface op) : op(op) {}

  /// `tensor` is the position in a list, or -1.
  LogicalResult check(const BufferSpec &spec, Value buffer, int64_t tensor);

private:
  struct Bound {
    SmallVector<int64_t> sizes;
    StringRef buffer;
    MemRefType type;
  };

  LogicalResult checkElement(const BufferSpec &spec, MemRefType type);
  LogicalResult checkShape(const BufferSpec &spec, MemRefType type,
                           int64_t tensor);
  bool bind(const Dimension &dimension, ArrayRef<int64_t> sizes, int64_t tensor,
            const BufferSpec &spec, MemRefType type);

  RuntimeOpInterface op;
  llvm::StringMap<std::pair<Type, StringRef>> elements;
  std::map<std::pair<StringRef, int64_t>, Bound> dimensions;
  /// What a dimension that does not agree was bound by.
  const Bound *conflict = nullptr;
  StringRef conflictName;
};

} // namespace

LogicalResult SignatureChecker::checkElement(const BufferSpec &spec,
                                             MemRefType type) {
  Type element = type.getElementType();
  bool isFloat = element.isF32() || element.isBF16();
  auto refuse = [&](const Twine &wanted) {
    return op->emitOpError("needs '")
           << spec.name << "' of " << wanted << ", got " << type;
  };
  if (spec.element.empty())
    return success();
  if ((spec.element == "float" || spec.element == "T") && !isFloat)
    return refuse("f32 or bf16");
  if (spec.element == "float")
    return success();
  if (spec.element == "T" || spec.element == "E") {
    auto [at, isNew] = elements.try_emplace(spec.element, element, spec.name);
    if (isNew || at->second.first == element)
      return success();
    return refuse("the element type of '" + at->second.second + "'");
  }
  bool agrees = (spec.element == "f32" && element.isF32()) ||
                (spec.element == "bf16" && element.isBF16()) ||
                (spec.element == "i32" && element.isInteger(32)) ||
                (spec.element == "i64" && element.isInteger(64));
  return agrees ? success() : refuse(spec.element);
}

bool SignatureChecker::bind(const Dimension &dimension, ArrayRef<int64_t> sizes,
                            int64_t tensor, const BufferSpec &spec,
                            MemRefType type) {
  if (dimension.kind == Dimension::Kind::Number)
    return sizes.front() == dimension.number;
  Bound bound{SmallVector<int64_t>(sizes), spec.name, type};
  if (dimension.kind == Dimension::Kind::Half)
    bound.sizes.front() *= 2;
  auto [at, isNew] =
      dimensions.try_emplace({dimension.name, tensor}, std::move(bound));
  bool agrees = dimension.kind == Dimension::Kind::AtLeast
                    ? sizes.front() >= at->second.sizes.front()
                    : isNew || llvm::equal(at->second.sizes, bound.sizes);
  if (!agrees) {
    conflict = &at->second;
    conflictName = dimension.name;
  }
  return agrees;
}

LogicalResult SignatureChecker::checkShape(const BufferSpec &spec,
                                           MemRefType type, int64_t tensor) {
  if (spec.shape == "*")
    return success();
  SmallVector<Dimension> pattern = dimensionsOf(spec.shape);
  if (matchDimensions(pattern, type.getShape(),
                      [&](const Dimension &dimension, ArrayRef<int64_t> sizes) {
                        return bind(dimension, sizes, tensor, spec, type);
                      }))
    return success();
  std::string wanted = llvm::join(llvm::split(spec.shape, ' '), ", ");
  InFlightDiagnostic diagnostic = op->emitOpError("needs '")
                                  << spec.name << "' of shape [" << wanted
                                  << "], got " << type;
  if (conflict)
    diagnostic << ": " << conflictName << " is "
               << llvm::interleaved(conflict->sizes, " x ") << " by '"
               << conflict->buffer << "' (" << conflict->type << ")";
  return diagnostic;
}

LogicalResult SignatureChecker::check(const BufferSpec &spec, Value buffer,
                                      int64_t tensor) {
  if (failed(checkElement(spec, typeOf(buffer))))
    return failure();
  return checkShape(spec, typeOf(buffer), tensor);
}

/// The function gets every updated buffer once, so that its operand and its
/// result are one.
static LogicalResult verifyUpdates(RuntimeOpInterface op) {
  for (auto [index, output] : llvm::enumerate(op.getOutputs())) {
    std::optional<unsigned> input = updatedInput(op, index);
    if (input && op.getInputs()[*input] != output)
      return op->emitOpError("updates in place: output ")
             << index << " must be input " << *input;
  }
  return success();
}

LogicalResult verifySignature(RuntimeOpInterface op) {
  if (failed(verifyCounts(op)) || failed(verifyWorkspaces(op)))
    return failure();
  SignatureChecker checker(op);
  LogicalResult result = success();
  forEachSpec(op, [&](const BufferSpec &spec, ValueRange buffers) {
    bool isList = spec.kind == BufferSpec::Kind::List;
    for (auto [tensor, buffer] : llvm::enumerate(buffers))
      if (succeeded(result))
        result = checker.check(spec, buffer, isList ? int64_t(tensor) : -1);
  });
  if (failed(result))
    return failure();
  return verifyUpdates(op);
}

} // namespace fsdp::exec
