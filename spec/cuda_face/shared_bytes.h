// Bytes that several processes, or several addresses, have in common, where the machine's addresses have bytes (give_bytes).
//
// Purpose: memory that is exported lies in a file from then on, which is mapped wherever the memory is: at each address of a page,
// in the process that exported it and in those that opened it. Without bytes nothing here does anything.
// Thread safety: as the driver's calls that lead here: no work uses the bytes meanwhile (D4).
#pragma once

#include "spec/cuda_face/face_calls.h"

namespace ashlar::spec::cuda_face {

/// The page has been exported: its bytes go to its file, at every address that it is mapped at.
CallResult share_page_bytes(PageHandle page);
/// The same of a segment.
CallResult share_segment_bytes(Address base);
/// Memory has come under the addresses: where it is shared, its bytes come with it.
CallResult map_file(Address at, Bytes size);
/// The shared segment at these addresses has gone: they get bytes of their own.
CallResult forget_file(Address at, Bytes size);
/// Is the memory there shared? Asked before it goes.
bool is_in_file(Address at);

}  // namespace ashlar::spec::cuda_face
