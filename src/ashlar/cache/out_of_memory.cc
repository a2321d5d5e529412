// The out-of-memory account in words.
//
// Thread safety: pure functions. Slow path only: they allocate strings.
//
// Advice rule (row DEV-14; PyTorch issue 173049): a setting is advised only if the account shows
// the problem that it cures, the setting is not on already, and it is built. The judge has a rule
// of its own (spec/model/clause_account.cc).
#include <ashlar/cache/out_of_memory.h>

#include <algorithm>
#include <cstdio>
#include <iterator>

#include <ashlar/device/device.h>

namespace ashlar::inline v0::cache {
namespace {

constexpr double kFragmentedFrom = 0.5;  // advice on fragmentation from here on

// "1.50 GiB (1610612736 bytes)"; below 1 KiB "12 bytes".
std::string text_of(Bytes size) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (size < 1_KiB) return std::to_string(size.count()) + " bytes";
  double value = static_cast<double>(size.count()) / 1024;
  unsigned unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  char text[64];
  std::snprintf(text, sizeof text, "%.2f %s (%llu bytes)", value, kUnits[unit],
                static_cast<unsigned long long>(size.count()));
  return text;
}

std::string machine_text(const OutOfMemory& o) {
  std::string text;
  if (o.device_memory.total == 0_B) {
    text += "The driver did not say how much memory the device has.\n";
  } else {
    const Bytes used =
        o.device_memory.total - std::min(o.device_memory.total, o.device_memory.free);
    const Bytes others = used - std::min(used, o.reserved);
    text +=
        "The device has " + text_of(o.device_memory.total) + ", of which " +
        text_of(o.device_memory.free) + " free and " + text_of(others) +
        " in use outside this allocator" +
        (o.config.backend == AllocatorBackend::kNative ? "" : ", or kept by the driver's pool") +
        ".\n";
  }
  if (o.exceeds_device())
    text += "The request alone is larger than the device: no setting can make it fit.\n";
  text += o.limit == Bytes::max() ? std::string("No memory limit is set.\n")
                                  : "The memory limit in force is " + text_of(o.limit) + ".\n";
  if (o.config.headroom != 0_B)
    text += "Of the device's memory " + text_of(o.config.headroom) + " are kept free for others.\n";
  return text;
}

std::string books_text(const OutOfMemory& o) {
  char fragmentation[32];
  std::snprintf(fragmentation, sizeof fragmentation, "%.1f %%", 100 * o.fragmentation());
  const std::string pools =
      o.free_in_pools == 0_B
          ? ""
          : ", " + text_of(o.free_in_pools) + " of it in memory pools that keep it to themselves";
  const std::string pinned = o.pinned == 0_B
                                 ? ""
                                 : "Of what it holds " + text_of(o.pinned) +
                                       " is pinned, and is not given back even where it is free.\n";
  return "This allocator holds " + text_of(o.reserved) + ": " + text_of(o.allocated) +
         " allocated, " + text_of(o.pending) + " freed but still in use by other streams, " +
         text_of(o.in_transfer) + " in transfer, " + text_of(o.free_cached) + " free" + pools +
         ".\nThe largest free block is " + text_of(o.largest_free) +
         "; the largest that this stream may be given now is " + text_of(o.largest_reachable) +
         "; fragmentation of what is free: " + fragmentation + ".\n" + pinned;
}

std::string wait_text(const OutOfMemory& o) {
  if (!o.wait_ran_out) return "";
  if (o.config.wait_ms == 0)
    return "Unfinished work still uses memory that could then come back.\n";
  if (o.config.wait_ms == device::kWaitForever)
    return "The device refused to wait for the work that uses memory.\n";
  return "The permitted wait of " + std::to_string(o.config.wait_ms) +
         " ms ran out before the work that uses memory.\n";
}

bool rounds_to_divisions(const Config& config) {
  for (const std::uint32_t divisions : config.roundup_divisions) {
    if (divisions > 1) return true;
  }
  return false;
}

struct AdviceText {
  Advice what;
  const char* text;
};

constexpr AdviceText kAdviceTexts[] = {
    {Advice::kWarmUp,
     "a capture is underway, so nothing could be reclaimed or waited for; run the same work once "
     "before it is captured."},
    {Advice::kRaiseLimit,
     "the limit is what stands in the way; raise it (set_memory_limit, "
     "per_process_memory_fraction)."},
    {Advice::kAllowWait, "memory may come back soon and waiting is off; allow a wait (wait_ms)."},
    {Advice::kWaitLonger, "allow a longer wait (wait_ms)."},
    {Advice::kShareComplete,
     "another stream's memory is free and large enough; let streams share it (reuse:completed)."},
    {Advice::kShareOrdered,
     "another stream's memory is free and large enough, but its last use is not known complete; "
     "wait for that work, or let reuse:ordered take the memory behind a wait on the device."},
    {Advice::kKeepWhole,
     "enough is free but in pieces; keep large blocks whole (max_split_size_mb)."},
    {Advice::kRepeatSizes,
     "enough is free but in pieces; make sizes repeat (roundup_power2_divisions)."},
    {Advice::kLowerHeadroom,
     "what is kept free for others is what stands in the way; lower it (headroom_mb)."},
};

std::string advice_text(const OutOfMemory& o) {
  std::string text;
  for (const AdviceText& each : kAdviceTexts) {
    if (o.advises(each.what)) text += std::string("Advice: ") + each.text + "\n";
  }
  return text;
}

/// Is the limit in the way, and nothing but the limit?
bool is_limit_the_cause(const OutOfMemory& o) {
  const Bytes under_limit = o.limit - std::min(o.limit, o.reserved);
  return o.limit != Bytes::max() && under_limit < o.segment && o.device_memory.free >= o.segment;
}

/// Is the headroom in the way, and nothing but the headroom?
bool is_headroom_the_cause(const OutOfMemory& o) {
  const Bytes under_limit = o.limit - std::min(o.limit, o.reserved);
  return under_limit >= o.segment && o.device_memory.free >= o.segment &&
         o.device_memory.free - o.segment < o.config.headroom;
}

/// Would the pieces that are free serve the request if they were one? Of a small request's segments
/// no setting makes larger pieces.
bool is_in_pieces(const OutOfMemory& o) {
  return o.rounded > o.config.small_request_max && o.largest_free < o.rounded &&
         o.free_splits >= o.rounded && o.fragmentation() >= kFragmentedFrom;
}

}  // namespace

