//===- ExecRuntimeBase.td - What the record of a runtime operation says *- tablegen -*-===//
#ifndef FSDP_EXEC_RUNTIME_BASE
#define FSDP_EXEC_RUNTIME_BASE

include "dialects/Exec/ExecBase.td"

//===----------------------------------------------------------------------===//
// Buffers (see BufferSpec in RuntimeOps.h)
//===----------------------------------------------------------------------===//

class Exec_BufferSpec<string theName, string theElement, string theShape,
    string theKind = "One", string theUpdates = ""> {
  string name = theName;
  string element = theElement;
  string shape = theShape;
  string kind = theKind;
  string updates = theUpdates;
}
class Buf<string name, string element, string shape>
    : Exec_BufferSpec<name, element, shape>;
class OptionalBuf<string name, string element, string shape>
    : Exec_BufferSpec<name, element, shape, "Optional">;
/// One buffer per tensor.
class BufList<string name, string element, string shape>
    : Exec_BufferSpec<name, element, shape, "List">;
/// An output that is an input again.
class Updated<Exec_BufferSpec input>
    : Exec_BufferSpec<input.name, input.element, input.shape, input.kind, input.name>;

//===----------------------------------------------------------------------===//
// Arguments of the function after context and stream
//===----------------------------------------------------------------------===//

/// `spell` gives the argument to a RuntimeCall.
class Exec_Argument<string theType, string theName, string theSpell> {
  string type = theType;
  string name = theName;
  string spell = theSpell;
}
class Exec_Index<string descriptor> : Exec_Argument<"int", "index",
    "call.index(" # descriptor # ");">;
class Exec_ElementOf<string buffer> : Exec_Argument<"DType", "type",
    "call.dtype(elementOf(*this, \"" # buffer # "\"));">;
/// A dimension of the shapes, or the product of a group of them.
class Exec_Size<string dimension> : Exec_Argument<"int64_t", dimension,
    "call.number(sizeOf(*this, \"" # dimension # "\"));">;
class Exec_Number<string type, string name, string value> : Exec_Argument<type, name,
    "call.number(" # value # ");">;
class Exec_Bool<string name, string value> : Exec_Argument<"bool", name,
    "call.boolean(" # value # ");">;
class Exec_Real<string name, string value> : Exec_Argument<"double", name,
    "call.real(" # value # ");">;
/// A list of sizes in memory, which the text calls `label`.
class Exec_Sizes<string name, string value, string label> : Exec_Argument<
    "const int64_t *", name, "call.sizes(" # value # ", \"" # label # "\");">;

/// The element type of every buffer of a list.
class Exec_Types<string name, string buffers> : Exec_Argument<"const DType *", name,
    "call.dtypes(elementsOf(*this, \"" # buffers # "\"), \"" # name # "\");">;

class Exec_PointerTo<Exec_BufferSpec buffer> : Exec_Argument<
    !if(!eq(buffer.kind, "List"), "Ptrs", "Ptr"), buffer.name,
    !if(!eq(buffer.kind, "List"), "call.pointers(buffersOf", "call.pointer(bufferOf")
        # "(*this, \"" # buffer.name # "\"));">;

