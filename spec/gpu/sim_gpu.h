// SimGpu: a simulated machine with any number of GPUs, each behind ashlar::Device.
//
// Purpose: the oracle. Streams are queues that advance only when told (step, drain, tick, progress)
// or when a device call blocks; addresses, stream handles and progress are chosen adversarially
// from a seed; every handle is in a ledger; any call can be made to fail; every misuse of the
// Device contract is a Fault; and a happens-before detector (detector.h) reports any reuse of bytes
// that an earlier owner's kernel may still touch. No memory is allocated for the addresses it hands
// out: they are numbers, and no one may dereference them. README.md shows how it is built.
// Thread safety: every member may be called from any thread at any time (one lock). A body given to
// host_function runs under that lock and may call nothing of the machine.
// Cost: a device call takes some tens to hundreds of ns; making and destroying a machine of 1-2
// devices, a few us.
//
// Rules it keeps (each a case in props/rules):
//   (1) A stream finishes its entries in order; an event stands for a place in one stream's order.
//   (2) No entry finishes by itself: without step, drain, tick, progress or a blocking call, all
//       work stays pending.
//   (3) The same options and the same calls give the same answers, addresses and handles, on every
//       compiler.
//   (4) A failed call changes nothing (D1), but for the invalidation of a capture (D6).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/device/device.h>

#include "spec/gpu/cost_model.h"
#include "spec/gpu/fault.h"
#include "spec/gpu/ledger.h"
#include "spec/gpu/shared_files.h"
#include "spec/gpu/sim_caller.h"
#include "spec/gpu/sim_control.h"
#include "spec/gpu/sim_network.h"
#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class Machine;

/// See the head of this file. SimCaller holds what a user of the GPU does, SimControl what a test
/// decides, SimNetwork a network card; here are the devices and what the machine reports.
class SimGpu : public SimCaller, public SimControl, public SimNetwork {
 public:
  using Options = SimGpuOptions;
  using CallerScope = spec::CallerScope;

  explicit SimGpu(const Options& options = {});
  SimGpu(const SimGpu&) = delete;
  SimGpu& operator=(const SimGpu&) = delete;
  ~SimGpu();

  std::uint32_t device_count() const;
  /// The device, for the allocator. REQUIRES: id in 0..device_count()-1. Lives as long as the
  /// SimGpu.
  device::Device& device(DeviceId id);
  device::Device& device(std::int32_t ordinal = 0) { return device(DeviceId{ordinal}); }

  // The account.
  Ledger ledger() const;
  Ledger ledger(DeviceId id) const;
  /// Every handle held, in order of kind and address.
  std::vector<HeldHandle> held() const;
  /// Reports one kLeak fault for each kind of memory, event or (if `streams`) stream still held;
  /// true when none is.
  bool leak_check(bool streams = false);
  CallAccount account() const;
  void mark_step();
  void reset_account();

  // Faults.
  /// Cheap: no copy.
  std::size_t fault_count() const;
  std::vector<Fault> take_faults();

  // The happens-before detector (detector.h says what each means). A driver tells it what the
  // allocator's users know. A stream is named by its identity.
  /// `group`: of the graphs that share the memory that it comes from. `body`: the stream that captures a body
  /// of the graph of `stream`, and that the memory is for until on_pass(); or null.
  void on_allocate(AllocationTag tag, Address at, Bytes size, const Stream& stream,
                   GraphGroup group = 0, const Stream* body = nullptr);
  void on_pass(AllocationTag tag, const Stream& stream);
  void on_use_announced(AllocationTag tag, const Stream& stream);
  void on_free(AllocationTag tag);

  // For who gives the machine's addresses bytes (cuda_face::give_bytes).
  SharedBytes shared_bytes(Address at) const;
  int file_of(PageHandle page) const;
  std::vector<MemoryPlace> places_of(PageHandle page) const;
  /// The size of the segment that begins there, of this machine or opened; 0 if none does.
  Bytes segment_size(Address base) const;

  /// A text of every stream's queue, for messages.
  std::string describe() const;
  /// Appends what is pending on every stream, as numbers: machines with equal numbers go on alike.
  /// Exhaustive search visits such states once.
  void queue_contents(std::vector<std::uint64_t>* out) const;
  /// How many entries of its stream must finish until the event is complete. REQUIRES: a live event.
  std::uint64_t entries_until(EventHandle event) const;

 private:
  explicit SimGpu(std::unique_ptr<Machine> machine);

  std::unique_ptr<Machine> machine_;
};

}  // namespace ashlar::spec
