#include <ashlar/share/single_handle_device.h>

#include <map>
#include <span>

#include <ashlar/base/checked.h>
#include <ashlar/base/exceptions.h>
#include <ashlar/base/mutex.h>
#include <ashlar/device/forwarding_sharing.h>

namespace ashlar::inline v0::share {
namespace {

constexpr Status kNotOurs{Code::kInvalidArgument, "no segment of this device begins there"};

/// Lets the devices use the range; the first error.
Status give_access(std::span<device::Device* const> devices, Address at, Bytes size) noexcept {
  Status status;
  for (device::Device* const each : devices) {
    if (status.is_ok()) status = each->page_access(at, size);
  }
  return status;
}

/// Maps the page at new addresses, which those devices may use.
Result<Address> map_somewhere(device::Device& device, std::span<device::Device* const> users,
                              Bytes size, PageHandle page) noexcept {
  const Result<Address> base = device.address_reserve(size, device.traits().page_granularity);
  if (!base.is_ok()) return base;
  Status status = device.page_map(base.value(), size, page);
  if (status.is_ok()) {
    status = give_access(users, base.value(), size);
    if (status.is_ok()) return base;
    static_cast<void>(device.page_unmap(base.value(), size));
  }
  static_cast<void>(device.address_release(base.value(), size));
  return status;
}

}  // namespace

struct SingleHandleDevice::Segments {
  struct Segment {
    Bytes size;
    PageHandle page;
  };

  mutable Mutex lock;
  std::map<Address, Segment> by_base ASHLAR_GUARDED_BY(lock);

  /// False if the host has no memory for the record.
  bool add(Address base, const Segment& segment) noexcept ASHLAR_EXCLUDES(lock) {
    const MutexGuard guard(lock);
    return with_host_memory(
        [&]() ASHLAR_NO_THREAD_SAFETY_ANALYSIS { by_base.emplace(base, segment); });
  }
  Result<Segment> find(Address base) const noexcept ASHLAR_EXCLUDES(lock) {
    const MutexGuard guard(lock);
    const auto found = by_base.find(base);
    if (found == by_base.end()) return kNotOurs;
    return found->second;
  }
  void remove(Address base) noexcept ASHLAR_EXCLUDES(lock) {
    const MutexGuard guard(lock);
    by_base.erase(base);
  }
};

class SingleHandleDevice::Shares final : public device::ForwardingSharing {
 public:
  Shares(const Segments& segments, Sharing& inner)
      : ForwardingSharing(inner), segments_(segments) {}
  Result<PageHandle> segment_page(Address base) noexcept override {
    const Result<Segments::Segment> segment = segments_.find(base);
    if (!segment.is_ok()) return segment.status();
    return segment.value().page;
  }

 private:
  const Segments& segments_;
};

SingleHandleDevice::SingleHandleDevice(device::Device& inner,
                                       std::span<device::Device* const> peers)
    : ForwardingDevice(inner), users_{&inner}, segments_(std::make_unique<Segments>()) {
  device::Sharing* const shares = inner.sharing();
  if (shares == nullptr) return;
  shares_ = std::make_unique<Shares>(*segments_, *shares);
  for (device::Device* const peer : peers) {
    device::Sharing* const reaching = peer->sharing();
    if (reaching == nullptr || peer->traits().id == inner.traits().id) continue;
    const Result<bool> can = reaching->can_reach(*shares);
    if (!can.is_ok() || can.value()) users_.push_back(peer);
  }
}

SingleHandleDevice::~SingleHandleDevice() = default;

device::Sharing* SingleHandleDevice::sharing() noexcept { return shares_.get(); }

Result<Address> SingleHandleDevice::segment_alloc(Bytes size) noexcept {
  const auto rounded = checked_round_up(size, traits().page_granularity);
  ASHLAR_REQUIRE(rounded.has_value(), Code::kOutOfMemory, "no device has so much memory");
  const Result<PageHandle> made = page_create(*rounded);
  if (!made.is_ok()) return made.status();
  const Segments::Segment segment{*rounded, made.value()};
  Result<Address> base = map_somewhere(*this, users_, segment.size, segment.page);
  if (base.is_ok()) {
    if (segments_->add(base.value(), segment)) return base;
    static_cast<void>(page_unmap(base.value(), segment.size));
    static_cast<void>(address_release(base.value(), segment.size));
    base = Status{Code::kHostOutOfMemory, "no memory for the record of a segment"};
  }
  static_cast<void>(page_release(segment.page));
  // A caller of segment_alloc() reclaims memory on kOutOfMemory, and knows no other shortage.
  if (base.code() == Code::kOutOfAddresses)
    return Status{Code::kOutOfMemory, "the device has no addresses for the segment"};
  return base;
}

Status SingleHandleDevice::segment_free(Address base) noexcept {
  const Result<Segments::Segment> segment = segments_->find(base);
  if (!segment.is_ok()) return segment.status();
  // Until the memory is unmapped a refusal changes nothing.
  const Status unmapped = page_unmap(base, segment.value().size);
  if (!unmapped.is_ok()) return unmapped;
  segments_->remove(base);
  static_cast<void>(address_release(base, segment.value().size));
  static_cast<void>(page_release(segment.value().page));
  return Status::ok();
}

}  // namespace ashlar::inline v0::share