/// A line of the table in the reference.
class Exec_BufferRow<Exec_BufferSpec buffer, string use> {
  string row = "    | `" # buffer.name # "` | " # use # " | " #
      !if(!eq(buffer.element, ""), "any", buffer.element) # " | " #
      !if(!eq(buffer.shape, "*"), "see above", !if(!eq(buffer.shape, ""), "scalar", "`" # buffer.shape # "`")) #
      !cond(!eq(buffer.kind, "List"): ", for every tensor", !eq(buffer.kind, "Optional"): ", or none", true: "") # " |";
}

//===----------------------------------------------------------------------===//
// The record
//===----------------------------------------------------------------------===//

/// A typed function of the runtime, `fsdp::rt::<runtimeFunction>(context,
/// stream, arguments…, buffers…, argumentsBehind…)`. Its buffers are those of
/// `reads`, those of `writes` that are not updated in place, and the workspace.
///
/// Everything else follows: operands, text, verifier of counts, types and
/// shapes, the table in the reference, the call and, by test/runtime-header,
/// the declaration in include/fsdp/Runtime/Runtime.h.
class Exec_RuntimeOp<string mnemonic, string function, list<Exec_BufferSpec> theReads,
    list<Exec_BufferSpec> theWrites, list<Trait> traits = []>
    : Exec_WorkOp<mnemonic, !listconcat([Exec_RuntimeOpInterface], traits)> {
  string runtimeFunction = function;
  list<Exec_BufferSpec> reads = theReads;
  list<Exec_BufferSpec> writes = theWrites;

  /// The description for people, before the table of buffers.
  string prose = "";
  /// The op of nn that lowers to this one, one to one; see RuntimeSignature.
  string lowersFrom = "";
  /// Attributes.
  dag params = (ins);
  list<Exec_Argument> callArguments = [];
  list<Exec_Argument> callArgumentsBehind = [];
  /// C++ that returns the bytes of the workspace from `sizes`; empty: the
  /// function takes none.
  string workspaceBytes = "";
  /// One workspace per output.
  bit workspaceIsList = false;
  /// C++ that returns which input output `output` may be.
  string inPlaceInput = "return updatedInput(*this, output);";
  /// The text before the stream, before the attributes and at the end.
  string formatInFront = "";
  string formatOfParams = "";
  string formatAtEnd = "";
  /// Declarations of the op's own.
  string declarations = "";

  defvar hasWorkspace = !ne(workspaceBytes, "");
  defvar workspaceKind = !if(workspaceIsList, "List", "Optional");
  list<Exec_Argument> callBuffers = !listconcat(
      !foreach(b, reads, Exec_PointerTo<b>),
      !foreach(b, !filter(w, writes, !eq(w.updates, "")), Exec_PointerTo<b>),
      !if(hasWorkspace,
          [Exec_PointerTo<Exec_BufferSpec<"workspace", "", "*", workspaceKind>>],
          []<Exec_Argument>));
  list<Exec_Argument> call = !listconcat(callArguments, callBuffers, callArgumentsBehind);

  let arguments = !con((ins Exec_StreamAttr:$stream, Variadic<Exec_Buffer>:$inputs,
      Variadic<Exec_Buffer>:$outputs, Variadic<Exec_Buffer>:$workspaces), params);
  let assemblyFormat = formatInFront # [{
    `on` `` $stream `(` ($inputs^ `:` type($inputs))? `)` `outs` `(` ($outputs^ `:` type($outputs))? `)`
    (`workspace` `(` $workspaces^ `:` type($workspaces) `)`)?
  }] # formatOfParams # " attr-dict " # formatAtEnd;

  defvar bufferRows = !listconcat(
      !foreach(b, reads, Exec_BufferRow<b, "read">.row),
      !foreach(b, writes, Exec_BufferRow<b, !if(!eq(b.updates, ""), "written", "updated")>.row),
      !if(hasWorkspace, ["    | `workspace` | scratch | i8 | by target" #
          !if(workspaceIsList, ", for every tensor", ", or none") # " |"], []<string>));
  let description = prose # "\n    Calls `fsdp::rt::" # runtimeFunction # "`:\n\n    | buffer | | type | shape |\n    |---|---|---|---|\n" #
      !interleave(bufferRows, "\n") # "\n";

  defvar kind = "::fsdp::exec::BufferSpec::Kind::";
  defvar specs = !foreach(side, [reads, writes],
      "{" # !interleave(!foreach(b, side, "{\"" # b.name # "\", \"" # b.element # "\", \"" # b.shape
          # "\", " # kind # b.kind # ", \"" # b.updates # "\"}"), ", ") # "}");
  let extraClassDeclaration = [{
    static const ::fsdp::exec::RuntimeSignature &getSignature();
    void spellCall(::fsdp::exec::RuntimeCall &call);
    ::llvm::SmallVector<int64_t> getWorkspaceBytes(
        const ::fsdp::exec::WorkspaceSizes &sizes, ::mlir::Operation *scope);
    ::std::optional<unsigned> getInPlaceInput(unsigned output);
  }] # declarations;
  let extraClassDefinition = [{
    const ::fsdp::exec::RuntimeSignature &$cppClass::getSignature() {
      static const ::fsdp::exec::RuntimeSignature signature = {
  }] # "\"" # runtimeFunction # "\", \"" # lowersFrom # "\", " # specs[0] # ", " # specs[1] # ", " #
      !if(hasWorkspace, kind # workspaceKind, "::std::nullopt") # [{};
      return signature;
    }
    void $cppClass::spellCall(::fsdp::exec::RuntimeCall &call) {
  }] # !interleave(!foreach(a, call, a.spell), "\n  ") # [{
    }
    ::std::optional<unsigned> $cppClass::getInPlaceInput(unsigned output) {
  }] # inPlaceInput # [{
    }
  }] # !if(workspaceIsList, "", [{
    ::llvm::SmallVector<int64_t> $cppClass::getWorkspaceBytes(
        const ::fsdp::exec::WorkspaceSizes &sizes, ::mlir::Operation *) {
  }] # !if(hasWorkspace, "return {" # workspaceBytes # "};", "return {};") # "\n}\n");
}

#endif // FSDP_EXEC_RUNTIME_BASE
