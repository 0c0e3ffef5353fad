//===- ExecAttrs.td - Enums and types of the exec dialect -----*- tablegen -*-===//
#ifndef FSDP_EXEC_ATTRS
#define FSDP_EXEC_ATTRS

include "dialects/Exec/ExecDialect.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class Exec_Enum<string name, string sum, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, sum, cases> {
  let cppNamespace = "::fsdp::exec";
  let genSpecializedAttr = 0;
}

def Exec_Stream : Exec_Enum<"Stream", "stream by role", [
    I32EnumAttrCase<"Compute", 0, "compute">,
    I32EnumAttrCase<"Gather", 1, "gather">,
    I32EnumAttrCase<"Reduce", 2, "reduce">,
    I32EnumAttrCase<"Copy", 3, "copy">]>;
def Exec_StreamAttr : EnumAttr<Exec_Dialect, Exec_Stream, "stream">;

def Exec_Role : Exec_Enum<"Role", "role of a persistent range", [
    I32EnumAttrCase<"Parameter", 0, "parameter">,
    I32EnumAttrCase<"State", 1, "state">,
    I32EnumAttrCase<"Buffer", 2, "buffer">,
    I32EnumAttrCase<"Gradient", 3, "gradient">,
    I32EnumAttrCase<"Input", 4, "input">,
    I32EnumAttrCase<"Output", 5, "output">,
    I32EnumAttrCase<"ComputeCopy", 6, "compute_copy">]>;
def Exec_RoleAttr : EnumAttr<Exec_Dialect, Exec_Role, "role">;

/// How a kernel addresses one of its arguments.
def Exec_Access : Exec_Enum<"Access", "how a kernel addresses an argument", [
    I32EnumAttrCase<"Element", 0, "element">,
    I32EnumAttrCase<"Row", 1, "row">,
    I32EnumAttrCase<"Column", 2, "column">,
    I32EnumAttrCase<"Scalar", 3, "scalar">,
    I32EnumAttrCase<"Block", 4, "block">]>;
def Exec_AccessAttr : EnumAttr<Exec_Dialect, Exec_Access, "access"> {
  let assemblyFormat = "`<` $value `>`";
}

def Exec_ReduceKind : Exec_Enum<"ReduceKind", "how a reduction combines", [
    I32EnumAttrCase<"Sum", 0, "sum">,
    I32EnumAttrCase<"Max", 1, "max">]>;
def Exec_ReduceKindAttr : EnumAttr<Exec_Dialect, Exec_ReduceKind, "reduce_kind">;

def Exec_TokenType : TypeDef<Exec_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "An operation in flight on another stream, to be awaited";
}

#endif // FSDP_EXEC_ATTRS
