#include <ashlar/plan/problem.h>

#include <algorithm>
#include <optional>

#include <ashlar/base/checked.h>

#include <ashlar/plan/fnv.h>
#include <ashlar/plan/live.h>
#include <ashlar/plan/overlap.h>

namespace ashlar::inline v0::plan {
namespace {

ProblemFault fault(std::size_t buffer, const char* why, Code code = Code::kInvalidArgument) {
  const auto b = static_cast<std::uint32_t>(buffer);
  return {{code, why}, b, b};
}

ProblemFault fault_of_two(std::uint32_t buffer, std::uint32_t other, const char* why) {
  return {{Code::kInvalidArgument, why}, buffer, other};
}

Status check_tables(const Problem& problem) {
  ASHLAR_REQUIRE(problem.buffers.size() <= kBuffersMax, Code::kSizeOverflow,
                 "more than 2^28 buffers");
  ASHLAR_REQUIRE(problem.gaps.size() <= kGapsMax, Code::kSizeOverflow, "more than 2^30 gaps");
  ASHLAR_REQUIRE(!problem.spaces.empty(), Code::kInvalidArgument, "there is no space");
  ASHLAR_REQUIRE(problem.ids.empty() || problem.ids.size() == problem.buffers.size(),
                 Code::kInvalidArgument, "some buffers have an id and some have none");
  return Status::ok();
}

Status check_gaps(const Problem& problem, const Buffer& buffer) {
  ASHLAR_REQUIRE(buffer.gaps_begin <= buffer.gaps_end && buffer.gaps_end <= problem.gaps.size(),
                 Code::kInvalidArgument, "its gaps do not exist");
  Time before = buffer.life.lower;
  for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g) {
    const Lifetime& gap = problem.gaps[g];
    ASHLAR_REQUIRE(gap.lower < gap.upper, Code::kInvalidArgument, "a gap ends before it has begun");
    ASHLAR_REQUIRE(before < gap.lower && gap.upper < buffer.life.upper, Code::kInvalidArgument,
                   "it is not live before, between and after its gaps");
    before = gap.upper;
  }
  return Status::ok();
}

Status check_buffer(const Problem& problem, const Buffer& buffer) {
  ASHLAR_REQUIRE(buffer.life.lower < buffer.life.upper, Code::kInvalidArgument,
                 "upper is not above lower");
  ASHLAR_REQUIRE(buffer.size > 0_B, Code::kInvalidArgument, "its size is zero");
  ASHLAR_REQUIRE(buffer.size <= kPlanBytesMax, Code::kSizeOverflow, "its size is over 2^62");
  ASHLAR_REQUIRE(is_power_of_two(buffer.alignment.count()), Code::kInvalidArgument,
                 "its alignment is not a power of two");
  ASHLAR_REQUIRE(buffer.alignment <= kPlanBytesMax, Code::kSizeOverflow,
                 "its alignment is over 2^62");
  if (buffer.pinned != kNowhere) {
    ASHLAR_REQUIRE(buffer.pinned <= kPlanBytesMax - buffer.size, Code::kSizeOverflow,
                   "it is pinned to end over 2^62");
    ASHLAR_REQUIRE(buffer.pinned % buffer.alignment == 0, Code::kInvalidArgument,
                   "its pin is not aligned");
  }
  ASHLAR_REQUIRE(buffer.hint == kNowhere || buffer.hint <= kPlanBytesMax, Code::kSizeOverflow,
                 "its hint is over 2^62");
  ASHLAR_REQUIRE(buffer.space < problem.spaces.size(), Code::kInvalidArgument,
                 "its space does not exist");
  ASHLAR_REQUIRE(buffer.group == kNoGroup || buffer.group < problem.groups.size(),
                 Code::kInvalidArgument, "its alias group does not exist");
  return check_gaps(problem, buffer);
}

// Bounds the highest end of any stack of all buffers: each takes its size and, to be aligned, less
// than its alignment.
ProblemFault check_sum(const Problem& problem) {
  Bytes sum;
  for (const Buffer& buffer : problem.buffers) {
    if (buffer.pinned != kNowhere) sum = std::max(sum, buffer.pinned + buffer.size);
  }
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    // No overflow: each term and the sum so far are at most 2^62.
    sum += buffer.size + (buffer.alignment - Bytes{1});
    if (sum > kPlanBytesMax)
      return fault(b, "sizes, padding and pins add up to over 2^62", Code::kSizeOverflow);
  }
  return {};
}

