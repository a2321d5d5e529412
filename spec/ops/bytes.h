// The byte form of ops: total and stable. Every byte string decodes to a legal sequence; every
// sequence encodes.
//
// An op is the byte of its slot followed by its arguments. The width of an argument depends on its
// kind alone, so op boundaries are known without decoding earlier ops:
//
//   kind         bytes  value
//   new pointer  0      the next number of the file
//   pointer      2      little-endian u16, modulo the number of eligible pointers, in the order in
//                       which they became eligible: the live ones; for free-stale, use-stale and
//                       pin-stale the freed ones; for pool-complete the pending ones
//   stream       1      modulo kByteStreams        device 1  modulo kByteDevices
//   event, segment, range, page  1  modulo kByteNames
//   bytes        5      a class byte c and a little-endian u32 d:
//                         c in   0.. 63: 2^c + (d's low byte as -128..127), modulo 2^64
//                         c in  64..127: d's low (c - 64) / 2 + 1 bits: plain sizes, log-uniform;
//                                        c = 127 is d itself
//                         c in 128..191: boundary number c % 8 (0, 512, 1 MiB, 2 MiB, 10 MiB,
//                                        20 MiB, 1 GiB, 1 EiB) plus an offset: d's low half as
//                                        -32768..32767, times 512 when c's bit 3 is set; modulo
//                                        2^64
//                         c in 192..255: d << (c - 192): huge round sizes
//   count        2      u16 n: n < 0x8000: n % 8; n < 0xc000: n % 256; else n - 0xc000
//   call kind    1      modulo 22 (the kinds of version 1)      code 1  modulo 32
//   access 1 modulo 3   mode 1 modulo 3   fail mode 1 modulo 2
//   text         4      one fragment of a configuration from each of four tables (bytes.cc)
//
// An op is dropped when its slot does not belong to the subject, when it needs a pointer and none
// is eligible, or when it comes too late (conf and device after the first alloc). Expectations are
// dropped too: a random input cannot know what to expect. Missing bytes at the end are zeros.
// Thread safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "spec/ops/op.h"

namespace ashlar::spec {

inline constexpr std::uint64_t kByteStreams = 4;
inline constexpr std::uint64_t kByteDevices = 2;
inline constexpr std::uint64_t kByteNames = 8;

/// Can an op of this slot be in a file of that subject?
bool slot_drives(Subject subject, std::uint8_t slot);
/// The op's length in the byte form, in bytes, its slot included. Cost: O(1).
std::size_t encoded_size(std::uint8_t slot);

/// Decodes `bytes`, at most `ops_max` ops. Cost: linear in bytes, and in the live pointers per
/// free.
OpFile decode_ops(Subject subject, std::span<const std::uint8_t> bytes,
                  std::size_t ops_max = SIZE_MAX);
/// Decodes into a file whose storage is reused.
void decode_ops(Subject subject, std::span<const std::uint8_t> bytes, OpFile* file,
                std::size_t ops_max = SIZE_MAX);

/// The bytes of canonical_ops(file): decode_ops(encode_ops(f)) == canonical_ops(f).
std::vector<std::uint8_t> encode_ops(const OpFile& file);

/// The file as its byte form keeps it: ops that could not run are dropped, pointers are numbered in
/// order, other names are taken modulo, counts are at most 16383, and a size of 4 GiB or more that
/// no class expresses keeps its leading 32 bits.
OpFile canonical_ops(const OpFile& file);

}  // namespace ashlar::spec
