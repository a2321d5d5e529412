#include <ashlar/share/peer_access.h>

namespace ashlar::inline v0::share {
namespace {

constexpr Status kNoDevice{Code::kInvalidArgument, "no device with that id"};

}  // namespace

PeerAccess::PeerAccess(std::span<device::Device* const> devices)
    : devices_(devices.begin(), devices.end()),
      known_(new std::atomic<Known>[devices.size() * devices.size()] {}) {}

device::Sharing* PeerAccess::sharing_of(DeviceId id) const noexcept {
  return devices_[static_cast<std::size_t>(id.value())]->sharing();
}

Result<bool> PeerAccess::enable(DeviceId user, DeviceId owner) noexcept {
  if (!has(user) || !has(owner)) return kNoDevice;
  if (user == owner) return true;
  std::atomic<Known>& known = known_[static_cast<std::size_t>(user.value()) * devices_.size() +
                                     static_cast<std::size_t>(owner.value())];
  if (const Known now = known.load(std::memory_order_acquire); now != Known::kNothing)
    return now == Known::kEnabled;
  device::Sharing* const asking = sharing_of(user);
  device::Sharing* const asked = sharing_of(owner);
  bool can = asking != nullptr && asked != nullptr;
  if (can) {
    const Result<bool> answer = asking->can_reach(*asked);
    if (!answer.is_ok()) return answer;
    can = answer.value();
  }
  if (can) {
    const Status reached = asking->reach(*asked);
    if (!reached.is_ok() && reached.code() != Code::kUnsupported) return reached;
    can = reached.is_ok();
  }
  known.store(can ? Known::kEnabled : Known::kCannot, std::memory_order_release);
  return can;
}

Status PeerAccess::copy(Address to, DeviceId to_device, Address from, DeviceId from_device,
                        Bytes size, const Stream& stream) noexcept {
  if (!has(to_device) || !has(from_device) || !has(stream.device)) return kNoDevice;
  device::Sharing* const by = sharing_of(stream.device);
  device::Sharing* const to_owner = sharing_of(to_device);
  device::Sharing* const from_owner = sharing_of(from_device);
  ASHLAR_REQUIRE(by != nullptr && to_owner != nullptr && from_owner != nullptr, Code::kUnsupported,
                 "the device copies nothing");
  if (to_device == stream.device && from_device == stream.device)
    return by->copy(to, from, size, stream.handle);
  // Where they are peers, such a copy goes directly too, and needs no access by the stream's device to mapped pages.
  for (const DeviceId owner : {to_device, from_device}) {
    if (const Result<bool> enabled = enable(stream.device, owner); !enabled.is_ok())
      return enabled.status();
  }
  return by->copy_between(to, *to_owner, from, *from_owner, size, stream.handle);
}

}  // namespace ashlar::inline v0::share
