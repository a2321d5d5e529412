#include "spec/cuda_face/shared_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include <ashlar/base/host_pages.h>

namespace ashlar::spec::cuda_face {
namespace {

constexpr CallResult kErrorUnknown = 999;  // CUDA_ERROR_UNKNOWN

bool write_all(int file, const std::byte* bytes, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ssize_t written = pwrite(file, bytes + done, size - done, static_cast<off_t>(done));
    if (written <= 0) return false;
    done += static_cast<std::size_t>(written);
  }
  return true;
}

bool map_at(Address at, Bytes size, const SharedBytes& shared) {
  return mmap(at.pointer(), size.count(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
              shared.descriptor, static_cast<off_t>(shared.offset.count())) != MAP_FAILED;
}

}  // namespace

CallResult move_to_file(std::span<const MemoryPlace> places) {
  if (!has_bytes() || places.empty()) return kSuccess;
  const SharedBytes shared = machine()->shared_bytes(places.front().begin);
  const auto* const bytes = static_cast<const std::byte*>(places.front().begin.pointer());
  if (!write_all(shared.descriptor, bytes, places.front().size.count())) return kErrorUnknown;
  for (const MemoryPlace& place : places) {
    if (!map_at(place.begin, place.size, shared)) return kErrorUnknown;
  }
  return kSuccess;
}

CallResult map_file(Address at, Bytes size) {
  if (!has_bytes()) return kSuccess;
  const SharedBytes shared = machine()->shared_bytes(at);
  return shared.descriptor < 0 || map_at(at, size, shared) ? kSuccess : kErrorUnknown;
}

bool is_in_file(Address at, Bytes size) {
  if (!has_bytes()) return false;
  const Bytes page = machine()->device().traits().page_granularity;
  for (Bytes offset; offset < size; offset += page) {
    if (machine()->shared_bytes(at + offset).descriptor >= 0) return true;
  }
  return false;
}

CallResult forget_file(Address at, Bytes size) {
  const void* const mapped = mmap(at.pointer(), size.count(), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return mapped == MAP_FAILED ? kErrorUnknown : CallResult{kSuccess};
}

}  // namespace ashlar::spec::cuda_face
