// The opcodes of Python's pickles, protocols 0 to 5, by name.
//
// Source: CPython's Lib/pickletools.py. Thread safety: constants and pure functions.
#pragma once

#include <cstdint>

namespace ashlar::tool {

/// The opcodes that the reader knows (pickle_reader.h).
enum class PickleOpcode : std::uint8_t {
  kMark = '(',
  kEmptyTuple = ')',
  kStop = '.',
  kBinFloat = 'G',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kBinInt2 = 'M',
  kNone = 'N',
  kBinUnicode = 'X',
  kEmptyList = ']',
  kAppend = 'a',
  kDict = 'd',
  kAppends = 'e',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kSetItems = 'u',
  kEmptyDict = '}',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kShortBinUnicode = 0x8c,
  kMemoize = 0x94,
  kFrame = 0x95,
};

/// An opcode that the reader refuses.
struct RefusedOpcode {
  std::uint8_t code;
  const char* name;
  bool runs_code;  ///< it looks up a name, or calls what it finds
};

inline constexpr RefusedOpcode kRefusedOpcodes[] = {
    {'0', "POP", false},
    {'1', "POP_MARK", false},
    {'2', "DUP", false},
    {'B', "BINBYTES", false},
    {'C', "SHORT_BINBYTES", false},
    {'F', "FLOAT", false},
    {'I', "INT", false},
    {'L', "LONG", false},
    {'P', "PERSID", true},
    {'Q', "BINPERSID", true},
    {'R', "REDUCE", true},
    {'S', "STRING", false},
    {'T', "BINSTRING", false},
    {'U', "SHORT_BINSTRING", false},
    {'V', "UNICODE", false},
    {'b', "BUILD", true},
    {'c', "GLOBAL", true},
    {'g', "GET", false},
    {'i', "INST", true},
    {'o', "OBJ", true},
    {'p', "PUT", false},
    {0x81, "NEWOBJ", true},
    {0x82, "EXT1", true},
    {0x83, "EXT2", true},
    {0x84, "EXT4", true},
    {0x8b, "LONG4", false},
    {0x8d, "BINUNICODE8", false},
    {0x8e, "BINBYTES8", false},
    {0x8f, "EMPTY_SET", false},
    {0x90, "ADDITEMS", false},
    {0x91, "FROZENSET", false},
    {0x92, "NEWOBJ_EX", true},
    {0x93, "STACK_GLOBAL", true},
    {0x96, "BYTEARRAY8", false},
    {0x97, "NEXT_BUFFER", false},
    {0x98, "READONLY_BUFFER", false},
};

}  // namespace ashlar::tool
