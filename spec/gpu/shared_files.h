// SharedFiles: what stands for memory of one simulated machine in other machines, in this process or another.
//
// Purpose: memory that is exported gets a file without a name (memfd_create), as long as the memory, and the file's number
// says in every machine which memory a handle means. The file has no bytes until somebody maps it.
// Thread safety: none (the machine's lock).
// Invariants:
//   (1) a file is open here from the first export of its memory until close() or the machine's end.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include <ashlar/device/sharing.h>

namespace ashlar::spec {

/// The file that stands for bytes of a machine in every process.
struct SharedBytes {
  int descriptor = -1;  ///< the machine's own; -1: the bytes are not shared
  Bytes offset;         ///< in the file
};

/// Addresses of a machine.
struct MemoryPlace {
  Address begin;
  Bytes size;
};

/// How large the memory is that the handle stands for; 0 if it stands for none.
Bytes shared_size(const device::ShareHandle& handle);

class SharedFiles {
 public:
  SharedFiles() = default;
  ~SharedFiles();
  SharedFiles(const SharedFiles&) = delete;
  SharedFiles& operator=(const SharedFiles&) = delete;

  /// Which memory of this machine: the number of its first byte.
  using MemoryNumber = std::uint64_t;

  /// A handle of that memory: a new descriptor, or bytes from which every process of this host finds the file. nullopt if the
  /// process has no descriptor left.
  std::optional<device::ShareHandle> handle_of(MemoryNumber memory, Bytes size,
                                               device::ShareKind kind);
  /// The descriptor of the memory's file, which stays this object's; -1 if the memory was never exported.
  int file_of(MemoryNumber memory) const;
  /// The memory has gone.
  void close(MemoryNumber memory);

  /// What a handle leads to.
  struct Found {
    std::uint64_t file = 0;  ///< the file's number
    Bytes size;
    std::optional<MemoryNumber> memory;  ///< if it is of this machine
    int descriptor = -1;                 ///< a new one, the caller's
  };
  /// nullopt for a handle that leads to no file, or to one of another sort.
  std::optional<Found> find(const device::ShareHandle& handle) const;

 private:
  struct File {
    MemoryNumber memory = 0;
    std::uint64_t number = 0;
    int descriptor = -1;
  };
  /// The memory's file; null if it was never exported.
  const File* file_for(MemoryNumber memory) const;
  /// The same; made, if there is none. Null if it cannot be.
  const File* open_for(MemoryNumber memory, Bytes size);

  std::vector<File> files_;
};

}  // namespace ashlar::spec
