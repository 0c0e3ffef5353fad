//===- PickleOpcodes.cpp - The opcodes of Python's pickles ----------------===//
#include "PickleOpcodes.h"
#include "fsdp/Support/Text.h"

using namespace fsdp;
using namespace fsdp::checkpoint;

namespace {

struct OpcodeName {
  uint8_t code;
  const char *name;
};

/// For messages: what can be read, and what Python knows besides.
constexpr OpcodeName kNames[] = {
    {kMark, "MARK"},
    {kStop, "STOP"},
    {kPop, "POP"},
    {kPopMark, "POP_MARK"},
    {kDup, "DUP"},
    {kBinFloat, "BINFLOAT"},
    {kBinInt, "BININT"},
    {kBinInt1, "BININT1"},
    {kBinInt2, "BININT2"},
    {kNone, "NONE"},
    {kBinPersId, "BINPERSID"},
    {kReduce, "REDUCE"},
    {kBinString, "BINSTRING"},
    {kShortBinString, "SHORT_BINSTRING"},
    {kBinUnicode, "BINUNICODE"},
    {kAppend, "APPEND"},
    {kBuild, "BUILD"},
    {kGlobal, "GLOBAL"},
    {kDict, "DICT"},
    {kAppends, "APPENDS"},
    {kBinGet, "BINGET"},
    {kLongBinGet, "LONG_BINGET"},
    {kList, "LIST"},
    {kBinPut, "BINPUT"},
    {kLongBinPut, "LONG_BINPUT"},
    {kSetItem, "SETITEM"},
    {kTuple, "TUPLE"},
    {kSetItems, "SETITEMS"},
    {kEmptyDict, "EMPTY_DICT"},
    {kEmptyList, "EMPTY_LIST"},
    {kEmptyTuple, "EMPTY_TUPLE"},
    {kBinBytes, "BINBYTES"},
    {kShortBinBytes, "SHORT_BINBYTES"},
    {kProto, "PROTO"},
    {kNewObj, "NEWOBJ"},
    {kTuple1, "TUPLE1"},
    {kTuple2, "TUPLE2"},
    {kTuple3, "TUPLE3"},
    {kNewTrue, "NEWTRUE"},
    {kNewFalse, "NEWFALSE"},
    {kLong1, "LONG1"},
    {kLong4, "LONG4"},
    {kShortBinUnicode, "SHORT_BINUNICODE"},
    {kBinUnicode8, "BINUNICODE8"},
    {kBinBytes8, "BINBYTES8"},
    {kEmptySet, "EMPTY_SET"},
    {kAddItems, "ADDITEMS"},
    {kFrozenSet, "FROZENSET"},
    {kNewObjEx, "NEWOBJ_EX"},
    {kStackGlobal, "STACK_GLOBAL"},
    {kMemoize, "MEMOIZE"},
    {kFrame, "FRAME"},
    {kByteArray8, "BYTEARRAY8"},
    {'i', "INST"},
    {'o', "OBJ"},
    {'P', "PERSID"},
    {0x82, "EXT1"},
    {0x83, "EXT2"},
    {0x84, "EXT4"},
    {0x97, "NEXT_BUFFER"},
    {0x98, "READONLY_BUFFER"},
};

} // namespace

std::string checkpoint::opcodeName(uint8_t code) {
  for (const OpcodeName &known : kNames)
    if (known.code == code)
      return known.name;
  return format("0x%02x", code);
}