void OutOfMemory::advise() noexcept {
  advice = 0;
  if (exceeds_device()) return;
  const auto add = [this](Advice what, bool applies) {
    if (applies) advice = static_cast<std::uint16_t>(advice | 1u << static_cast<unsigned>(what));
  };
  const bool could_wait = !capturing && (pending > 0_B || wait_ran_out);
  const bool fits = !capturing && fits_elsewhere > 0_B;
  // Pages that are free in pieces move together.
  const bool in_pieces = !capturing && config.backing == Backing::kSegments && is_in_pieces(*this);
  const bool splits_all = config.max_split_size == Bytes::max();
  add(Advice::kWarmUp, capturing);
  add(Advice::kRaiseLimit, is_limit_the_cause(*this));
  add(Advice::kAllowWait, could_wait && config.wait_ms == 0);
  add(Advice::kWaitLonger,
      wait_ran_out && !capturing && config.wait_ms != 0 && config.wait_ms != device::kWaitForever);
  add(Advice::kShareComplete, fits && config.reuse == Reuse::kOwn);
  add(Advice::kShareOrdered, fits && config.reuse == Reuse::kCompleted);
  add(Advice::kKeepWhole, in_pieces && splits_all);
  add(Advice::kLowerHeadroom, is_headroom_the_cause(*this));
  add(Advice::kRepeatSizes, in_pieces && !splits_all && !rounds_to_divisions(config));
}

double OutOfMemory::fragmentation() const {
  if (free_cached == 0_B) return 0;
  return 1 - static_cast<double>(std::min(largest_free, free_cached).count()) /
                 static_cast<double>(free_cached.count());
}

std::string OutOfMemory::message() const {
  return "Out of memory on device " + std::to_string(device.value()) + ": " + text_of(requested) +
         " requested, " + text_of(rounded) + " after rounding, " + text_of(segment) +
         " asked of the driver.\n" + machine_text(*this) + books_text(*this) + wait_text(*this) +
         advice_text(*this);
}

}  // namespace ashlar::inline v0::cache
