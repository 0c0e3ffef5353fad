//===- NNFacts.td - What the record of an nn op says of it ----*- tablegen -*-===//
//
// A fact is a field of an op's record: a line of the reference for people, and
// the body of an interface method for passes, which know no op by name. A fact
// that depends on more than this file can say has no body here and is written
// in C++ (NNSharding.cpp, NNCost.cpp, NNKernels.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef FSDP_NN_FACTS
#define FSDP_NN_FACTS

include "mlir/IR/OpBase.td"

/// `text` stands in the reference; `body` is C++, empty if the op has its own.
class NN_Fact<string theText, string theBody> {
  string text = theText;
  string body = theBody;
}

/// The C++ that gets the operand or result called `value`.
class NN_Get<string value, string suffix = ""> {
  string call = "get" # !toupper(!substr(value, 0, 1)) # !substr(value, 1) # suffix # "()";
}

//===----------------------------------------------------------------------===//
// How its loops may be split over ranks (ShardingOpInterface)
//===----------------------------------------------------------------------===//

class NN_ShardingFact<string text, string body> : NN_Fact<text, body>;

/// A rule in the notation of ShardingRule.h.
class NN_Rule<string notation> : NN_ShardingFact<"`" # notation # "`",
    "return shardingRule(*this, \"" # notation # "\");">;
/// `notation` where the C++ `condition` holds, which people call `name`.
class NN_RuleIf<string condition, string name, string notation, string otherwise>
    : NN_ShardingFact<"`" # notation # "` " # name # ", otherwise `" # otherwise # "`",
        "return shardingRule(*this, " # condition # " ? \"" # notation # "\" : \"" # otherwise # "\");">;
/// The same of two conditions, of which the first that holds counts.
class NN_RuleIfElse<string first, string firstName, string firstNotation, string second, string secondName,
    string secondNotation, string otherwise>
    : NN_ShardingFact<"`" # firstNotation # "` " # firstName # ", `" # secondNotation # "` " # secondName
            # ", otherwise `" # otherwise # "`",
        "return shardingRule(*this, " # first # " ? \"" # firstNotation # "\" : " # second # " ? \"" # secondNotation
            # "\" : \"" # otherwise # "\");">;
/// The op's own getShardingRule.
class NN_OwnRule<string text> : NN_ShardingFact<text, "">;

def NN_Elementwise : NN_ShardingFact<"element by element",
    "return elementwiseRule(*this);">;
/// Partials may stay partial.
def NN_ElementwiseOfParts : NN_ShardingFact<"element by element, also of partials",
    "ShardingRule rule = elementwiseRule(*this); rule.passesPartial = true; return rule;">;

//===----------------------------------------------------------------------===//
// In which operand it is linear while the others stay (ShardingOpInterface)
//===----------------------------------------------------------------------===//

/// `body` returns whether it is linear in the OpOperand `operand`.
class NN_LinearityFact<string text, string body> : NN_Fact<text, body>;

def NN_NotLinear : NN_LinearityFact<"in no operand", "return false;">;
/// A sum or a join: partial operands produce a partial (passesPartial).
def NN_LinearTogether : NN_LinearityFact<"in all operands together", "return false;">;
def NN_LinearInEach : NN_LinearityFact<"in each operand", "return true;">;
class NN_LinearUnless<string value> : NN_LinearityFact<"in each operand, without `" # value # "`",
    "return !" # NN_Get<value>.call # ";">;
class NN_LinearIn<string value> : NN_LinearityFact<"in `" # value # "`",
    "return &operand == &" # NN_Get<value, "Mutable">.call # ";">;

//===----------------------------------------------------------------------===//
// What it costs (CostOpInterface)
//===----------------------------------------------------------------------===//

class NN_FlopsFact<string text, string body> : NN_Fact<text, body>;

class NN_Flops<int count, string value> : NN_FlopsFact<
    "" # count # " for each element of `" # value # "`",
    "return " # count # " * elementsOf(" # NN_Get<value>.call # ");">;
/// Moves and conversions do no arithmetic.
def NN_NoFlops : NN_FlopsFact<"none", "return 0;">;
/// The op's own getFlops.
class NN_OwnFlops<string text> : NN_FlopsFact<text, "">;

