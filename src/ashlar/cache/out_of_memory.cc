// The out-of-memory account in words.
//
// Thread safety: pure functions. Slow path only: they allocate strings.
//
// Advice rule (row DEV-14; PyTorch issue 173049): a setting is advised only if the account shows
// the problem that it cures, the setting is not on already, and it is built.
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
    text += "The device has " + text_of(o.device_memory.total) + ", of which " +
            text_of(o.device_memory.free) + " free and " + text_of(others) +
            " in use outside this allocator.\n";
  }
  text += o.limit == Bytes::max() ? std::string("No memory limit is set.\n")
                                  : "The memory limit in force is " + text_of(o.limit) + ".\n";
  return text;
}

std::string books_text(const OutOfMemory& o) {
  char fragmentation[32];
  std::snprintf(fragmentation, sizeof fragmentation, "%.1f %%", 100 * o.fragmentation());
  return "This allocator holds " + text_of(o.reserved) + ": " + text_of(o.allocated) +
         " allocated, " + text_of(o.pending) + " freed but still in use by other streams, " +
         text_of(o.in_transfer) + " in transfer, " + text_of(o.free_cached) +
         " free.\nThe largest free block is " + text_of(o.largest_free) +
         "; fragmentation of what is free: " + fragmentation + ".\n";
}

std::string wait_text(const OutOfMemory& o) {
  if (!o.wait_ran_out) return "";
  if (o.config.wait_ms == 0)
    return "Unfinished work still uses memory that could then come back.\n";
  return "The permitted wait of " + std::to_string(o.config.wait_ms) +
         " ms ran out before the work that uses memory.\n";
}

bool rounds_to_divisions(const Config& config) {
  for (const std::uint32_t divisions : config.roundup_divisions) {
    if (divisions > 1) return true;
  }
  return false;
}

std::string advice_text(const OutOfMemory& o) {
  std::string text;
  if (o.capturing) {
    text +=
        "Advice: a capture is underway, so nothing could be reclaimed or waited for; run the same "
        "work once before "
        "it is captured.\n";
  }
  const Bytes headroom = o.limit - std::min(o.limit, o.reserved);
  if (o.limit != Bytes::max() && headroom < o.segment && o.device_memory.free >= o.segment) {
    text +=
        "Advice: the limit is what stands in the way; raise it (set_memory_limit, "
        "per_process_memory_fraction).\n";
  }
  if ((o.pending > 0_B || o.wait_ran_out) && !o.capturing) {
    if (o.config.wait_ms == 0) {
      text += "Advice: memory may come back soon and waiting is off; allow a wait (wait_ms).\n";
    } else if (o.wait_ran_out) {
      text += "Advice: allow a longer wait (wait_ms).\n";
    }
  }
  const bool one_block_would_do = o.largest_free >= o.rounded && o.rounded > 0_B;
  if (one_block_would_do && o.config.reuse == Reuse::kOwn) {
    text +=
        "Advice: another stream's memory is free and large enough; let streams share it "
        "(reuse:completed).\n";
  } else if (one_block_would_do && o.config.reuse == Reuse::kCompleted && !o.capturing) {
    text +=
        "Advice: another stream's memory is free and large enough, but its last use is not "
        "complete; "
        "reuse:ordered takes it behind a wait.\n";
  }
  if (!one_block_would_do && o.free_cached >= o.rounded && o.fragmentation() >= kFragmentedFrom) {
    if (o.config.max_split_size == Bytes::max()) {
      text +=
          "Advice: enough is free but in pieces; keep large blocks whole (max_split_size_mb).\n";
    } else if (!rounds_to_divisions(o.config)) {
      text +=
          "Advice: enough is free but in pieces; make sizes repeat (roundup_power2_divisions).\n";
    }
  }
  return text;
}

}  // namespace

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
