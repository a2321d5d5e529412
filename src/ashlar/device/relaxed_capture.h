// RelaxedCapture: the calling thread in the relaxed capture mode, for a scope (D6, C9).
//
// Thread safety: one thread's.
#pragma once

#include <ashlar/device/device.h>

namespace ashlar::inline v0::device {

/// `Through` is a Device, or whatever else passes exchange_capture_mode() on to one.
template <class Through>
class RelaxedCapture {
 public:
  /// Without `is_needed` nothing is asked of the device.
  explicit RelaxedCapture(Through& through, bool is_needed = true) noexcept : through_(through) {
    if (!is_needed) return;
    const Result<CaptureMode> before = through.exchange_capture_mode(CaptureMode::kRelaxed);
    status_ = before.status();
    is_exchanged_ = before.is_ok();
    if (is_exchanged_) before_ = before.value();
  }
  ~RelaxedCapture() {
    if (is_exchanged_) static_cast<void>(through_.exchange_capture_mode(before_));
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

  /// Not ok: the thread is not in the relaxed mode, and a call of memory may invalidate a capture.
  Status status() const noexcept { return status_; }

 private:
  Through& through_;
  Status status_;
  CaptureMode before_ = CaptureMode::kGlobal;
  bool is_exchanged_ = false;
};

}  // namespace ashlar::inline v0::device
