#include "props/plan/generate.h"

#include <algorithm>
#include <map>
#include <string>

#include "props/plan/pairwise_check.h"
#include "spec/plan/placing.h"

namespace ashlar {
namespace {

using plan::Buffer;
using plan::Problem;
using plan::Time;
using spec::Random;

constexpr std::uint64_t kFeatureOneIn = 3;  // a problem has a feature
constexpr std::uint64_t kBufferOneIn = 3;   // and then each of its buffers has it

class Generator {
 public:
  Generator(Random* random, const GenerateLimits& limits) : random_(*random), limits_(limits) {}

  Problem make() {
    problem_.buffers.resize(limits_.buffers_min +
                            random_.below(limits_.buffers_max - limits_.buffers_min + 1));
    if (random_.one_in(16)) shift_ = random_.one_in(2) ? INT64_MIN : INT64_MAX - limits_.times - 1;
    if (random_.one_in(16)) scale_ = std::uint64_t{1} << 40;
    for (Buffer& buffer : problem_.buffers) {
      draw_life(&buffer.life);
      buffer.size = Bytes{(1 + random_.below(limits_.sizes)) * scale_};
    }
    for_some([this](std::uint32_t b) {
      problem_.buffers[b].alignment = Bytes{scale_ << random_.below(4)};
    });
    for_some([this](std::uint32_t b) { problem_.buffers[b].hint = draw_offset(b); });
    draw_gaps();
    draw_spaces();
    draw_groups();
    for_some([this](std::uint32_t b) { pin(b); });
    draw_ids();
    return std::move(problem_);
  }

 private:
  template <class Act>
  void for_some(Act act) {
    if (!random_.one_in(kFeatureOneIn)) return;
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b) {
      if (random_.one_in(kBufferOneIn)) act(b);
    }
  }

  void draw_life(plan::Lifetime* life) {
    const auto times = static_cast<std::uint64_t>(limits_.times);
    const std::uint64_t lower = random_.below(times - 1);
    life->lower = shift_ + static_cast<Time>(lower);
    life->upper = life->lower + 1 + static_cast<Time>(random_.below(times - 1 - lower));
  }

  // An aligned offset, often one that other buffers have too.
  Bytes draw_offset(std::uint32_t b) {
    const std::uint64_t alignment = problem_.buffers[b].alignment.count();
    return Bytes{random_.below(limits_.sizes * 4 * scale_ / alignment + 1) * alignment};
  }

  // Gaps are inside the life, with time between them.
  void draw_gaps() {
    const bool has_gaps = random_.one_in(kFeatureOneIn);
    for (Buffer& buffer : problem_.buffers) {
      buffer.gaps_begin = static_cast<std::uint32_t>(problem_.gaps.size());
      Time at = buffer.life.lower + 1;
      while (has_gaps && buffer.life.upper - at >= 2) {
        const Time end = at + 1 +
                         static_cast<Time>(
                             random_.below(static_cast<std::uint64_t>(buffer.life.upper - at - 1)));
        if (random_.one_in(kBufferOneIn)) problem_.gaps.push_back({at, end});
        at = end + 1;
      }
      buffer.gaps_end = static_cast<std::uint32_t>(problem_.gaps.size());
    }
  }

  void draw_spaces() {
    if (problem_.buffers.empty() || !random_.one_in(kFeatureOneIn)) return;
    problem_.spaces.clear();
    std::map<std::uint64_t, std::uint32_t> number_of;
    for (Buffer& buffer : problem_.buffers) {
      buffer.space = number_of.emplace(random_.below(3), problem_.spaces.size()).first->second;
      if (buffer.space == problem_.spaces.size())
        problem_.spaces.push_back({"space " + std::to_string(buffer.space), {}});
      problem_.spaces[buffer.space].capacity = plan::kNowhere;
    }
  }

  void draw_groups() {
    std::map<std::uint64_t, std::uint32_t> number_of;
    for_some([&](std::uint32_t b) {
      Buffer& buffer = problem_.buffers[b];
      const std::uint64_t drawn = random_.below(3) * 4 + buffer.space;  // a group is in one space
      buffer.group = number_of.emplace(drawn, problem_.groups.size()).first->second;
      if (buffer.group == problem_.groups.size())
        problem_.groups.push_back("g" + std::to_string(buffer.group));
    });
  }

  // Pins buffer b, if it and its group may be at that offset.
  void pin(std::uint32_t b) {
    const Bytes pin = draw_offset(b);
    std::vector<Bytes> pins = pins_by_group();
    const std::uint32_t group = problem_.buffers[b].group;
    for (std::uint32_t other = 0; other < pins.size(); ++other) {
      const bool is_pinned_too =
          other == b || (group != plan::kNoGroup && problem_.buffers[other].group == group);
      if (!is_pinned_too) continue;
      if (pins[other] != plan::kNowhere && pins[other] != pin) return;
      if (pin % problem_.buffers[other].alignment != 0) return;
      pins[other] = pin;
    }
    if (!first_overlap_by_pairs(problem_, pins)) problem_.buffers[b].pinned = pin;
  }

  std::vector<Bytes> pins_by_group() const {
    std::vector<Bytes> pins;
    for (const Buffer& buffer : problem_.buffers) {
      Bytes pin = buffer.pinned;
      for (const Buffer& other : problem_.buffers) {
        if (buffer.group != plan::kNoGroup && other.group == buffer.group &&
            other.pinned != plan::kNowhere)
          pin = other.pinned;
      }
      pins.push_back(pin);
    }
    return pins;
  }

  void draw_ids() {
    if (problem_.buffers.empty() || !random_.one_in(2)) return;
    for (std::uint32_t b = 0; b < problem_.buffers.size(); ++b)
      problem_.ids.push_back("t" + std::to_string(b));
  }

  Random& random_;
  const GenerateLimits limits_;
  Problem problem_;
  Time shift_ = 0;
  std::uint64_t scale_ = 1;
};

}  // namespace

Problem generate_problem(Random* random, const GenerateLimits& limits) {
  return Generator(random, limits).make();
}

std::vector<Bytes> generate_plan(Random* random, const Problem& problem) {
  std::vector<std::size_t> order(spec::Placing(problem).units().size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random->below(i)]);
  return spec::place_in_order(problem, order);
}

}  // namespace ashlar
