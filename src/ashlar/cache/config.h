// The allocator's settings and their string form, ASHLAR_ALLOC_CONF.
//
// Purpose: PyTorch's keys have PyTorch's meaning (row DEV-22), so that a setting that works there
// works here; a few keys are Ashlar's own. The string is `key:value,key:value`. An unknown key, a
// bad value, and a value that turns on a feature that is not built are errors that name the key. The
// value that turns such a feature off is accepted. Without a cache, the settings of cached memory have no effect.
// Thread safety: plain values.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <ashlar/base/export.h>
#include <ashlar/base/status.h>
#include <ashlar/base/types.h>

namespace ashlar::inline v0::cache {

/// When a stream may be given memory that another stream's heap holds idle.
enum class Reuse : std::uint8_t {
  kOwn,        ///< never, unless that stream is dead
  kCompleted,  ///< when its last use is already complete; nothing is enqueued (default)
  /// also before its last use is complete: the asking stream waits on the device for the owner's
  /// event, which can deadlock behind a collective
  kOrdered,
};

/// Where a heap's memory comes from.
enum class Backing : std::uint8_t {
  kSegments,  ///< segments of fixed size (cudaMalloc)
  /// pages mapped into ranges of addresses (cuMemMap), where the device supports it
  kPages,
  /// pages, but segments if max_split_size is set: the free blocks of pages are of any size (default)
  kAuto,
};

/// Who keeps freed memory for later requests.
enum class AllocatorBackend : std::uint8_t {
  kNative,  ///< this allocator (default)
  /// the driver, whose stream-ordered pool each request goes to (cudaMallocAsync), where the devices have one
  kCudaMallocAsync,
};

/// When a page whose last use is complete may be mapped at another address.
enum class Move : std::uint8_t {
  kNever,  ///< it goes back to the driver, and a new one is created
  kLimit,  ///< in place of an out-of-memory (default)
  kEager,  ///< also before the driver is asked for more, as far as move_us_max permits
};

/// The settings of an allocator. The keys of their string form are in parentheses.
struct Config {
  // Rows DEV-1..4 (the constants are PyTorch's).
  /// requests are rounded up to a multiple of this (granule, in bytes)
  Bytes granule{512};
  /// the largest request of the small pool (small_request_kb)
  Bytes small_request_max{1_MiB};
  /// the size of the small pool's segments (small_segment_mb)
  Bytes small_segment{2_MiB};
  /// requests of the large pool below this are cut from segments of large_segment
  /// (large_request_mb)
  Bytes large_request_min{10_MiB};
  /// the size of those segments (large_segment_mb)
  Bytes large_segment{20_MiB};
  /// requests of large_request_min or more get a segment of their size, rounded up to a multiple of
  /// this (round_segment_mb)
  Bytes segment_round{2_MiB};
  /// blocks of this size or more are never split (max_split_size_mb); more than both segment sizes
  Bytes max_split_size{Bytes::max()};
  /// a request of max_split_size or more is served only by a block that is larger by less than this
  /// (max_non_split_rounding_mb)
  Bytes max_non_split_rounding{20_MiB};
  /// entry i is for requests from 1 MiB << i to twice that: they are rounded up to one of so many
  /// equal steps between the two; 0 and 1 mean rounding to the granule alone. The first entry also
  /// serves smaller requests, the last one larger requests (roundup_power2_divisions)
  std::array<std::uint32_t, 16> roundup_divisions{};
  /// the most that is reserved on a device, as a part of its total memory; 1 means no limit
  /// (per_process_memory_fraction)
  double memory_fraction = 1.0;
  /// Before an allocation that finds no free block takes more of a device, idle segments of large_segment
  /// or more go back while over this part of the memory limit is reserved: those that have been idle
  /// longest, until it is not. 0 means never; no effect without a limit (garbage_collection_threshold;
  /// row DEV-11)
  double collection_threshold = 0;
  // Ashlar's own.
  /// false: every allocation is a segment of its own, as long as the request with its granule, and goes back to
  /// the device when it is freed and its work is done, so that a memory checker sees each use beside or after an
  /// allocation; with it memory comes in segments (cache: on or off; PyTorch's PYTORCH_NO_CUDA_MEMORY_CACHING)
  bool caches = true;
  /// kCudaMallocAsync: as without `caches`, but a segment comes from the driver's pool, in the order of its stream, and goes
  /// back behind the work that its stream has when nothing else uses it any more; the pool keeps it until a trim.
  /// What the pool keeps is not reserved by this allocator's count. kUnsupported from CachingAllocator::create() if a
  /// device has no such pool (backend: native or cudaMallocAsync)
  AllocatorBackend backend = AllocatorBackend::kNative;
  /// memory of each device that is left to others (NCCL, libraries with allocators of their own): the
  /// allocator takes none that would leave less free. Of what it has already it gives nothing back on that
  /// account before it needs more; make_room() does. With kCudaMallocAsync what the driver's pool keeps counts as taken, though it
  /// could serve a request of its stream: the request is refused, or the pool is trimmed for it (headroom_mb)
  Bytes headroom;
  /// segments, or pages (backing: segments, pages or auto; row DEV-10). PyTorch's expandable_segments:True
  /// means pages, expandable_segments:False segments
  Backing backing = Backing::kAuto;
  // The next five have no effect with segments.
  /// when pages move (move: never, limit or eager)
  Move move = Move::kLimit;
  /// the modelled time, in microseconds, that one allocation may spend on moving pages before it asks the
  /// driver for more, with move:eager (move_us_max). In place of an out-of-memory there is no such bound
  std::uint32_t move_us_max = 2000;
  /// While little of a device is used, a heap's large pool grows by segments of this size, which costs fewer
  /// driver calls than pages: up to a quarter of the device's memory or of the memory limit, and until an
  /// allocation first finds no memory. Such segments never move. 0 means never (first_growth_mb: 0, or 2 to
  /// 512)
  Bytes first_growth;
  /// the most pages that exist on a device at a time; beyond it memory comes in segments. 0 means no bound
  /// (page_handles_max)
  std::uint64_t page_handles_max = 0;
  /// how many requests, the one asked for included, must repeat earlier ones before one is
  /// expected at the place that it had then, once a heap has been short of pages: with fewer, a
  /// short step is remembered sooner; with more, like parts of a step are told apart (place_context: 1 to 64)
  std::uint32_t place_context = 64;
  /// when streams may use each other's idle memory (reuse: own, completed or ordered)
  Reuse reuse = Reuse::kCompleted;
  /// how long, in milliseconds, an allocation that finds no free block may wait for work that still
  /// uses freed memory. It bounds the whole call from there on, by the device's clock: all waits
  /// together, with growth, callbacks and queueing between them (C30). 0 means no wait,
  /// kWaitForever no limit. A trim waits as long, but at least 2 ms and at most 1 s (wait_ms)
  std::uint32_t wait_ms = 1000;
};

/// Parses `text` over the defaults. kMalformed for a bad text, kUnsupported for a known key or
/// value whose feature is not built, unless the value turns it off; then `*error`, if given, says
/// in one line which key or value it is and why. Throws std::bad_alloc. Cost: linear in the text.
ASHLAR_API Result<Config> parse_config(std::string_view text, std::string* error);

/// parse_config() of the environment variable ASHLAR_ALLOC_CONF; the defaults if it is not set.
/// Throws std::bad_alloc.
ASHLAR_API Result<Config> config_from_environment(std::string* error);

/// parse_config() of a text that was written for PyTorch (PYTORCH_ALLOC_CONF). PyTorch's keys
/// that are built here are taken. A key that PyTorch does not have, Ashlar's own among them, or that
/// is not built here, is left out with its value and named in `*ignored`, if given: `key:value`s
/// with commas between them; so is max_split_size_mb beside expandable_segments:True. kMalformed, as from parse_config(), for the other errors. Throws
/// std::bad_alloc.
ASHLAR_API Result<Config> parse_pytorch_config(std::string_view text, std::string* ignored,
                                               std::string* error);

/// parse_pytorch_config() of the environment variable PYTORCH_CUDA_ALLOC_CONF or, if that is not set,
/// PYTORCH_ALLOC_CONF; without Config::caches if PYTORCH_NO_CUDA_MEMORY_CACHING is set, whatever its value:
/// then expandable_segments:True is left out and named. With backend:cudaMallocAsync it is that variable
/// which is left out and named, as PyTorch does not look at it there. Nothing else here reads the
/// three. Throws std::bad_alloc.
ASHLAR_API Result<Config> pytorch_config_from_environment(std::string* ignored, std::string* error);

/// A key of the configuration string, for help texts; docs/configuration.md is made of these.
struct ConfigKey {
  std::string_view name;           ///< as it stands before the colon
  std::string_view values;         ///< which it takes
  std::string_view default_value;  ///< empty: unset, or it does nothing
  std::string_view meaning;        ///< in one line
  bool is_pytorch = false;         ///< PyTorch has it too, with this meaning
  bool is_built = true;            ///< false: it takes only the value that turns it off
};

/// Every key, in the order of their names. Cost: constant.
ASHLAR_API std::span<const ConfigKey> config_keys() noexcept;

/// Checks that every field is in its range and that they are consistent. kInvalidArgument, with the
/// first bad field in its text, if not.
ASHLAR_API Status check_config(const Config& config);

}  // namespace ashlar::inline v0::cache
