#include "src/tool/plan_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include <ashlar/plan/live.h>

#include "plan_page.h"  // generated from plan_page.html
#include "src/tool/page.h"
#include "src/tool/plan_proof.h"
#include "src/tool/plan_usage.h"

namespace ashlar::tool {
namespace {

using Json = nlohmann::ordered_json;
using plan::Buffer;
using plan::Fits;

// this many make a page of about 3 MB, which is drawn in some tenths of a second
constexpr std::uint64_t kRectanglesMax = 60'000;
constexpr std::size_t kPicturesMax = 40;          // a browser needs some megabytes for each
constexpr std::uint64_t kUsagePointsMax = 6'000;  // several for each pixel
constexpr std::int64_t kExactMax = std::int64_t{1} << 53;

// JavaScript reads numbers as doubles: a number that a double does not hold exactly is written as a
// string of digits.
Json number(std::uint64_t value) {
  return value <= static_cast<std::uint64_t>(kExactMax) ? Json(value) : Json(std::to_string(value));
}
Json number(Bytes bytes) { return number(bytes.count()); }
Json signed_number(std::int64_t value) {
  return value >= -kExactMax && value <= kExactMax ? Json(value) : Json(std::to_string(value));
}

double area(const Buffer& buffer, const plan::Problem& problem) {
  std::uint64_t live = 0;
  for (std::uint32_t k = 0; k < live_pieces(buffer); ++k) {
    const plan::Lifetime piece = live_piece(problem, buffer, k);
    live += static_cast<std::uint64_t>(piece.upper) - static_cast<std::uint64_t>(piece.lower);
  }
  return static_cast<double>(live) * static_cast<double>(buffer.size.count());
}

class PlanPage {
 public:
  PlanPage(const plan::Problem& problem, const plan::Plan& plan, std::uint64_t rectangles_max)
      : problem_(problem),
        plan_(plan),
        rectangles_max_(rectangles_max),
        is_bad_(problem.buffers.size()),
        buffers_(problem.spaces.size()) {
    for (const std::uint32_t b : plan.cannot_fit) is_bad_[b] = true;
    if (!problem.buffers.empty()) life_ = problem.buffers[0].life;
    for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
      const Buffer& buffer = problem.buffers[b];
      life_ = {std::min(life_.lower, buffer.life.lower), std::max(life_.upper, buffer.life.upper)};
      buffers_[buffer.space].push_back(b);
    }
    choose_drawn();
  }

  Json json(const std::string& title, double seconds) const {
    Json spaces = Json::array();
    for (std::uint32_t s = 0; s < problem_.spaces.size(); ++s) spaces.push_back(space_json(s));
    return {{"title", title},
            {"groups", problem_.groups.size()},
            {"seconds", seconds},
            {"from", signed_number(life_.lower)},
            {"span", time_json(life_.upper)},
            {"spaces", std::move(spaces)}};
  }

 private:
  // Chooses the buffers to draw: those that cannot fit, then the largest.
  void choose_drawn() {
    std::vector<double> areas;
    areas.reserve(problem_.buffers.size());
    for (const Buffer& buffer : problem_.buffers) areas.push_back(area(buffer, problem_));
    std::vector<std::uint32_t> order(problem_.buffers.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      if (is_bad_[a] != is_bad_[b]) return bool{is_bad_[a]};
      return areas[a] != areas[b] ? areas[a] > areas[b] : a < b;
    });
    is_drawn_.resize(order.size());
    std::uint64_t left = rectangles_max_;
    for (const std::uint32_t b : order) {
      const std::uint32_t pieces = live_pieces(problem_.buffers[b]);
      if (pieces > left || problem_.buffers[b].space >= kPicturesMax) continue;
      is_drawn_[b] = true;
      left -= pieces;
    }
  }

  // Relative to the problem's first time, so that large times with small differences stay exact.
  Json time_json(plan::Time time) const {
    return number(static_cast<std::uint64_t>(time) - static_cast<std::uint64_t>(life_.lower));
  }