//===----------------------------------------------------------------------===//
// Over which space it is a kernel (KernelOpInterface)
//===----------------------------------------------------------------------===//

class NN_SpaceFact<string text, string body> : NN_Fact<text, body>;

/// Of ops without KernelOpInterface.
def NN_NoKernel : NN_SpaceFact<"none", "">;
class NN_RowsOf<string value> : NN_SpaceFact<"rows of `" # value # "`",
    "return rowsOf(" # NN_Get<value>.call # ");">;
/// The same rows, combined into one value per column.
class NN_ColumnsOf<string value> : NN_SpaceFact<"columns of `" # value # "`",
    "return columnsOf(" # NN_Get<value>.call # ");">;
/// Of `input`, what is kept and what is combined over `dims`.
def NN_ReductionSpace : NN_SpaceFact<"rows or columns of `input`, as `dims` lie",
    "return reductionSpace(getInput(), getDims());">;
/// One row of all elements.
class NN_OneRowOf<string value> : NN_SpaceFact<"all of `" # value # "` as one row",
    "return {1, elementsOf(" # NN_Get<value>.call # ")};">;
/// The op's own getKernelSpace.
class NN_OwnSpace<string text> : NN_SpaceFact<text, "">;

//===----------------------------------------------------------------------===//
// How nn-precision changes its types (PrecisionOpInterface)
//===----------------------------------------------------------------------===//

class NN_PrecisionFact<string text, string rule> : NN_Fact<text, "return PrecisionRule::" # rule # ";">;

def NN_MatrixPrecision : NN_PrecisionFact<"the narrowest of the operands' types, or f32 if one is a wide parameter", "Matrix">;
def NN_WidePrecision : NN_PrecisionFact<"operands and result f32", "Wide">;
def NN_OperandsPrecision : NN_PrecisionFact<"the widest of the operands' types", "Operands">;
def NN_InputPrecision : NN_PrecisionFact<"the type of the first operand; the others have one type", "Input">;
def NN_ConstantPrecision : NN_PrecisionFact<"the type of its user's other operands", "Constant">;
def NN_DeclaredPrecision : NN_PrecisionFact<"as written", "Declared">;
/// Of ops that stand in no program that nn-precision takes.
def NN_LaterPrecision : NN_PrecisionFact<"none: created after nn-precision", "Later">;

//===----------------------------------------------------------------------===//
// What it does to tensors of the model (StateOpInterface)
//===----------------------------------------------------------------------===//

class NN_StateFact<string text, string body> : NN_Fact<text, body>;

/// `effect` (StateEffect in NN.h) on the tensor called `name`.
class NN_State<string effect> : NN_StateFact<!tolower(effect) # " of `name`",
    "visit(getName(), StateEffect::" # effect # ");">;
/// The same on all tensors that the arrays `lists` name; `getters` are theirs.
class NN_StateOfAll<string effect, list<string> lists, list<string> getters>
    : NN_StateFact<!tolower(effect) # " of all in " # !interleave(!foreach(l, lists, "`" # l # "`"), ", "),
        "for (::mlir::ArrayAttr names : {" # !interleave(!foreach(g, getters, g # "()"), ", ") # "})\n"
        "    for (auto name : names.getAsRange<::mlir::FlatSymbolRefAttr>())\n"
        "      visit(name.getValue(), StateEffect::" # effect # ");">;

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

class NN_Trait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::fsdp::nn";
}

/// Computes nothing: converts elements, or changes their shape, place or number.
def NN_MovesElements : NN_Trait<"MovesElements">;
/// Result i is operand i, or a box of it, with another type: no work in exec if
/// its elements are contiguous.
def NN_AliasesOperands : NN_Trait<"AliasesOperands">;
/// A matrix product of a library.
def NN_MatrixProduct : NN_Trait<"MatrixProduct">;
/// A library of the target reads the operands, which must have the alignment of
/// arena ranges.
def NN_ReadByLibrary : NN_Trait<"ReadByLibrary">;
/// Divides by a number of rows that is an attribute, so the results of slices of
/// the rows add up only if that is the number of all rows.
def NN_DividesByCount : NN_Trait<"DividesByCount">;

#endif // FSDP_NN_FACTS
