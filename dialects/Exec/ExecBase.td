//===- ExecBase.td - Buffers and base classes of exec ops *- tablegen -*-===//
#ifndef FSDP_EXEC_BASE
#define FSDP_EXEC_BASE

include "dialects/Exec/ExecAttrs.td"
include "dialects/Exec/ExecInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// A range of bytes whose size is checked once, here.
def Exec_Buffer : ConfinedType<StaticShapeMemRefOf<[F32, BF16, F64, I8, I32, I64]>,
    [CPred<"::fsdp::exec::isBuffer($_self)">],
    StaticShapeMemRefOf<[F32, BF16, F64, I8, I32, I64]>.summary #
    ", with identity layout, not empty (but an i8 workspace may be) and of at most 2^56 bytes">;

class Exec_Op<string mnemonic, list<Trait> traits = []>
    : Op<Exec_Dialect, mnemonic, traits>;

/// An op that runs on a stream. Operands are inputs, then outputs, then
/// workspaces.
class Exec_WorkOp<string mnemonic, list<Trait> traits = []>
    : Exec_Op<mnemonic, !listconcat([AttrSizedOperandSegments], traits)>;

#endif // FSDP_EXEC_BASE
