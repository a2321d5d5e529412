// Makes a trace of events that name memory by its address, as recordings of other allocators do.
//
// A recording may have begun late: memory that was live before its first event is seen only by its free,
// or in a list of what is live at the end. Such memory becomes allocations at the beginning of the
// trace, in the order of their addresses.
// Thread safety: plain values.
//
// Invariant: of each address that occurred, `at_` tells whether it is live, and which event said so.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "src/tool/trace.h"

namespace ashlar::tool {

/// One block as an event tells of it.
struct AddressedBlock {
  Address address;
  Bytes size;
  std::uint64_t stream = 0;
  std::uint32_t stack = 0;  ///< the call stack of the event (trace_stacks.h)
};

/// How a free is told: of most memory twice, when its owner gives it back and when it can be used again.
enum class FreeStep : std::uint8_t { kRequested, kCompleted };

/// Collects the events, and makes the trace at the end. Calls about an event return why it contradicts
/// the ones before it, or nothing.
class AddressedEvents {
 public:
  /// `noun` is what messages call an event: "event", "line".
  explicit AddressedEvents(const char* noun) : noun_(noun) {}

  /// The number that messages have for the next event.
  void at(std::uint64_t number) { number_ = number; }
  /// An allocation; a contradiction if the address is live.
  std::optional<std::string> allocate(const AddressedBlock& block);
  /// A free: it ends the allocation at the address; the completion of a free that was requested before
  /// does nothing. Of an address without events, it is of memory that was live from the beginning.
  std::optional<std::string> free(const AddressedBlock& block, FreeStep step);
  void mark(std::string_view text);
  /// After the last event: a block that is live now. One without events was live from the beginning;
  /// one whose last event is a free was allocated after the recording ended.
  /// `block.stack` is its allocation's.
  void live_at_end(const AddressedBlock& block);

  /// The trace. On failure `*error` is why: a limit of traces (trace.h). REQUIRES: called once.
  std::optional<Trace> finish(const std::string& name, std::string* error);

  std::uint64_t live_at_start() const { return before_.size(); }
  std::uint64_t allocated_late() const { return late_; }

 private:
  enum class State : std::uint8_t { kLive, kRequested, kFree };
  struct AtAddress {
    std::uint64_t number = 0;      // of the last event here
    std::uint32_t allocation = 0;  // index into allocations_
    State state = State::kFree;
  };
  struct Event {
    TraceEvent::Kind kind;
    std::uint32_t index;      // into allocations_, or into marks_
    std::uint32_t stack = 0;  // of a free
  };

  std::uint32_t add(const AddressedBlock& block);
  std::string since(const AtAddress& at) const;
  std::uint32_t add_before(const AddressedBlock& block);

  std::vector<AddressedBlock> allocations_;
  std::vector<std::uint32_t> before_;  // of allocations_: those live from the beginning
  std::vector<std::string> marks_;
  std::vector<Event> events_;
  std::unordered_map<Address, AtAddress> at_;
  const char* noun_;
  std::uint64_t number_ = 0;
  std::uint64_t late_ = 0;
};

/// Text for a mark of a trace: without control characters, at most kMarkTextMax bytes, never empty.
inline constexpr std::size_t kMarkTextMax = 4096;
std::string mark_text(std::string_view text);

}  // namespace ashlar::tool
