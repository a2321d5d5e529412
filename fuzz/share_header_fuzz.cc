// Fuzz target: the header of shared memory, which comes from another process. Any bytes are refused with one line, or are the
// bytes that write_header() makes of what was read, with every part inside of its segment; and opening what they say leaves
// nothing behind, whether it succeeds or fails.
//
// Imitates: a process of another version, a channel that cuts or mixes messages, an attacker.
// Does not prove: anything of a driver that is given a wrong handle.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include <ashlar/share.h>

#include "spec/gpu/sim_gpu.h"

namespace {

constexpr off_t kPageBytes = 2 << 20;

void require(bool condition) {
  if (!condition) std::abort();
}

/// A page of another machine: what every descriptor of a header leads to.
int page_file() {
  static const int file = [] {
    const int made = memfd_create("page", MFD_CLOEXEC);
    require(made >= 0 && ftruncate(made, kPageBytes) == 0);
    return made;
  }();
  return file;
}

void check(const ashlar::share::ShareHeader& header) {
  std::uint64_t sum = 0;
  for (const auto& part : header.parts) {
    require(part.size.count() > 0 && part.handle.kind != ashlar::device::ShareKind::kNone);
    require(sum + part.size.count() > sum);
    sum += part.size.count();
  }
  require(header.size.count() > 0 && header.offset.count() < sum &&
          header.size.count() <= sum - header.offset.count());
  require(sum <= header.segment_size.count() &&
          header.parts_offset.count() <= header.segment_size.count() - sum);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto read = ashlar::share::read_header(bytes);
  if (read.is_ok()) {
    check(read.value());
    const std::vector<std::byte> written = ashlar::share::write_header(read.value());
    require(std::equal(written.begin(), written.end(), bytes.begin(), bytes.end()));
  } else {
    require(read.code() == ashlar::Code::kMalformed && read.status().why()[0] != '\0');
  }
  ashlar::spec::SimGpu gpu;
  ashlar::device::Device* const devices[] = {&gpu.device()};
  ashlar::share::MemoryOpener opener(devices);
  const std::vector<int> descriptors(read.is_ok() ? read.value().descriptors() : 1, page_file());
  if (const auto opened = opener.open(bytes, descriptors); opened.is_ok()) {
    require(read.is_ok() && opened.value().size() == read.value().size);
    require(gpu.ledger().mappings.count + gpu.ledger().opened.count > 0);
  }
  require(gpu.ledger().nothing_held());
  return 0;
}
