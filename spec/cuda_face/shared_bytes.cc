#include "spec/cuda_face/shared_bytes.h"

#include <sys/mman.h>
#include <unistd.h>

#include "spec/cuda_face/page_bytes.h"

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

CallResult share_page_bytes(PageHandle page) {
  if (!has_bytes()) return kSuccess;
  const SharedBytes shared{machine()->file_of(page), Bytes{}};
  if (!move_page_bytes(page.value(), shared.descriptor)) return kErrorUnknown;
  for (const MemoryPlace& place : machine()->places_of(page)) {
    if (!map_at(place.begin, place.size, shared)) return kErrorUnknown;
  }
  return kSuccess;
}

CallResult share_segment_bytes(Address base) {
  if (!has_bytes()) return kSuccess;
  const SharedBytes shared = machine()->shared_bytes(base);
  const Bytes size = machine()->segment_size(base);
  const auto* const bytes = static_cast<const std::byte*>(base.pointer());
  const bool is_done =
      write_all(shared.descriptor, bytes, size.count()) && map_at(base, size, shared);
  return is_done ? CallResult{kSuccess} : kErrorUnknown;
}

CallResult map_file(Address at, Bytes size) {
  if (!has_bytes()) return kSuccess;
  const SharedBytes shared = machine()->shared_bytes(at);
  return shared.descriptor < 0 || map_at(at, size, shared) ? kSuccess : kErrorUnknown;
}

bool is_in_file(Address at) { return has_bytes() && machine()->shared_bytes(at).descriptor >= 0; }

CallResult forget_file(Address at, Bytes size) {
  const void* const mapped = mmap(at.pointer(), size.count(), PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return mapped == MAP_FAILED ? kErrorUnknown : CallResult{kSuccess};
}

}  // namespace ashlar::spec::cuda_face
