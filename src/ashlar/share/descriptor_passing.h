// Exported memory over a socket: its header, and its file descriptors beside it.
//
// Purpose: the way that works wherever two processes have a socket: fetching descriptors from another process needs its
// permission, which containers and hardened hosts do not give.
// Thread safety: one thread on each end of a socket.
// Source: unix(7), SCM_RIGHTS.
#pragma once

#include <vector>

#include <ashlar/share/descriptors.h>
#include <ashlar/share/exported_memory.h>

namespace ashlar::inline v0::share {

/// What came: MemoryOpener::open(header, descriptors.all()).
struct ReceivedMemory {
  std::vector<std::byte> header;  ///< the bytes of a ShareHeader, not yet checked
  Descriptors descriptors;        ///< of the parts that travel as descriptors, in their order
};

/// Writes it to a connected Unix socket, which may block. kWriteFailed if the socket does not take all of it; kInvalidArgument if it
/// is none, or a descriptor of the memory was closed.
ASHLAR_API Status send_memory(int socket, const ExportedMemory& memory) noexcept;
/// Reads what send_memory() wrote, from a socket that blocks. kNotReady if it does not, and nothing has come; kNotFound if the other
/// end has closed the socket before it; kInvalidArgument if it is no connected socket; kMalformed if something else comes, or less;
/// kDriverError if this process has no descriptor left; kHostOutOfMemory. After an error the socket is of no use.
ASHLAR_API Result<ReceivedMemory> receive_memory(int socket) noexcept;

}  // namespace ashlar::inline v0::share
