// Stream-ordered memory: each device's default pool, with a release threshold of zero.
//
// Source: "CUDA Runtime API", version 13.0, chapter 6.12 ("Stream Ordered Memory Allocator"), cudaMallocAsync, cudaFreeAsync;
// "CUDA C++ Programming Guide", version 13.0, "Stream Ordered Memory Allocator".
//
// Invariants:
//   (1) Memory that was freed on a stream serves that stream's later allocations at once, and those of other streams once the
//       event recorded at its free is complete. (The guide's "opportunistic" reuse; reuse that follows the events that streams wait
//       for, and waits that the pool itself adds, are not modelled.)
//   (2) At a synchronisation of a stream or a device, the memory whose free is complete goes back to its device; so it does where
//       the device has no other memory.
//   (3) Memory is reused whole, for a request of at least half its size.
//   (4) A stream is known by its identity, not by its handle, which may come back.
// The pool's calls of the device are made in the relaxed capture mode; a stream that captures is refused with
// cudaErrorNotSupported, for graphs here have no nodes of memory.
// Thread safety: any thread.
#include <algorithm>
#include <map>
#include <vector>

#include <ashlar/base/mutex.h>

#include "spec/cuda_face/runtime_calls.h"

namespace ashlar::spec::cuda_runtime {
namespace {

constexpr std::size_t kGrain = 512;

struct Block {
  Address at;
  Bytes size;
  int device = 0;
};
struct FreedBlock {
  Block block;
  StreamId stream;
  int event_device = 0;
  EventHandle freed;  ///< recorded at the free
};
struct Pools {
  Mutex lock;
  std::uint64_t attachment ASHLAR_GUARDED_BY(lock) = 0;
  std::map<Address, Block> held ASHLAR_GUARDED_BY(lock);
  std::vector<FreedBlock> freed ASHLAR_GUARDED_BY(lock);
};
Pools pools;

/// The thread's calls are permitted while another stream captures.
class Relaxed {
 public:
  explicit Relaxed(device::Device& on)
      : on_(on), before_(on.exchange_capture_mode(device::CaptureMode::kRelaxed)) {}
  ~Relaxed() {
    if (before_.is_ok()) static_cast<void>(on_.exchange_capture_mode(before_.value()));
  }
  Relaxed(const Relaxed&) = delete;
  Relaxed& operator=(const Relaxed&) = delete;

 private:
  device::Device& on_;
  const Result<device::CaptureMode> before_;
};

/// Nothing that was kept is about an earlier machine.
void refresh() ASHLAR_REQUIRES(pools.lock) {
  if (pools.attachment == cuda_face::attachment()) return;
  pools.held.clear();
  pools.freed.clear();
  pools.attachment = cuda_face::attachment();
}

bool is_complete(const FreedBlock& block) {
  return machine()->device(block.event_device).event_query(block.freed).is_ok();
}

void end_event(const FreedBlock& block) {
  static_cast<void>(machine()->device(block.event_device).event_destroy(block.freed));
}

/// Gives back the freed memory whose free is complete.
void trim() ASHLAR_REQUIRES(pools.lock) {
  std::erase_if(pools.freed, [](const FreedBlock& each) {
    if (!is_complete(each)) return false;
    if (!machine()->device(each.block.device).segment_free(each.block.at).is_ok()) return false;
    end_event(each);
    return true;
  });
}

/// The smallest freed memory that the stream may have; an empty one if there is none.
Block take_freed(int device, Bytes size, StreamId stream) ASHLAR_REQUIRES(pools.lock) {
  auto best = pools.freed.end();
  for (auto each = pools.freed.begin(); each != pools.freed.end(); ++each) {
    const Block& block = each->block;
    if (block.device != device || block.size < size || block.size.count() / 2 > size.count())
      continue;
    if (best != pools.freed.end() && best->block.size <= block.size) continue;
    if (each->stream == stream || is_complete(*each)) best = each;
  }
  if (best == pools.freed.end()) return {};
  const Block taken = best->block;
  end_event(*best);
  pools.freed.erase(best);
  return taken;
}

/// The stream, unless it captures; asking for a capturing stream's identity would end the capture.
Result<Stream> stream_outside_captures(device::Device& on, StreamPointer stream) {
  const Result<device::CaptureStatus> asked = on.capture_status(handle_of(stream));
  if (!asked.is_ok()) return asked.status();
  if (asked.value() != device::CaptureStatus::kNone)
    return Status{Code::kUnsupported, "graphs have no nodes of memory here"};
  return on.identify(handle_of(stream));
}

CallResult allocate(void** base, Bytes size, const Stream& stream, device::Device& on) {
  const int device = on.traits().id.value();
  const Relaxed relaxed(on);
  const MutexGuard guard(pools.lock);
  refresh();
  Block block = take_freed(device, size, stream.id);
  if (block.size == Bytes{}) {
    Result<Address> made = on.segment_alloc(size);
    if (made.code() == Code::kOutOfMemory) {
      trim();
      made = on.segment_alloc(size);
    }
    if (!made.is_ok()) return result_of(made.status());
    block = {made.value(), size, device};
  }
  pools.held[block.at] = block;
  *base = block.at.pointer();
  keep_device(*base, device);
  return kSuccess;
}

CallResult free_behind(void* base, const Stream& stream, device::Device& on) {
  const Relaxed relaxed(on);
  const MutexGuard guard(pools.lock);
  refresh();
  const auto at = pools.held.find(Address::of(base));
  if (at == pools.held.end()) return kErrorInvalidValue;
  const Result<EventHandle> freed = on.event_create();
  if (!freed.is_ok()) return result_of(freed.status());
  const Status recorded = on.event_record(freed.value(), stream.handle);
  if (!recorded.is_ok()) {
    static_cast<void>(on.event_destroy(freed.value()));
    return result_of(recorded);
  }
  pools.freed.push_back({at->second, stream.id, on.traits().id.value(), freed.value()});
  pools.held.erase(at);
  forget_device(base);
  return kSuccess;
}

}  // namespace

void trim_pools() {
  const MutexGuard guard(pools.lock);
  refresh();
  if (!pools.freed.empty()) trim();
}

bool free_from_pool(void* base) {
  const MutexGuard guard(pools.lock);
  refresh();
  const auto at = pools.held.find(Address::of(base));
  if (at == pools.held.end()) return false;
  if (!machine()->device(at->second.device).segment_free(at->first).is_ok()) return false;
  pools.held.erase(at);
  forget_device(base);
  return true;
}

CallResult cudaMallocAsync(void** base, std::size_t size, StreamPointer stream) {
  if (base == nullptr) return answer(kErrorInvalidValue);
  return on_device(device_of(stream), [&](device::Device& on) {
    *base = nullptr;
    const Result<Stream> asked = stream_outside_captures(on, stream);
    if (!asked.is_ok()) return result_of(asked.status());
    if (size == 0) return CallResult{kSuccess};
    return allocate(base, Bytes{(size + kGrain - 1) / kGrain * kGrain}, asked.value(), on);
  });
}

CallResult cudaFreeAsync(void* base, StreamPointer stream) {
  if (base == nullptr) return kSuccess;
  return on_device(device_of(stream), [&](device::Device& on) {
    const Result<Stream> asked = stream_outside_captures(on, stream);
    return asked.is_ok() ? free_behind(base, asked.value(), on) : result_of(asked.status());
  });
}

}  // namespace ashlar::spec::cuda_runtime