// Checks the groups, and finds each buffer's pin: its own or its group's.
ProblemFault check_groups(const Problem& problem, std::vector<Bytes>* pins) {
  struct Group {
    std::optional<std::uint32_t> first;
    std::optional<std::uint32_t> pinned;
    Bytes alignment{1};
  };
  std::vector<Group> groups(problem.groups.size());
  pins->assign(problem.buffers.size(), kNowhere);
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    if (buffer.group == kNoGroup) continue;
    Group& group = groups[buffer.group];
    if (!group.first) group.first = b;
    if (problem.buffers[*group.first].space != buffer.space) {
      return fault_of_two(b, *group.first, "its alias group is in another space");
    }
    group.alignment = std::max(group.alignment, buffer.alignment);
    if (buffer.pinned == kNowhere) continue;
    if (!group.pinned) group.pinned = b;
    if (problem.buffers[*group.pinned].pinned != buffer.pinned) {
      return fault_of_two(b, *group.pinned, "its alias group is pinned elsewhere");
    }
  }
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    Bytes& pin = (*pins)[b] = buffer.pinned;
    if (buffer.group == kNoGroup || !groups[buffer.group].pinned) continue;
    const Group& group = groups[buffer.group];
    pin = problem.buffers[*group.pinned].pinned;
    if (pin % group.alignment != 0)
      return fault(*group.pinned, "its pin is not aligned for all of its alias group");
  }
  return {};
}

}  // namespace

ProblemFault check_problem(const Problem& problem) {
  if (const Status status = check_tables(problem); !status.is_ok()) return {status};
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    const Status status = check_buffer(problem, problem.buffers[b]);
    if (!status.is_ok()) return fault(b, status.why(), status.code());
  }
  if (const ProblemFault broken = check_sum(problem); !broken.status.is_ok()) return broken;
  std::vector<Bytes> pins;
  if (const ProblemFault broken = check_groups(problem, &pins); !broken.status.is_ok())
    return broken;
  if (const std::optional<Overlap> overlap = first_overlap(problem, pins)) {
    return fault_of_two(overlap->later, overlap->earlier,
                        "it is pinned onto a pinned buffer that is live with it");
  }
  return {};
}

bool conflict(const Problem& problem, std::uint32_t a, std::uint32_t b) noexcept {
  const Buffer& one = problem.buffers[a];
  const Buffer& two = problem.buffers[b];
  if (a == b || one.space != two.space || (one.group != kNoGroup && one.group == two.group))
    return false;
  if (one.life.lower >= two.life.upper || two.life.lower >= one.life.upper) return false;
  std::uint32_t i = 0;
  std::uint32_t j = 0;
  while (i < live_pieces(one) && j < live_pieces(two)) {
    const Lifetime first = live_piece(problem, one, i);
    const Lifetime second = live_piece(problem, two, j);
    if (first.lower < second.upper && second.lower < first.upper) return true;
    // the piece that ends first meets no later piece of the other buffer
    ++(first.upper < second.upper ? i : j);
  }
  return false;
}

std::uint64_t hash_of(const Problem& problem) {
  // a group is hashed as the number of its first buffer
  std::vector<std::uint32_t> first_of(problem.groups.size(), kNoGroup);
  Fnv hash;
  const auto add_life = [&hash](const Lifetime& life) {
    hash.add(static_cast<std::uint64_t>(life.lower));
    hash.add(static_cast<std::uint64_t>(life.upper));
  };
  hash.add(std::uint64_t{problem.buffers.size()});
  hash.add(std::uint64_t{problem.spaces.size()});
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    const Buffer& buffer = problem.buffers[b];
    add_life(buffer.life);
    for (const Bytes bytes : {buffer.size, buffer.alignment, buffer.pinned})
      hash.add(bytes.count());
    std::uint32_t first = kNoGroup;
    if (buffer.group != kNoGroup) {
      first = first_of[buffer.group] = std::min(first_of[buffer.group], b);
    }
    hash.add(std::uint64_t{first});
    hash.add(std::uint64_t{buffer.space});
    hash.add(std::uint64_t{buffer.gaps_end - buffer.gaps_begin});
    for (std::uint32_t g = buffer.gaps_begin; g < buffer.gaps_end; ++g) add_life(problem.gaps[g]);
  }
  return hash.value();
}

}  // namespace ashlar::inline v0::plan