  Json space_json(std::uint32_t s) const {
    const plan::SpaceAnswer& answer = plan_.spaces[s];
    const Bytes capacity = problem_.spaces[s].capacity;
    const Fits fits = answer.fits(capacity);
    const auto is_bad = [this](std::uint32_t b) { return bool{is_bad_[b]}; };
    Json json{{"name", problem_.spaces[s].name},
              {"buffers", buffers_[s].size()},
              {"peak", number(answer.peak)},
              {"lower_bound", number(answer.lower_bound)},
              {"proved", proof_of(problem_, plan_, s) != Proof::kNone},
              {"proof", proof_text(problem_, plan_, s)},
              {"capacity", capacity == plan::kNowhere ? Json() : number(capacity)},
              {"fits", fits == Fits::kUnknown ? Json() : Json(fits == Fits::kYes)},
              {"cannot_fit", std::count_if(buffers_[s].begin(), buffers_[s].end(), is_bad)}};
    if (s >= kPicturesMax) return json;
    add_boxes(s, &json);
    json["usage"] = usage_json(s);
    return json;
  }

  // A box is [id, offset, size, alignment, pinned or -1, group or -1, 1 if it cannot fit, lower,
  // upper, lower, upper ...]. A group is [name, number of buffers], and is numbered within the space.
  void add_boxes(std::uint32_t s, Json* json) const {
    Json boxes = Json::array();
    Json groups = Json::array();
    std::vector<std::int64_t> group_numbers(problem_.groups.size(), -1);
    for (const std::uint32_t b : buffers_[s]) {
      const Buffer& buffer = problem_.buffers[b];
      std::int64_t group = -1;
      if (buffer.group != plan::kNoGroup) {
        std::int64_t& known = group_numbers[buffer.group];
        if (known < 0) {
          known = static_cast<std::int64_t>(groups.size());
          const std::string& name = problem_.groups[buffer.group];
          groups.push_back({name.empty() ? std::to_string(buffer.group) : name, 0});
        }
        group = known;
        Json& members = groups[static_cast<std::size_t>(group)][1];
        members = members.get<std::uint64_t>() + 1;
      }
      if (!is_drawn_[b]) continue;
      Json box{problem_.ids.empty() ? Json(b) : Json(problem_.ids[b]),
               number(plan_.offsets[b]),
               number(buffer.size),
               number(buffer.alignment),
               buffer.pinned == plan::kNowhere ? Json(-1) : number(buffer.pinned),
               group,
               is_bad_[b] ? 1 : 0};
      for (std::uint32_t k = 0; k < live_pieces(buffer); ++k) {
        const plan::Lifetime piece = live_piece(problem_, buffer, k);
        box.push_back(time_json(piece.lower));
        box.push_back(time_json(piece.upper));
      }
      boxes.push_back(std::move(box));
    }
    (*json)["groups"] = std::move(groups);
    (*json)["boxes"] = std::move(boxes);
  }

  Json usage_json(std::uint32_t s) const {
    Json from = Json::array();
    Json least = Json::array();
    Json most = Json::array();
    Json end = Json::array();
    for (const UsagePoint& point :
         usage_of(problem_, plan_.offsets, buffers_[s], kUsagePointsMax)) {
      from.push_back(time_json(point.from));
      least.push_back(number(point.least));
      most.push_back(number(point.most));
      end.push_back(number(point.end));
    }
    return {{"from", std::move(from)},
            {"least", std::move(least)},
            {"most", std::move(most)},
            {"end", std::move(end)}};
  }

  const plan::Problem& problem_;
  const plan::Plan& plan_;
  const std::uint64_t rectangles_max_;
  plan::Lifetime life_;  // from the least lower to the greatest upper
  std::vector<bool> is_bad_;
  std::vector<bool> is_drawn_;
  std::vector<std::vector<std::uint32_t>> buffers_;  // by space
};

}  // namespace

Json plan_picture(const plan::Problem& problem, const plan::Plan& plan, const std::string& title,
                  double seconds, std::uint64_t rectangles_max) {
  return PlanPage(problem, plan, rectangles_max).json(title, seconds);
}

std::string plan_page(const plan::Problem& problem, const plan::Plan& plan,
                      const std::string& title, double seconds) {
  return page_with(kPlanPage,
                   script_text(plan_picture(problem, plan, title, seconds, kRectanglesMax)));
}

}  // namespace ashlar::tool
