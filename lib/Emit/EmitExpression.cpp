//===- EmitExpression.cpp - Scalar code of kernels ------------------------===//
//
// One op of arith or math is one operator or one function of KernelMath.h.
// A value with a single use is spelled where it is used, as a person would
// write it; every other value gets a variable.
//
//===----------------------------------------------------------------------===//
#include "EmitExpression.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fsdp;
using namespace fsdp::emit;

/// Longer expressions are split into variables, for the reader.
static constexpr size_t kLongestInline = 48;
static constexpr size_t kLongestStored = 80;

static std::string cType(Type type) {
  if (type.isInteger(1))
    return "bool";
  if (type.isInteger(64))
    return "int64_t";
  if (type.isInteger())
    return "int32_t";
  // bf16 scalars are floats that roundBF16 has rounded.
  return "float";
}

std::string ExpressionEmitter::text(Value value, Precedence weakest) {
  auto it = known.find(value);
  assert(it != known.end() && "operands are emitted before their users");
  const Expression &e = it->second;
  return e.precedence <= weakest ? e.text : "(" + e.text + ")";
}

void ExpressionEmitter::bind(Value value, std::string text,
                             Precedence precedence) {
  known[value] = {std::move(text), precedence};
}

static bool isVariable(StringRef text) {
  return llvm::all_of(text,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// True if the value can be spelled at its only use: then order of evaluation
/// does not matter, since nothing between reads what it could change.
static bool isInlined(Operation *op, StringRef text, bool readsOutput) {
  Value value = op->getResult(0);
  if (!value.hasOneUse() || readsOutput)
    return false;
  Operation *user = *value.user_begin();
  bool isLast = isa<exec::StoreOp, exec::YieldOp>(user);
  return user->getBlock() == op->getBlock() &&
         text.size() <= (isLast ? kLongestStored : kLongestInline);
}

void ExpressionEmitter::define(Operation *op, std::string text,
                               Precedence precedence, StringRef wanted,
                               bool readsOutput) {
  Value value = op->getResult(0);
  if (isInlined(op, text, readsOutput))
    return bind(value, std::move(text), precedence);
  std::string name = names.unique(wanted);
  indent() << "const " << cType(value.getType()) << ' ' << name << " = " << text
           << ";\n";
  bind(value, name, Precedence::Primary);
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static Precedence tighter(Precedence p) {
  return static_cast<Precedence>(static_cast<int>(p) - 1);
}

/// `a op b`. Operators associate to the left, so the right side must bind
/// tighter: the emitted order of operations is exactly that of the IR.
void ExpressionEmitter::binary(Operation *op, StringRef symbol, Precedence p) {
  define(op,
         text(op->getOperand(0), p) + " " + symbol.str() + " " +
             text(op->getOperand(1), tighter(p)),
         p, "t");
}

/// `f(a, b, …)` of KernelMath.h.
void ExpressionEmitter::call(Operation *op, StringRef function) {
  std::string list;
  for (Value operand : op->getOperands())
    list += (list.empty() ? "" : ", ") + text(operand, Precedence::Select);
  define(op, function.str() + "(" + list + ")", Precedence::Primary, "t");
}

/// The comparison of arith.cmpf. Unordered forms are negations of ordered
/// ones, which is what C++ comparisons are.
static std::string compareFloat(arith::CmpFPredicate predicate,
                                const std::string &a, const std::string &b) {
  auto plain = [&](const char *symbol) { return a + symbol + b; };
  auto negated = [&](const char *symbol) {
    return "!(" + a + symbol + b + ")";
  };
  using P = arith::CmpFPredicate;
  switch (predicate) {
  case P::OEQ:
    return plain(" == ");
  case P::OGT:
    return plain(" > ");
  case P::OGE:
    return plain(" >= ");
  case P::OLT:
    return plain(" < ");
  case P::OLE:
    return plain(" <= ");
  case P::UNE:
    return plain(" != ");
  case P::UGT:
    return negated(" <= ");
  case P::UGE:
    return negated(" < ");
  case P::ULT:
    return negated(" >= ");
  case P::ULE:
    return negated(" > ");
  case P::ONE:
    return "(" + a + " < " + b + " || " + a + " > " + b + ")";
  case P::UEQ:
    return "!(" + a + " < " + b + " || " + a + " > " + b + ")";
  case P::ORD:
    return "(" + a + " == " + a + " && " + b + " == " + b + ")";
  case P::UNO:
    return "(" + a + " != " + a + " || " + b + " != " + b + ")";
  case P::AlwaysTrue:
    return "true";
  case P::AlwaysFalse:
    return "false";
  }
  llvm_unreachable("a predicate");
}

static const char *compareInteger(arith::CmpIPredicate predicate) {
  using P = arith::CmpIPredicate;
  switch (predicate) {
  case P::eq:
    return "==";
  case P::ne:
    return "!=";
  case P::slt:
    return "<";
  case P::sle:
    return "<=";
  case P::sgt:
    return ">";
  case P::sge:
    return ">=";
  default:
    return nullptr;
  }
}

LogicalResult ExpressionEmitter::constant(arith::ConstantOp op) {
  if (auto value = dyn_cast<FloatAttr>(op.getValue())) {
    float f = static_cast<float>(value.getValueAsDouble());
    bind(op, floatLiteral(f),
         std::signbit(f) ? Precedence::Unary : Precedence::Primary);
    return success();
  }
  auto value = dyn_cast<IntegerAttr>(op.getValue());
  if (!value)
    return op.emitOpError("is not a number");
  if (op.getType().isInteger(1))
    bind(op, value.getValue().isZero() ? "false" : "true");
  else
    bind(op, std::to_string(value.getInt()),
         value.getInt() < 0 ? Precedence::Unary : Precedence::Primary);
  return success();
}

/// The element of an argument at the current position.
std::string ExpressionEmitter::element(const KernelArgument &arg) {
  return arg.vector.empty() ? arg.name + "[" + arg.index + "]"
                            : arg.vector + "[i]";
}

void ExpressionEmitter::load(exec::LoadOp op) {
  const KernelArgument &arg = arguments.lookup(op.getSource());
  std::string loaded = element(arg);
  if (op.getColumn())
    loaded =
        arg.name + "[first + " + text(op.getColumn(), Precedence::Sum) + "]";
  // bf16 is widened by a function; C++ does the other conversions itself.
  if (arg.type.getElementType().isBF16())
    loaded = "widen(" + loaded + ")";
  define(op, loaded, Precedence::Primary, identifier(arg.name + ".v"),
         arg.isOutput);
}

void ExpressionEmitter::compare(arith::CmpFOp op) {
  define(op,
         compareFloat(op.getPredicate(), text(op.getLhs(), Precedence::Sum),
                      text(op.getRhs(), Precedence::Sum)),
         Precedence::Compare, "c");
}

void ExpressionEmitter::select(arith::SelectOp op) {
  define(op,
         text(op.getCondition(), Precedence::Or) + " ? " +
             text(op.getTrueValue(), Precedence::Or) + " : " +
             text(op.getFalseValue(), Precedence::Or),
         Precedence::Select, "t");
}

void ExpressionEmitter::widen(arith::ExtFOp op) {
  // Already held as the float that it widens to.
  Expression in = known.find(op.getIn())->second;
  if (isVariable(in.text))
    bind(op, in.text);
  else
    define(op, in.text, in.precedence, "t");
}

std::string ExpressionEmitter::stored(Value value, const KernelArgument &arg) {
  std::string v = text(value, Precedence::Select);
  return arg.type.getElementType().isBF16() ? "toBF16(" + v + ")" : v;
}

void ExpressionEmitter::store(exec::StoreOp op) {
  const KernelArgument &arg = arguments.lookup(op.getTarget());
  indent() << element(arg) << " = " << stored(op.getValue(), arg) << ";\n";
}

//===----------------------------------------------------------------------===//
// The table of ops
//===----------------------------------------------------------------------===//

LogicalResult ExpressionEmitter::scalar(Operation *op) {
  using P = Precedence;
  bool spelled = true;
  llvm::TypeSwitch<Operation *>(op)
      .Case<arith::AddFOp, arith::AddIOp>(
          [&](auto o) { binary(o, "+", P::Sum); })
      .Case<arith::SubFOp, arith::SubIOp>(
          [&](auto o) { binary(o, "-", P::Sum); })
      .Case<arith::MulFOp, arith::MulIOp>(
          [&](auto o) { binary(o, "*", P::Product); })
      .Case<arith::DivFOp, arith::DivSIOp>(
          [&](auto o) { binary(o, "/", P::Product); })
      .Case<arith::RemSIOp>([&](auto o) { binary(o, "%", P::Product); })
      .Case<arith::AndIOp>([&](auto o) { binary(o, "&", P::And); })
      .Case<arith::OrIOp>([&](auto o) { binary(o, "|", P::Or); })
      .Case<arith::NegFOp>([&](arith::NegFOp o) {
        define(o, "-" + text(o.getOperand(), P::Primary), P::Unary, "t");
      })
      .Case<arith::MaximumFOp>([&](auto o) { call(o, "math::max"); })
      .Case<arith::MinimumFOp>([&](auto o) { call(o, "math::min"); })
      .Case<arith::CmpFOp>([&](arith::CmpFOp o) { compare(o); })
      .Case<arith::CmpIOp>([&](arith::CmpIOp o) {
        if (const char *symbol = compareInteger(o.getPredicate()))
          binary(o, symbol, P::Compare);
        else
          spelled = false;
      })
      .Case<arith::SelectOp>([&](arith::SelectOp o) { select(o); })
      .Case<arith::SIToFPOp>([&](auto o) { call(o, "float"); })
      .Case<arith::FPToSIOp>([&](auto o) { call(o, "int32_t"); })
      .Case<arith::TruncFOp>([&](auto o) { call(o, "roundBF16"); })
      .Case<arith::ExtFOp>([&](arith::ExtFOp o) { widen(o); })
      .Case<math::ExpOp>([&](auto o) { call(o, "math::exp"); })
      .Case<math::LogOp>([&](auto o) { call(o, "math::log"); })
      .Case<math::TanhOp>([&](auto o) { call(o, "math::tanh"); })
      .Case<math::ErfOp>([&](auto o) { call(o, "math::erf"); })
      .Case<math::SqrtOp>([&](auto o) { call(o, "math::sqrt"); })
      .Case<math::RsqrtOp>([&](auto o) { call(o, "math::rsqrt"); })
      .Case<math::AbsFOp>([&](auto o) { call(o, "math::abs"); })
      .Case<exec::ColumnOp>([&](exec::ColumnOp o) { bind(o, "int32_t(col)"); })
      .Case<exec::LoadOp>([&](exec::LoadOp o) { load(o); })
      .Default([&](Operation *) { spelled = false; });
  if (auto c = dyn_cast<arith::ConstantOp>(op))
    return constant(c);
  if (!spelled)
    return op->emitOpError("has no spelling in C++");
  return success();
}
