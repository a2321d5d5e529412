// A skyline: the lowest free offset of each section, as runs of sections with one floor.
//
// Thread safety: none. Cost: O(1), except downhill(), which walks from run to run.
//
// Invariants: neighbouring runs have different floors. A run is named by its first section.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include <ashlar/plan/solve/items.h>

namespace ashlar::inline v0::plan::solve {

class SkylineRuns {
 public:
  /// One run, of floor 0.
  explicit SkylineRuns(Section sections)
      : last_of_(sections), first_of_(sections), floor_(sections) {
    set(0, sections, 0);
  }
  Section last_of(Section run) const { return last_of_[run]; }
  Units floor_of(Section run) const { return floor_[run]; }
  /// The valley that is reached from the run by going downhill; the run itself if both its
  /// neighbours are higher.
  Section downhill(Section run) const {
    for (;;) {
      if (last_of_[run] < last_of_.size() && floor_[last_of_[run]] < floor_[run]) {
        run = last_of_[run];
      } else if (run > 0 && floor_[first_of_[run - 1]] < floor_[run]) {
        run = first_of_[run - 1];
      } else {
        return run;
      }
    }
  }
  /// Raises a valley to its lower neighbour, and joins the two; or to `ceiling` if that is lower
  /// still. Returns the run that is there now. REQUIRES: the valley has a neighbour, or there is a
  /// ceiling.
  Section raise(Section run, Units ceiling) {
    const Section last = last_of_[run];
    const Units left = run > 0 ? floor_[first_of_[run - 1]] : kNoFloor;
    const Units right = last < last_of_.size() ? floor_[last] : kNoFloor;
    const Units floor = std::min({left, right, ceiling});
    ASHLAR_ASSERT(floor != kNoFloor, "skyline: an item that fits nowhere");
    return make(run, last, floor);
  }
  /// Raises the sections [from, to) of a run to `top`, and returns the run that is there now. The
  /// rest of the run to the right, if any, is the run `to`.
  Section place(Section run, Section from, Section to, Units top) {
    const Units floor = floor_[run];
    const Section last = last_of_[run];
    if (run < from) set(run, from, floor);
    if (to < last) set(to, last, floor);
    return make(from, to, top);
  }

  static constexpr Units kNoFloor = std::numeric_limits<Units>::max();

 private:
  void set(Section first, Section last, Units floor) {
    last_of_[first] = last;
    first_of_[last - 1] = first;
    floor_[first] = floor;
  }
  /// Makes [first, last) a run, joined with neighbours of the same floor.
  Section make(Section first, Section last, Units floor) {
    if (first > 0 && floor_[first_of_[first - 1]] == floor) first = first_of_[first - 1];
    if (last < last_of_.size() && floor_[last] == floor) last = last_of_[last];
    set(first, last, floor);
    return first;
  }

  std::vector<Section> last_of_;   // by a run's first section
  std::vector<Section> first_of_;  // by a run's last section
  std::vector<Units> floor_;       // by a run's first section
};

}  // namespace ashlar::inline v0::plan::solve
