// The world of an account pass: one device, its streams, and the work that uses the memory.
//
// Purpose: the pass is the same over the simulated GPU and over the host; this interface hides what
// differs.
// Thread safety: one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include <ashlar/device/device.h>

namespace ashlar::tool {

/// How many device calls were made, and what they cost.
struct DriverFigures {
  std::array<std::uint64_t, device::kCallKinds> calls{};
  std::uint64_t ns = 0;      ///< modelled
  std::uint64_t ns_max = 0;  ///< of the most expensive call; modelled
};

class World {
 public:
  virtual ~World() = default;
  virtual device::Device& device() = 0;
  /// The stream with that index, which is made at its first use. Fails as the device fails.
  virtual Result<Stream> stream(std::uint32_t index) = 0;
  /// Work on `stream` writes (after its allocation) or reads (before its free) the whole of an
  /// allocation.
  virtual void write(std::uint32_t slot, Address at, Bytes size, const Stream& stream) = 0;
  virtual void read(std::uint32_t slot, Address at, Bytes size, const Stream& stream) = 0;
  /// Called after every allocation and free of the trace.
  virtual void tick() = 0;
  virtual DriverFigures figures() const = 0;
  /// How many violations were found so far, and a line on the first.
  virtual std::uint64_t faults() = 0;
  virtual std::string first_fault() = 0;
};

/// The simulated GPU (spec/gpu), lowest-address placement, its streams `lag` events behind.
std::unique_ptr<World> make_sim_world(Bytes capacity, std::uint32_t lag);
/// This computer's memory. Allocations are stamped at both ends, and the stamps are checked before the
/// free.
std::unique_ptr<World> make_host_world(Bytes capacity);

}  // namespace ashlar::tool
