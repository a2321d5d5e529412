// HostDevice: streams, events, pinned memory and memory information. Keeps clauses D1, D2, D5 and
// D7 (device.h); D6 and D8 do not arise on a CPU.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include <ashlar/base/exceptions.h>
#include <ashlar/device/host_device_impl.h>
#include <ashlar/device/physical_memory.h>

namespace ashlar::inline v0::device {
namespace {

using host::no_host_memory;

thread_local CaptureMode thread_capture_mode = CaptureMode::kGlobal;

Status dead_event() { return {Code::kInvalidHandle, "HostDevice: a dead or foreign event"}; }
Status dead_stream() { return {Code::kInvalidHandle, "HostDevice: a dead or foreign stream"}; }

}  // namespace

std::uint64_t HostDevice::Impl::new_stream_id() noexcept {
  static std::atomic<std::uint64_t> next{1};
  return next++;
}

HostDevice::HostDevice(DeviceId id, Bytes capacity) : impl_(std::make_unique<Impl>(id, capacity)) {}

HostDevice::~HostDevice() {
  for (const auto& [base, size] : impl_->segments) host::unmap(base, size);
  for (const auto& [base, size] : impl_->pinned) host::unmap(base, size);
  for (const auto& [base, reservation] : impl_->reservations) host::unmap(base, reservation.size);
  if (impl_->file >= 0) ::close(impl_->file);
}

DeviceTraits HostDevice::traits() const noexcept {
  DeviceTraits traits;
  traits.id = impl_->id;
  traits.address_alignment = host::kPageSize;
  traits.page_granularity = host::kPageSize;
  traits.has_virtual_memory = true;
  traits.host_accessible = true;
  return traits;
}

HostLedger HostDevice::ledger() const noexcept {
  const std::lock_guard lock(impl_->mutex);
  HostLedger ledger;
  ledger.segments = impl_->segments.size();
  ledger.reservations = impl_->reservations.size();
  for (const auto& [handle, page] : impl_->pages) ledger.page_handles += page.is_released ? 0 : 1;
  for (const auto& [base, reservation] : impl_->reservations)
    ledger.mappings += reservation.mappings.size();
  ledger.events = impl_->events.size();
  ledger.streams = impl_->streams.size();
  ledger.pinned = impl_->pinned.size();
  ledger.registered = impl_->registered.size();
  ledger.held = impl_->held;
  return ledger;
}

// Streams.

Result<Stream> HostDevice::create_stream() noexcept {
  const std::lock_guard lock(impl_->mutex);
  const StreamHandle handle{impl_->next_handle};
  const StreamId id{Impl::new_stream_id()};
  if (!with_host_memory([&] { impl_->streams.emplace(handle, id); })) return no_host_memory();
  ++impl_->next_handle;
  return Stream{handle, id, impl_->id};
}

Status HostDevice::destroy_stream(StreamHandle stream) noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->streams.erase(stream) == 1 ? Status::ok() : dead_stream();
}

Result<Stream> HostDevice::identify(StreamHandle handle) noexcept {
  const std::lock_guard lock(impl_->mutex);
  if (handle == kDefaultStream)
    return Stream{handle, StreamId{impl_->default_stream_id}, impl_->id};
  const auto it = impl_->streams.find(handle);
  if (it == impl_->streams.end()) return dead_stream();
  return Stream{handle, it->second, impl_->id};
}

Result<CaptureStatus> HostDevice::capture_status(StreamHandle stream) noexcept {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->knows(stream)) return dead_stream();
  return CaptureStatus::kNone;
}

Result<CaptureMode> HostDevice::exchange_capture_mode(CaptureMode mode) noexcept {
  return std::exchange(thread_capture_mode, mode);
}

// Events. They are complete at once.

Result<EventHandle> HostDevice::event_create() noexcept {
  const std::lock_guard lock(impl_->mutex);
  const EventHandle handle{impl_->next_handle};
  if (!with_host_memory([&] { impl_->events.insert(handle); })) return no_host_memory();
  ++impl_->next_handle;
  return handle;
}

Status HostDevice::event_destroy(EventHandle event) noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->events.erase(event) == 1 ? Status::ok() : dead_event();
}

Status HostDevice::event_record(EventHandle event, StreamHandle stream) noexcept {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->events.count(event) == 0) return dead_event();
  return impl_->knows(stream) ? Status::ok() : dead_stream();
}

Status HostDevice::event_query(EventHandle event) noexcept {
  const std::lock_guard lock(impl_->mutex);
  return impl_->events.count(event) != 0 ? Status::ok() : dead_event();
}

Status HostDevice::event_synchronize(EventHandle event, std::uint32_t) noexcept {
  return event_query(event);
}

Status HostDevice::stream_wait(StreamHandle stream, EventHandle event) noexcept {
  return event_record(event, stream);
}

// Memory information, pinned host memory, synchronisation.

Result<MemoryInfo> HostDevice::memory_info() noexcept {
  const std::lock_guard lock(impl_->mutex);
  const Bytes total = impl_->capacity == Bytes::max() ? physical_memory() : impl_->capacity;
  return MemoryInfo{total - std::min(total, impl_->held), total};
}

Result<Address> HostDevice::pinned_alloc(Bytes size) noexcept {
  ASHLAR_REQUIRE(size > 0_B, Code::kInvalidArgument, "HostDevice: pinned_alloc of zero bytes");
  const std::lock_guard lock(impl_->mutex);
  const Result<Address> base =
      host::map_aligned(size, host::kPageSize, PROT_READ | PROT_WRITE, Code::kOutOfMemory);
  if (!base.is_ok()) return base;
  if (!with_host_memory([&] { impl_->pinned.emplace(base.value(), size); })) {
    host::unmap(base.value(), size);
    return no_host_memory();
  }
  return base;
}

Status HostDevice::pinned_free(Address base) noexcept {
  const std::lock_guard lock(impl_->mutex);
  const auto it = impl_->pinned.find(base);
  ASHLAR_REQUIRE(it != impl_->pinned.end(), Code::kInvalidArgument,
                 "HostDevice: pinned_free of an address that is not pinned memory");
  host::unmap(base, it->second);
  impl_->pinned.erase(it);
  return Status::ok();
}

Status HostDevice::host_register(Address base, Bytes size) noexcept {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  ASHLAR_REQUIRE(size > 0_B && size.count() % page == 0 && base.value() % page == 0 &&
                     size.count() <= ~base.value(),
                 Code::kInvalidArgument, "HostDevice: host_register of other than whole pages");
  const std::lock_guard lock(impl_->mutex);
  ASHLAR_REQUIRE(
      !host::overlaps(impl_->registered, base, size) && !host::overlaps(impl_->pinned, base, size),
      Code::kInvalidArgument, "HostDevice: the memory is registered already");
  return with_host_memory([&] { impl_->registered.emplace(base, size); }) ? Status::ok()
                                                                          : no_host_memory();
}

Status HostDevice::host_unregister(Address base) noexcept {
  const std::lock_guard lock(impl_->mutex);
  ASHLAR_REQUIRE(impl_->registered.erase(base) == 1, Code::kInvalidArgument,
                 "HostDevice: host_unregister of an address that is not registered memory");
  return Status::ok();
}

Status HostDevice::synchronize() noexcept { return Status::ok(); }

Status HostDevice::synchronize_for(std::uint32_t) noexcept { return Status::ok(); }

}  // namespace ashlar::inline v0::device
