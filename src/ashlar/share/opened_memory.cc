#include <ashlar/share/opened_memory.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <utility>

#include <ashlar/base/exceptions.h>
#include <ashlar/share/descriptors.h>
#include <ashlar/share/opened_ranges.h>

namespace ashlar::inline v0::share {
namespace {

/// Copies of the exporter's descriptors. Source: pidfd_open(2) and pidfd_getfd(2), of Linux 5.3 and 5.6.
Status fetch_descriptors(const ShareHeader& header, Descriptors* out) {
  constexpr Status kCannot{
      Code::kUnsupported,
      "shared memory: the exporter's descriptors cannot be fetched; send them over a socket"};
  out->reserve(header.descriptors());
  Descriptors process;
  process.reserve(1);
  const long opened = syscall(SYS_pidfd_open, header.process, 0);
  if (opened < 0) return kCannot;
  process.add(static_cast<int>(opened));
  for (const SharedPart& part : header.parts) {
    if (part.handle.kind != device::ShareKind::kDescriptor) continue;
    const long got = syscall(SYS_pidfd_getfd, static_cast<int>(opened), part.handle.descriptor, 0);
    if (got < 0) return kCannot;
    out->add(static_cast<int>(got));
  }
  return Status::ok();
}

}  // namespace

struct OpenedMemory::Use {
  std::shared_ptr<OpenedRanges> ranges;
  OpenedRanges::Range range;
};

OpenedMemory::OpenedMemory() noexcept = default;

OpenedMemory::OpenedMemory(OpenedMemory&& from) noexcept { *this = std::move(from); }

OpenedMemory& OpenedMemory::operator=(OpenedMemory&& from) noexcept {
  if (this == &from) return *this;
  close();
  use_ = std::move(from.use_);
  address_ = std::exchange(from.address_, {});
  size_ = std::exchange(from.size_, {});
  device_ = from.device_;
  return *this;
}

OpenedMemory::~OpenedMemory() { close(); }

void OpenedMemory::close() noexcept {
  if (use_ != nullptr) use_->ranges->close(use_->range);
}

MemoryOpener::MemoryOpener(std::span<device::Device* const> devices)
    : ranges_(std::make_shared<OpenedRanges>(devices)) {}

MemoryOpener::~MemoryOpener() = default;

Result<OpenedMemory> MemoryOpener::open(std::span<const std::byte> header,
                                        std::span<const int> descriptors) noexcept {
  OpenedMemory memory;
  Status status;
  const bool has_memory = with_host_memory([&] {
    const Result<ShareHeader> read = read_header(header);
    if (!read.is_ok()) return void(status = read.status());
    Descriptors fetched;
    std::span<const int> used = descriptors;
    if (used.empty() && read.value().descriptors() > 0) {
      status = fetch_descriptors(read.value(), &fetched);
      if (!status.is_ok()) return;
      used = fetched.all();
    }
    auto use = std::make_unique<OpenedMemory::Use>();
    use->ranges = ranges_;
    const Result<OpenedRanges::Range> opened = ranges_->open(read.value(), used);
    if (!opened.is_ok()) return void(status = opened.status());
    use->range = opened.value();
    memory.address_ = opened.value().base + opened.value().first + read.value().offset;
    memory.size_ = read.value().size;
    memory.device_ = opened.value().device->traits().id;
    memory.use_ = std::move(use);
  });
  if (!has_memory)
    return Status{Code::kHostOutOfMemory, "no memory for the records of shared memory"};
  if (!status.is_ok()) return status;
  return memory;
}

}  // namespace ashlar::inline v0::share
