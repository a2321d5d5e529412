// The bytes of pages: where the machine's addresses have bytes (give_bytes), what is written through one address of a page is read
// through another, and a page that moves takes what it holds with it.
//
// Purpose: memory that the machine says is shared is shared by the host's addresses too. A page that is exported to other processes has
// its bytes in a file of its own from then on (shared_bytes.h).
// Thread safety: any thread.
//
// Every function does nothing where the addresses have no bytes. Addresses that no page is mapped at keep bytes of their own, so
// that work which comes too late is reported by the machine and does not end the process.
#pragma once

#include <ashlar/cuda/driver_abi.h>

#include <ashlar/base/types.h>

namespace ashlar::spec::cuda_face {

void create_page_bytes(cuda::MemoryHandle handle, Bytes size);
/// The handle is dead; its bytes last as long as they are mapped.
void release_page_bytes(cuda::MemoryHandle handle);
void map_page_bytes(Address at, Bytes size, cuda::MemoryHandle handle);
void unmap_page_bytes(Address at, Bytes size);
/// The page is exported: its bytes go to that file, which is mapped in their place from then on (shared_bytes.h). False if they cannot.
bool move_page_bytes(cuda::MemoryHandle handle, int to_file);
/// Forgets all pages: their machine is gone.
void forget_page_bytes();

}  // namespace ashlar::spec::cuda_face
