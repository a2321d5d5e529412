// SimControl: what a test decides about the simulated machine: progress, failures, threads,
// capacities.
//
// Purpose: everything that a real machine does by itself. SimGpu inherits it.
// Thread safety: any thread at any time (the machine's lock).
#pragma once

#include <cstdint>

#include "spec/gpu/sim_types.h"

namespace ashlar::spec {

class Machine;

class SimControl {
 public:
  /// Changes a device's capacity; what is held stays held. 0 means unlimited.
  void set_capacity(DeviceId id, Bytes capacity);
  /// Changes how many bytes of addresses may be reserved on a device at a time. 0 means any number.
  void set_addresses(DeviceId id, Bytes most);
  /// From now on the calling thread acts as the n-th simulated host thread (0, 1, ...) of this
  /// machine, with that thread's per-thread default stream and capture mode. Without this call
  /// every real thread gets a number at its first call.
  void act_as_thread(std::uint32_t n);

  // Progress. None of these fails on a lost device: there is nothing left to run there.
  /// Finishes up to n entries of the stream, stopping at one that cannot run. Returns how many it
  /// finished. By the stream's identity: a destroyed stream's work runs on.
  std::uint64_t step(const Stream& stream, std::uint64_t n = 1);
  /// Finishes all work of the device (and what it waits for). kDeadlock when some of it cannot run;
  /// the rest is done.
  Status drain(DeviceId id);
  Status drain_all();
  /// Finishes up to n entries of streams chosen from the seed. Returns how many it finished.
  std::uint64_t progress(std::uint64_t n);
  /// From now on every entry enqueued finishes at the n-th tick() after it. kNoLag: only when told.
  static constexpr std::uint64_t kNoLag = spec::kNoLag;
  void set_lag(std::uint64_t ticks);
  void tick();
  /// The acting thread sleeps so long by the host's clock. Meanwhile each stream finishes as many entries as the machine's pace
  /// has time for. Where the pace is unlimited, one entry of any stream finishes in no time; time passes when none can run.
  void sleep_ns(std::uint64_t duration_ns);

  // Failures.
  /// The n-th call of that kind from now (1 = the next), on any device, answers `code`, and has no
  /// effect.
  void fail(device::CallKind kind, std::uint64_t n, FailMode mode, Code code);
  void fail(device::CallKind kind, std::uint64_t n, FailMode mode) {
    fail(kind, n, mode, usual_failure(kind));
  }
  /// What that kind of call answers when it fails: kOutOfMemory, kOutOfAddresses or kDriverError.
  static Code usual_failure(device::CallKind kind);
  /// No more planned failures.
  void heal();
  /// Is any failure still planned?
  bool has_planned_failures() const;
  /// D8: from now on every call on that device answers kDeviceLost; its pending work is gone.
  void lose(DeviceId id);
  /// D8: from now on every call on any device answers kTornDown, and is a fault (C25).
  void tear_down();
  /// Is the device lost, or the driver torn down?
  bool is_gone(DeviceId id) const;

 protected:
  /// `machine` must outlive this.
  explicit SimControl(Machine& machine) : machine_(machine) {}
  ~SimControl() = default;

 private:
  Machine& machine_;
};

}  // namespace ashlar::spec
