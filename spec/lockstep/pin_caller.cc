#include "spec/lockstep/pin_caller.h"

namespace ashlar::spec {

using Slot = WorldPins::Slot;

void PinCaller::pin(std::uint64_t pointer, std::uint64_t name) {
  const CacheWorld::Pointer pinned = world_.pointer(pointer);
  Slot& slot = world_.pins_[name];
  if (slot.state == Slot::kPinned) return world_.skip();
  const DeviceId device = world_.device_of(pinned);
  until_host_has_memory(world_.model(), [&] {
    world_.model().begin(device);
    const Result<cache::PinnedRange> got = world_.subject().pin(Address{pinned.address});
    static_cast<void>(world_.answered(got.status()));
    answers_.judge_pin(pinned.address, got);
    if (got.is_ok()) slot = {Slot::kPinned, device, got.value()};
    return got.code();
  });
}

void PinCaller::unpin(std::uint64_t name) {
  Slot& slot = world_.pins_[name];
  if (slot.state == Slot::kUnbound) return world_.skip();
  world_.model().begin(slot.device);
  const Status ended = world_.answered(world_.subject().unpin(slot.range));
  answers_.judge_unpin(slot.range, ended);
  if (ended.is_ok()) slot.state = Slot::kEnded;
}

void PinCaller::unpin_all() {
  for (std::uint64_t name = 0; name < world_.pins_.slots.size(); ++name) {
    if (world_.pins_[name].state == Slot::kPinned) unpin(name);
  }
}

void PinCaller::ask_generation(std::uint64_t pointer) {
  const CacheWorld::Pointer asked = world_.pointer(pointer);
  world_.model().begin(world_.device_of(asked));
  const Result<std::uint64_t> got = world_.subject().backing_generation(Address{asked.address});
  static_cast<void>(world_.answered(got.status()));
  answers_.judge_generation(asked.address, got);
}

void PinCaller::pin_stale(std::uint64_t pointer) {
  const CacheWorld::Pointer stale = world_.pointer(pointer);
  if (world_.model().is_live_anywhere(stale.address)) return world_.skip();
  world_.model().begin(world_.device_of(stale));
  const Result<cache::PinnedRange> got = world_.subject().pin(Address{stale.address});
  static_cast<void>(world_.answered(got.status()));
  answers_.judge_pin(stale.address, got);
}

void PinCaller::register_memory(std::uint64_t pointer) {
  const CacheWorld::Pointer sent = world_.pointer(pointer);
  if (is_gone(sent) || !may_register()) return world_.skip();
  const Result<RegistrationId> made = world_.pins_.library.find_or_make(
      world_.device_of(sent), Address{sent.address}, Bytes{sent.size});
  if (!world_.answered(made.status()).is_ok())
    world_.model().report("C1", "a live allocation cannot be registered: ", made.status().why());
}

void PinCaller::send(std::uint64_t pointer) {
  const CacheWorld::Pointer sent = world_.pointer(pointer);
  if (is_gone(sent) || !may_register()) return world_.skip();
  // If it goes through a stale registration, the machine reports a fault.
  static_cast<void>(world_.answered(
      world_.pins_.library.send(world_.device_of(sent), Address{sent.address}, Bytes{sent.size})));
}

void PinCaller::deregister(std::uint64_t pointer) {
  const CacheWorld::Pointer sent = world_.pointer(pointer);
  world_.pins_.library.drop(Address{sent.address}, Bytes{sent.size});
}

void PinCaller::on_mapping(const cache::MappingEvent& event) {
  answers_.judge_event(event);
  if (event.change == cache::MappingChange::kUnmapping)
    world_.pins_.library.drop(event.address, event.size);
}

}  // namespace ashlar::spec
