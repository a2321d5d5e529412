// How many worlds reach remembered places and loans of pages, by what happens to their requests.
//
// Builds without assertions count nothing (place_events.h), and have an empty table.
// Thread safety: none; it counts what the calling thread's worlds do.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include <ashlar/cache/place_events.h>

namespace ashlar::props {

class PlaceReach {
 public:
  static constexpr unsigned kEvents = cache::kPlaceEvents;

  PlaceReach() { take_events(); }

  /// A world ends.
  void note_world() {
    const auto events = take_events();
    for (unsigned e = 0; e < kEvents; ++e) {
      times_[e] += events[e];
      worlds_[e] += events[e] != 0 ? 1 : 0;
    }
  }
  std::uint64_t times(cache::PlaceEvent event) const {
    return times_[static_cast<unsigned>(event)];
  }
  /// A line for each event: its name, how often it happened, and in how many worlds.
  std::string table() const {
    std::string text;
    if (!ASHLAR_ASSERTIONS) return text;
    for (unsigned e = 0; e < kEvents; ++e)
      text += std::string(kNames[e]) + " " + std::to_string(times_[e]) + " in " +
              std::to_string(worlds_[e]) + " worlds\n";
    return text;
  }

 private:
  using Counts = std::array<std::uint64_t, kEvents>;

  static Counts take_events() {
#if ASHLAR_ASSERTIONS
    return std::exchange(cache::place_events, Counts{});
#else
    return {};
#endif
  }

  /// In the order of the enumerators.
  static constexpr std::array<const char*, kEvents> kNames{
      "log-made",       "place-taken",    "place-not-free", "page-came",     "loan",
      "reserved",       "not-expected",   "not-unmapped",   "stock-busy",    "occupied",
      "too-many-pages", "nothing-mapped", "homeless",       "home-in-place", "other-heap",
      "home-not-free",  "no-record"};

  Counts times_{};
  Counts worlds_{};
};

}  // namespace ashlar::props
