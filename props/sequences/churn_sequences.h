// Rounds for worlds that run for long: the ops of one round, which run_rounds() repeats
// (spec/lockstep/cache_rounds.h).
//
// Thread safety: pure functions. The same seed gives the same round everywhere.
#pragma once

#include <cstdint>
#include <string>

#include "spec/lockstep/cache_lockstep.h"
#include "spec/ops/op.h"

namespace ashlar::props {

/// What a churning round may contain beyond streams that come, allocate, free and retire.
struct ChurnShape {
  bool has_uses = false;        ///< memory of one stream is used by another
  bool has_late_frees = false;  ///< memory of a retired stream is freed
  bool has_two_devices = false;
  bool has_captures = false;     ///< streams retired while another captures
  bool has_destroys = false;     ///< streams destroyed without notice
  bool has_split_limit = false;  ///< the configuration max_split_size_mb
  bool has_lenders = false;      ///< reuse other than own: memory of streams that stay is lent
  /// uses by another thread's default stream, whose events the acting thread cannot record
  bool has_thread_streams = false;
};
/// A shape from the bits of a number: 0 to 255 give every combination of the above.
ChurnShape churn_shape_from(std::uint64_t bits);
/// Do the books stay bounded in such worlds? Not where streams are destroyed without notice, which is
/// noticed only when a handle is used again; nor where a capture never ends, which keeps everything
/// unknown; nor where uses have no event: a miss asks the device whether all is done, and in these
/// worlds other work keeps it busy at every miss.
inline bool is_known_bounded(const ChurnShape& shape) {
  return !shape.has_destroys && !shape.has_captures && !shape.has_thread_streams;
}

/// Has a step in such worlds to settle? Not where a block of a large segment serves no smaller
/// request, nor where uses have no event: a few of them wait until there are many.
inline bool has_to_settle(const ChurnShape& shape) {
  return !shape.has_split_limit && !shape.has_thread_streams;
}

/// Streams come and go in every round; with has_uses, some of them have no memory and are only named
/// in uses. Beside them streams that stay repeat a step.
spec::OpFile churning_round(const ChurnShape& shape, std::uint64_t seed);

/// Streams that stay repeat a step that has to settle (spec::may_settle).
spec::OpFile settling_round(const ChurnShape& shape, std::uint64_t seed);

/// How a world is judged that runs for long: walks and statistics are sparse.
spec::CacheLockstep::Options long_run_options();

/// Runs the rounds. Empty, or a failure as `.ops`: the reduced round, and what broke as a comment.
std::string judge_rounds(const spec::OpFile& round, std::uint32_t rounds,
                         const spec::CacheLockstep::Options& options);

}  // namespace ashlar::props
