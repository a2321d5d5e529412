// Bytes that several processes, or several addresses, have in common, where the machine's addresses have bytes (give_bytes).
//
// Purpose: memory that is exported lies in a file from then on, which is mapped wherever the memory is: at each address of a page,
// in the process that exported it and in those that opened it. Without bytes nothing here does anything.
// Thread safety: as the driver's calls that lead here: no work uses the bytes meanwhile (D4).
#pragma once

#include <span>

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {

/// The memory at these addresses, which is the same at all of them, has been exported: what it contains goes to its file.
CallResult move_to_file(std::span<const MemoryPlace> places);
/// Memory has come under the addresses: where it is shared, its bytes come with it.
CallResult map_file(Address at, Bytes size);
/// The sharing memory of these addresses has gone: they get bytes of their own.
CallResult forget_file(Address at, Bytes size);
/// Is any of the memory there shared? Asked before it goes.
bool is_in_file(Address at, Bytes size);

}  // namespace ashlar::spec::cuda_face
