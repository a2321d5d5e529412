// SimNetwork: the machine's network card, for ranges of device memory; and the cache of registrations that a
// network library keeps.
//
// Purpose: whoever registers ranges by their address must know when other memory comes there (C21, DEV-24).
// SimGpu inherits the card; a test makes the library's cache.
// Thread safety: SimNetwork: any thread at any time (the machine's lock). RegistrationCache: none.
#pragma once

#include <vector>

#include "spec/gpu/registrations.h"

namespace ashlar::spec {

class Machine;

class SimNetwork {
 public:
  /// Registers memory of that device. kInvalidArgument unless all of it is mapped, with access.
  Result<RegistrationId> register_range(DeviceId device, Address at, Bytes size);
  /// kNotFound if there is none.
  Status deregister(RegistrationId id);
  /// Sends the range through the registration; errors and faults: Registrations::send().
  Status send(RegistrationId id, Address at, Bytes size);

 protected:
  /// `machine` must outlive this.
  explicit SimNetwork(Machine& machine) : machine_(machine) {}
  ~SimNetwork() = default;

 private:
  Machine& machine_;
};

/// Registrations by address, as network libraries keep them: a range that was registered once is sent through
/// that registration ever after, until it is dropped, or kEntriesMax newer ones are made.
class RegistrationCache {
 public:
  static constexpr std::size_t kEntriesMax = 32;

  /// `network` must outlive this.
  explicit RegistrationCache(SimNetwork& network) : network_(network) {}

  /// The registration that covers the range, made if there is none. Errors: SimNetwork::register_range().
  Result<RegistrationId> find_or_make(DeviceId device, Address at, Bytes size);
  /// Errors and faults: find_or_make(), SimNetwork::send().
  Status send(DeviceId device, Address at, Bytes size);
  /// Ends every registration that touches the range.
  void drop(Address at, Bytes size);
  std::size_t count() const { return entries_.size(); }

 private:
  struct Entry {
    Address at;
    Bytes size;
    RegistrationId id;
  };

  SimNetwork& network_;
  std::vector<Entry> entries_;  // the oldest first
};

}  // namespace ashlar::spec
