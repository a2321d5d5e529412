// A host whose calls are written down: the system calls for pages, and the operators new[] and
// delete[] of aligned memory. Linking watched_host.cc puts it before the real ones.
//
// Purpose: tests of what a table asks of its host, call by call, and of what it does when the host
// refuses one. Outside of the library's own calls nothing is written down, and every call that is
// not refused is made.
// Thread safety: none; one thread calls while the host is watched.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <vector>

namespace ashlar::props {

/// mmap, mprotect, mremap, munmap, madvise; new[] and delete[].
enum class HostCall : std::uint8_t {
  kReserve,
  kCommit,
  kMove,
  kRelease,
  kAdvise,
  kNew,
  kDelete,
};
inline constexpr std::size_t kHostCalls = 7;

struct HostEvent {
  HostCall call;
  std::uintptr_t begin;      ///< the memory it is about; 0 for what was refused
  std::size_t bytes;         ///< of delete[]: as many as new[] was asked for; 0 if it gave no such
  std::uintptr_t other = 0;  ///< where pages move to; the alignment of new[] and delete[]
  bool is_refused = false;
  friend bool operator==(const HostEvent&, const HostEvent&) = default;
};
std::ostream& operator<<(std::ostream& out, const HostEvent& event);

struct WatchedHost {
  bool is_watched = false;
  std::vector<HostEvent> events;
  /// How many of the next calls of each kind are refused.
  std::array<unsigned, kHostCalls> refusals{};
  /// How many reservations are granted before those that `refusals` counts.
  unsigned reserves_granted = 0;
  /// How far past a huge page's beginning the next reservations begin; behind the last: 0.
  std::vector<std::size_t> misaligned_by;
  /// Grants reservations of any length, without addresses behind them.
  bool pretends = false;
  /// Calls with an argument that the host's manual does not permit.
  unsigned misuses = 0;

  unsigned& refusals_of(HostCall call) { return refusals[static_cast<std::size_t>(call)]; }
  bool refuses(HostCall call) {
    unsigned& left = refusals_of(call);
    if (left == 0) return false;
    if (call == HostCall::kReserve && reserves_granted > 0) {
      reserves_granted -= 1;
      return false;
    }
    left -= 1;
    return true;
  }
};
extern WatchedHost watched;

/// Watches the host for its scope, from an empty list on.
class WatchScope {
 public:
  WatchScope() {
    watched = {};
    watched.is_watched = true;
  }
  ~WatchScope() { watched.is_watched = false; }
  WatchScope(const WatchScope&) = delete;
  WatchScope& operator=(const WatchScope&) = delete;
};

/// An address as the number that events hold.
inline std::uintptr_t number(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

/// The events since the last call of this.
inline std::vector<HostEvent> take_events() {
  std::vector<HostEvent> events;
  events.swap(watched.events);
  return events;
}

}  // namespace ashlar::props
