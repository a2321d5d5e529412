// Registrations: what a network card knows of the memory under ranges of addresses.
//
// Purpose: a card that is told of a range keeps the physical pages that are under it then. If others come
// under the addresses, it goes on reading the old ones, which may be anybody's: a send through such a
// registration is a fault (H56: there it hung).
// Thread safety: none (the machine's lock).
#pragma once

#include <cstdint>
#include <vector>

#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

#include "spec/gpu/fault.h"

namespace ashlar::spec {

enum class RegistrationId : std::uint64_t {};

class Registrations {
 public:
  explicit Registrations(FaultLog& faults) : faults_(faults) {}

  RegistrationId add(Address at, Bytes size);
  /// kNotFound if there is none.
  Status remove(RegistrationId id);
  /// A send of the range through the registration. kNotFound; kInvalidArgument if it is not inside what was
  /// registered; kInvalidHandle, and a fault, if memory of the registration has gone away since.
  Status send(RegistrationId id, Address at, Bytes size);
  /// Memory goes away from under the range.
  void on_unmap(Address at, Bytes size);
  std::size_t count() const { return all_.size(); }

 private:
  struct Registration {
    RegistrationId id;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t gone_at = 0;  ///< where memory went away first
    bool is_stale = false;
  };
  std::vector<Registration>::iterator find(RegistrationId id);

  FaultLog& faults_;
  std::vector<Registration> all_;  // by id
  std::uint64_t made_ = 0;
};

}  // namespace ashlar::spec
