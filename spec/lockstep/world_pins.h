// WorldPins: the ranges that a world's caller pins, and its network library.
//
// The library keeps registrations by address and drops those whose memory is about to go away, as the subject's
// observer of mappings says: no send may then go through a stale one (DEV-24).
// Thread safety: none.
#pragma once

#include <array>
#include <cstdint>

#include <ashlar/cache/mapping.h>

#include "spec/gpu/sim_network.h"

namespace ashlar::spec {

struct WorldPins {
  /// What a pin's name is bound to.
  struct Slot {
    enum State : std::uint8_t { kUnbound, kPinned, kEnded } state = kUnbound;
    DeviceId device;
    cache::PinnedRange range;
  };

  explicit WorldPins(SimNetwork& network) : library(network) {}
  Slot& operator[](std::uint64_t name) { return slots[name % slots.size()]; }

  std::array<Slot, 6> slots;
  RegistrationCache library;
};

}  // namespace ashlar::spec
