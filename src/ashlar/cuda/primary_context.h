// PrimaryContext: a GPU's primary context, and every call that is made in it.
//
// Purpose: calls of the driver act on the calling thread's current context; here each is made in the GPU's own, and the
// thread's is left as it was (D2). An answer that the driver repeats for ever is remembered, and later calls do not reach
// the driver (D8).
// Thread safety: any thread.
//
// Invariant: (1) an open one holds exactly one use of the primary context.
#pragma once

#include <atomic>

#include <ashlar/base/fork_check.h>
#include <ashlar/cuda/driver_status.h>
#include <ashlar/cuda/driver_table.h>

namespace ashlar::inline v0::cuda {

class PrimaryContext {
 public:
  PrimaryContext() = default;
  /// Gives the use up, but in a forked child, whose driver is the parent's (C25). The driver may be gone by then.
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;

  /// Loads the driver, finds the GPU and makes its context: CudaDevice::open()'s errors.
  Status open(int ordinal, const char* library) noexcept;

  /// Is this process a child of the one that opened it?
  bool is_forked() const noexcept { return birth_.is_forked(); }
  const DriverTable& driver() const noexcept { return cu_; }
  DeviceNumber device() const noexcept { return device_; }
  Context context() const noexcept { return context_; }
  /// What the GPU has of that; 0 if the driver knows no such attribute.
  int attribute(int which) const noexcept;

  /// The outcome of a driver's call that is made in this context; or why none is made.
  template <class Call>
  Status call(Call&& make) noexcept {
    if (const CallResult lost_by = lost_by_.load(std::memory_order_relaxed); lost_by != kSuccess)
      return status_of(lost_by);
    bool is_pushed = false;
    CallResult answer = enter(&is_pushed);
    if (answer == kSuccess) answer = make();
    if (is_pushed) leave();
    return note(answer);
  }

 private:
  /// Makes the context the thread's current one, if it is not.
  CallResult enter(bool* is_pushed) const noexcept;
  void leave() const noexcept;
  /// Does the context still exist? A handle of a stream that was destroyed may be answered as if it did not.
  bool is_there() const noexcept;
  /// Remembers an answer that stays.
  Status note(CallResult answer) noexcept;

  const ForkCheck birth_;
  DriverTable cu_;
  DeviceNumber device_ = 0;
  Context context_ = nullptr;                  ///< null until it is retained
  std::atomic<CallResult> lost_by_{kSuccess};  ///< the first answer that stays
};

}  // namespace ashlar::inline v0::cuda
