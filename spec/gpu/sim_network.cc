#include "spec/gpu/sim_network.h"

#include <algorithm>

#include "spec/gpu/machine.h"

namespace ashlar::spec {
namespace {

using Lock = std::lock_guard<std::mutex>;

}  // namespace

Result<RegistrationId> SimNetwork::register_range(DeviceId device, Address at, Bytes size) {
  const Lock lock(machine_.mutex());
  MachineState& state = machine_.state();
  const bool is_there = size > Bytes{0} && state.memory.reach(index_of(device), at, size) ==
                                               Memory::Reach::kAccessible;
  ASHLAR_REQUIRE(is_there, Code::kInvalidArgument, "not memory of that device");
  return state.registrations.add(at, size);
}

Status SimNetwork::deregister(RegistrationId id) {
  const Lock lock(machine_.mutex());
  return machine_.state().registrations.remove(id);
}

Status SimNetwork::send(RegistrationId id, Address at, Bytes size) {
  const Lock lock(machine_.mutex());
  return machine_.state().registrations.send(id, at, size);
}

Result<RegistrationId> RegistrationCache::find_or_make(DeviceId device, Address at, Bytes size) {
  const auto known = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& each) {
    return each.at <= at && at + size <= each.at + each.size;
  });
  if (known != entries_.end()) return known->id;
  const Result<RegistrationId> made = network_.register_range(device, at, size);
  if (!made.is_ok()) return made;
  if (entries_.size() == kEntriesMax) {
    static_cast<void>(network_.deregister(entries_.front().id));
    entries_.erase(entries_.begin());
  }
  entries_.push_back({at, size, made.value()});
  return made;
}

Status RegistrationCache::send(DeviceId device, Address at, Bytes size) {
  const Result<RegistrationId> id = find_or_make(device, at, size);
  return id.is_ok() ? network_.send(id.value(), at, size) : id.status();
}

void RegistrationCache::drop(Address at, Bytes size) {
  std::erase_if(entries_, [&](const Entry& each) {
    const bool touches = each.at < at + size && at < each.at + each.size;
    if (touches) static_cast<void>(network_.deregister(each.id));
    return touches;
  });
}

}  // namespace ashlar::spec
