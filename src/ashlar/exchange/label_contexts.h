// A recorder of contexts that needs nothing of the platform: labels that the program gives to its parts.
//
// Purpose: call stacks are the interpreter's or a debugger's business; what a user of a history asks first is
// which part of the program holds the memory: "forward", "layer 3", "optimizer".
// Thread safety: any thread; labels of one thread do not reach another.
//
//   exchange::LabelContexts labels;                                   // outlives the allocator
//   start_history(*allocator, device, {.recorder = &labels});
//   { const exchange::LabelScope forward(labels, "forward"); ... }    // allocations in here are of "forward"
//   write_torch_snapshot(devices, {.frames = labels.frames()}, sink);
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <ashlar/base/export.h>
#include <ashlar/cache/history.h>
#include <ashlar/exchange/device_history.h>

namespace ashlar::inline v0::exchange {

/// The labels of a program, and what a history's contexts stand for. Grows with the number of different
/// stacks of labels, not with the number of allocations.
class ASHLAR_API LabelContexts final : public cache::ContextRecorder {
 public:
  LabelContexts() = default;
  ~LabelContexts() = default;
  LabelContexts(const LabelContexts&) = delete;
  LabelContexts& operator=(const LabelContexts&) = delete;

  /// The innermost label of the calling thread; ContextId 0 outside of all. Takes no lock.
  cache::ContextId gather() noexcept override;
  /// The labels of a context, innermost first, as frames without a file. Throws std::bad_alloc.
  std::vector<Frame> frames_of(cache::ContextId context) const;
  /// frames_of() as writers take it; this must outlive it.
  FrameSource frames() const {
    return [this](cache::ContextId context) { return frames_of(context); };
  }

 private:
  friend class LabelScope;
  /// A label inside another one.
  struct Label {
    std::uint64_t outer = 0;  ///< 0: inside none
    std::string text;
  };
  /// The number of the label inside `outer`. 0 if the host has no memory.
  std::uint64_t number_of(std::uint64_t outer, std::string_view text) noexcept;

  mutable std::mutex mutex_;
  std::vector<Label> labels_;  ///< the one with number n at n - 1
  std::map<std::pair<std::uint64_t, std::string>, std::uint64_t> numbers_;
};

/// What the calling thread allocates while this lives is of the label, inside those that it was of before.
class ASHLAR_API LabelScope {
 public:
  /// If the host has no memory for a new label, the scope changes nothing. `labels` outlives this.
  LabelScope(LabelContexts& labels, std::string_view text) noexcept;
  ~LabelScope();
  LabelScope(const LabelScope&) = delete;
  LabelScope& operator=(const LabelScope&) = delete;

 private:
  friend class LabelContexts;
  /// The innermost scope of the thread.
  static const LabelScope*& innermost() noexcept;
  /// The number of the innermost label in the list that is of `labels`; 0 if there is none.
  static std::uint64_t number_in(const LabelScope* scope, const LabelContexts& labels) noexcept;

  const LabelContexts& labels_;
  const LabelScope* const outer_;
  std::uint64_t number_;
};

}  // namespace ashlar::inline v0::exchange
