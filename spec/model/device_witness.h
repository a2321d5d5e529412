// DeviceWitness: between a subject and its device, records the calls that clauses are judged by.
//
// Purpose: how many calls of each kind were made and how many failed (C17, C25, C26), and which
// segments, pages and events the subject holds (C14). This ledger is independent of the simulated
// machine's own.
// Thread safety: none; for one thread.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <ashlar/device/forwarding_device.h>

#include "spec/model/backing_witness.h"
#include "spec/model/page_witness.h"
#include "spec/model/segment_witness.h"

namespace ashlar::spec {

class DeviceWitness final : public device::ForwardingDevice {
 public:
  using Held = SegmentWitness::Held;
  /// Answers of synchronisations, and of waits for events, so far.
  struct Waits {
    std::uint64_t questions = 0;         ///< synchronisations that asked only, without a wait
    std::uint64_t timeouts = 0;          ///< waits that ended by their time limit
    std::uint64_t synchronizations = 0;  ///< of the device that ended well
  };
  using Counts = std::array<std::uint64_t, device::kCallKinds>;

  using ForwardingDevice::ForwardingDevice;

  /// Calls so far, and those of them that failed (kNotReady is no failure).
  const Counts& calls() const { return calls_; }
  const Counts& failures() const { return failures_; }
  std::uint64_t calls_of(device::CallKind kind) const {
    return calls_[static_cast<unsigned>(kind)];
  }
  std::uint64_t failures_of(device::CallKind kind) const {
    return failures_[static_cast<unsigned>(kind)];
  }
  const Waits& waits() const { return waits_; }
  std::uint64_t calls_in_all() const { return calls_in_all_; }
  std::uint64_t failures_in_all() const { return failures_in_all_; }
  /// The segments held, by address, and the ranges of addresses.
  const std::vector<Held>& segments() const { return segments_.all(); }
  /// What was granted and given back.
  const SegmentWitness& grants() const { return segments_; }
  /// Of segments and of usable pages.
  std::uint64_t reserved_bytes() const { return segments_.bytes() + pages_.usable_bytes(); }
  /// Of segments, and of pages whether or not they can be used.
  std::uint64_t taken_bytes() const { return segments_.bytes() + pages_.held_bytes(); }
  const PageWitness& pages() const { return pages_; }
  /// Which memory is where.
  const BackingWitness& backing() const { return backing_; }
  void begin_call() {
    segments_.begin_call();
    backing_.begin_call();
    refusals_ = {};
  }
  /// Did a call that growth makes answer so since begin_call()?
  bool has_refused_growth(Code code) const {
    return (refusals_.of_growth >> static_cast<unsigned>(code) & 1) != 0;
  }
  /// Did the device refuse so to take a segment or a page back since begin_call()?
  bool has_refused_return(Code code) const {
    return (refusals_.of_return >> static_cast<unsigned>(code) & 1) != 0;
  }
  std::uint64_t events() const { return events_; }
  /// The size of the last segment asked for, granted or not.
  std::uint64_t segment_asked() const { return segment_asked_; }
  /// The device's total as memory_info last said; 0 before.
  std::uint64_t total() const { return total_; }
  /// What memory_info said last; zeros where it failed.
  const device::MemoryInfo& told() const { return told_; }
  /// kDeviceLost or kTornDown once a call has been answered so.
  Code sticky() const { return sticky_; }

  Result<Address> segment_alloc(Bytes size) noexcept override;
  Status segment_free(Address base) noexcept override;
  Result<Address> stream_alloc(Bytes size, StreamHandle stream) noexcept override;
  Status stream_free(Address base, StreamHandle stream) noexcept override;
  Result<Address> address_reserve(Bytes size, Bytes alignment) noexcept override;
  Status address_release(Address base, Bytes size) noexcept override;
  Result<PageHandle> page_create(Bytes size) noexcept override;
  Status page_release(PageHandle page) noexcept override;
  Status page_map(Address at, Bytes size, PageHandle page) noexcept override;
  Status page_access(Address at, Bytes size) noexcept override;
  Status page_unmap(Address at, Bytes size) noexcept override;
  Result<EventHandle> event_create() noexcept override;
  Status event_destroy(EventHandle event) noexcept override;
  Status event_synchronize(EventHandle event, std::uint32_t timeout_ms) noexcept override;
  Status synchronize_for(std::uint32_t timeout_ms) noexcept override;
  Result<device::MemoryInfo> memory_info() noexcept override;

 private:
  friend class GrowthSource;  // notes the segments that it refuses
  /// A bit for each Code that refused since begin_call().
  struct Refusals {
    std::uint64_t of_growth = 0;
    std::uint64_t of_return = 0;  ///< of memory given back
  };

  void on_granted(Address base, Bytes size) noexcept;
  void on_given_back(Address base) noexcept;
  void on_answer(device::CallKind kind, Bytes size, Code code) noexcept override;

  Counts calls_{};
  Counts failures_{};
  std::uint64_t calls_in_all_ = 0;
  std::uint64_t failures_in_all_ = 0;
  SegmentWitness segments_;
  std::uint64_t segment_asked_ = 0;
  PageWitness pages_;
  BackingWitness backing_;
  Refusals refusals_;
  std::uint64_t events_ = 0;
  std::uint64_t total_ = 0;
  device::MemoryInfo told_;
  Waits waits_;
  Code sticky_ = Code::kOk;
};

}  // namespace ashlar::spec
