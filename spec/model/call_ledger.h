// CallLedger: what the device was asked during the call that is judged, from the witness's totals.
//
// Thread safety: none.
#pragma once

#include <algorithm>
#include <cstdint>

#include "spec/model/device_witness.h"
#include "spec/model/growth_source.h"

namespace ashlar::spec {

class CallLedger {
 public:
  explicit CallLedger(DeviceWitness& witness) : witness_(&witness) {}

  const DeviceWitness& witness() const { return *witness_; }
  /// The growth device of memory pools, if there is one.
  const GrowthSource* source() const { return source_; }
  void set_source(const GrowthSource* source) { source_ = source; }
  /// A call of the subject begins.
  void begin() {
    if (calls_before_ != witness_->calls_in_all()) {  // most calls make none
      calls_before_ = witness_->calls_in_all();
      by_kind_before_ = witness_->calls();
    }
    if (failures_before_ != witness_->failures_in_all()) {
      failures_before_ = witness_->failures_in_all();
      failed_before_ = witness_->failures();
    }
    witness_->begin_call();
    undone_before_ = witness_->grants().undone();
    timeouts_before_ = witness_->waits().timeouts;
    questions_before_ = witness_->waits().questions;
    reserved_before_ = witness_->taken_bytes();
    gained_before_ = witness_->pages().gained_bytes();
    lost_before_ = witness_->pages().lost_bytes();
    addresses_before_ = witness_->pages().address_bytes();
    began_ns_ = witness_->now_ns();
  }

  // Since begin().
  std::uint64_t calls() const { return witness_->calls_in_all() - calls_before_; }
  std::uint64_t calls(device::CallKind kind) const {
    return witness_->calls_of(kind) - by_kind_before_[static_cast<unsigned>(kind)];
  }
  std::uint64_t failed(device::CallKind kind) const {
    return witness_->failures_of(kind) - failed_before_[static_cast<unsigned>(kind)];
  }
  std::uint64_t failures() const { return witness_->failures_in_all() - failures_before_; }
  bool any_failure() const { return failures() != 0; }
  std::uint64_t done(device::CallKind kind) const { return calls(kind) - failed(kind); }
  /// Plain segments that were asked for, the device's own or of its stream-ordered memory.
  std::uint64_t plain_asked() const {
    return calls(device::CallKind::kSegmentAlloc) + calls(device::CallKind::kStreamAlloc);
  }
  /// Those of them that the device refused.
  std::uint64_t plain_refused() const {
    return failed(device::CallKind::kSegmentAlloc) + failed(device::CallKind::kStreamAlloc);
  }
  std::uint64_t plain_granted() const { return plain_asked() - plain_refused(); }
  /// Plain segments that went back.
  std::uint64_t plain_freed() const {
    return calls(device::CallKind::kSegmentFree) + calls(device::CallKind::kStreamFree);
  }
  /// Segments, and ranges of addresses for pages.
  std::uint64_t segments_granted() const {
    return plain_granted() + done(device::CallKind::kAddressReserve);
  }
  /// Did the subject get memory?
  bool has_grown() const { return plain_granted() != 0 || gained_bytes() != 0; }
  /// Did it ask for some?
  bool has_asked() const {
    return plain_asked() + calls(device::CallKind::kAddressReserve) +
               calls(device::CallKind::kPageCreate) + calls(device::CallKind::kPageMap) !=
           0;
  }
  /// How often the device refused it for want of memory, or as a planned failure that looks so.
  std::uint64_t refused_growths() const {
    return plain_refused() + failed(device::CallKind::kPageCreate);
  }
  /// Bytes of pages that became usable, and ceased to be.
  std::uint64_t gained_bytes() const { return witness_->pages().gained_bytes() - gained_before_; }
  std::uint64_t lost_bytes() const { return witness_->pages().lost_bytes() - lost_before_; }
  /// Bytes of addresses at which pages can be used no more, less those at which they came to be.
  std::uint64_t unmapped_bytes() const {
    return addresses_before_ - std::min(addresses_before_, witness_->pages().address_bytes());
  }
  /// By the device's clock.
  std::uint64_t elapsed_ms() const { return (witness_->now_ns() - began_ns_) / 1'000'000; }
  /// Granted, and not given back in the same call: for those the host had no memory of the records.
  std::uint64_t segments_entered() const {
    return segments_granted() - (witness_->grants().undone() - undone_before_);
  }
  /// Given back, less what the same call was granted.
  std::uint64_t segments_returned() const {
    return done(device::CallKind::kSegmentFree) + done(device::CallKind::kStreamFree) +
           done(device::CallKind::kAddressRelease) - (witness_->grants().undone() - undone_before_);
  }
  /// Calls that may have blocked: waits for an event or for the device.
  std::uint64_t waits() const {
    return calls(device::CallKind::kEventSynchronize) + calls(device::CallKind::kSynchronize) -
           (witness_->waits().questions - questions_before_);
  }
  bool any_timeout() const { return witness_->waits().timeouts != timeouts_before_; }
  /// Taken from the device when the call began, pages that cannot be used included.
  std::uint64_t reserved_before() const { return reserved_before_; }

 private:
  DeviceWitness* witness_;
  const GrowthSource* source_ = nullptr;
  std::uint64_t calls_before_ = 0;
  std::uint64_t failures_before_ = 0;
  DeviceWitness::Counts by_kind_before_{};
  DeviceWitness::Counts failed_before_{};
  std::uint64_t timeouts_before_ = 0;
  std::uint64_t questions_before_ = 0;
  std::uint64_t undone_before_ = 0;
  std::uint64_t reserved_before_ = 0;
  std::uint64_t gained_before_ = 0;
  std::uint64_t lost_before_ = 0;
  std::uint64_t addresses_before_ = 0;
  std::uint64_t began_ns_ = 0;
};

}  // namespace ashlar::spec
