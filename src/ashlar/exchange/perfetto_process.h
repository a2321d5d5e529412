// The events of one device in Chrome's trace event JSON.
//
// Purpose: `ph` is the kind of an event: "M" names a process or thread, "C" sets a counter, "b" and
// "e" with one id begin and end what may overlap, "i" is an instant. Times are in microseconds.
// Thread safety: one thread at a time.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include <ashlar/exchange/document_sink.h>
#include <ashlar/exchange/frame_cache.h>
#include <ashlar/exchange/rewind.h>
#include <ashlar/exchange/window.h>

namespace ashlar::inline v0::exchange {

/// One device, ready to be written.
struct PerfettoDevice {
  DeviceId device;
  const cache::History* history = nullptr;
  WindowedEvents events;
  Rewind at_start;  ///< memory before the first of these events
};

/// Writes one device's events. Throws what the sink and the frame source throw.
class PerfettoProcess {
 public:
  /// All outlive this.
  PerfettoProcess(DocumentSink* sink, FrameCache* frames, const PerfettoDevice& device)
      : sink_(*sink), frames_(*frames), device_(device) {}

  void write();

 private:
  using PoolKey = std::pair<std::uint64_t, std::uint64_t>;
  struct Held {
    Bytes allocated;
    Bytes pending;
  };
  struct Allocation {
    std::uint64_t id = 0;
    Bytes size;
    StreamId stream;
    PoolKey pool;
    std::string name;
  };

  void name_process();
  void take_start(std::uint64_t time_us);
  void take(const cache::HistoryEvent& event);
  void allocate(const cache::HistoryEvent& event);
  /// Returns the pool that the block counts for.
  PoolKey free(const cache::HistoryEvent& event);
  void write_memory(std::uint64_t time_us);
  /// Writes nothing of the device's own pool, which `memory` has.
  void write_pool(std::uint64_t time_us, PoolKey pool);
  void write_counter(std::string_view name, std::uint64_t time_us, const Held& held,
                     const std::uint64_t* idle);
  void write_edge(const char* phase, const Allocation& allocation, Address address,
                  std::uint64_t time_us);
  void write_instant(std::string_view name, const cache::HistoryEvent& event);
  void begin_event(const char* phase, std::string_view name, std::uint64_t time_us,
                   StreamId stream);
  std::string name_of(const cache::HistoryEvent& event);

  DocumentSink& sink_;
  FrameCache& frames_;
  const PerfettoDevice& device_;
  std::unordered_map<Address, Allocation> allocations_;  // live and pending
  std::map<PoolKey, Held> pools_;
  Held all_;
  Bytes reserved_;
  std::uint64_t next_id_ = 0;
};

}  // namespace ashlar::inline v0::exchange
