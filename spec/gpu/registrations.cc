#include "spec/gpu/registrations.h"

#include <algorithm>

namespace ashlar::spec {

std::vector<Registrations::Registration>::iterator Registrations::find(RegistrationId id) {
  const auto at =
      std::lower_bound(all_.begin(), all_.end(), id,
                       [](const Registration& a, RegistrationId value) { return a.id < value; });
  return at != all_.end() && at->id == id ? at : all_.end();
}

RegistrationId Registrations::add(Address at, Bytes size) {
  Registration made;
  made.id = RegistrationId{++made_};
  made.begin = at.value();
  made.end = at.value() + size.count();
  all_.push_back(made);
  return made.id;
}

Status Registrations::remove(RegistrationId id) {
  const auto found = find(id);
  ASHLAR_REQUIRE(found != all_.end(), Code::kNotFound, "no such registration");
  all_.erase(found);
  return Status::ok();
}

Status Registrations::send(RegistrationId id, Address at, Bytes size) {
  const auto found = find(id);
  ASHLAR_REQUIRE(found != all_.end(), Code::kNotFound, "no such registration");
  const std::uint64_t begin = at.value();
  ASHLAR_REQUIRE(found->begin <= begin && begin + size.count() <= found->end,
                 Code::kInvalidArgument, "outside of what was registered");
  if (!found->is_stale) return Status::ok();
  faults_.misuse(FaultKind::kStaleRegistration, "a send of [", begin, ", ", begin + size.count(),
                 ") through a registration of [", found->begin, ", ", found->end,
                 "), made before the memory at ", found->gone_at, " went away");
  return Status{Code::kInvalidHandle, "other memory, or none, is under the registration"};
}

void Registrations::on_unmap(Address at, Bytes size) {
  const std::uint64_t end = at.value() + size.count();
  for (Registration& each : all_) {
    if (each.is_stale || each.end <= at.value() || end <= each.begin) continue;
    each.is_stale = true;
    each.gone_at = std::max(each.begin, at.value());
  }
}

}  // namespace ashlar::spec
