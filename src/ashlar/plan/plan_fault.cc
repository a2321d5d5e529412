#include <ashlar/plan/plan_fault.h>

#include <algorithm>
#include <vector>

#include <ashlar/plan/overlap.h>

namespace ashlar::inline v0::plan {
namespace {

std::string id_of(const Problem& problem, std::uint32_t buffer) {
  return "buffer " + (problem.ids.empty() ? std::to_string(buffer) : problem.ids[buffer]);
}

std::optional<std::string> fault_of_offset(const Problem& problem, const Plan& plan,
                                           std::uint32_t b) {
  const Buffer& buffer = problem.buffers[b];
  const Bytes offset = plan.offsets[b];
  if (offset == kNowhere) return id_of(problem, b) + " has no offset";
  if (offset > kPlanBytesMax - buffer.size) return id_of(problem, b) + " ends over 2^62";
  if (offset % buffer.alignment != 0) return id_of(problem, b) + " is not aligned";
  if (buffer.pinned != kNowhere && offset != buffer.pinned)
    return id_of(problem, b) + " is not at its pin";
  return std::nullopt;
}

std::optional<std::string> fault_of_groups(const Problem& problem, const Plan& plan) {
  std::vector<std::optional<std::uint32_t>> first(problem.groups.size());
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (problem.buffers[b].group == kNoGroup) continue;
    std::optional<std::uint32_t>& one = first[problem.buffers[b].group];
    if (!one) one = b;
    if (plan.offsets[*one] != plan.offsets[b]) {
      return id_of(problem, *one) + " and " + id_of(problem, b) +
             " are in one alias group at different offsets";
    }
  }
  return std::nullopt;
}

std::optional<std::string> fault_of_answers(const Problem& problem, const Plan& plan) {
  std::vector<Bytes> peaks(problem.spaces.size());
  for (std::size_t b = 0; b < problem.buffers.size(); ++b) {
    Bytes& peak = peaks[problem.buffers[b].space];
    peak = std::max(peak, plan.offsets[b] + problem.buffers[b].size);
  }
  for (std::size_t s = 0; s < peaks.size(); ++s) {
    const std::string space = "space " + std::to_string(s);
    if (plan.spaces[s].peak != peaks[s]) return space + ": the stated peak is not the highest end";
    if (plan.spaces[s].lower_bound > peaks[s]) return space + ": the lower bound is above the peak";
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> fault_of_plan(const Problem& problem, const Plan& plan) {
  if (plan.offsets.size() != problem.buffers.size())
    return "the number of offsets is not that of the buffers";
  if (plan.spaces.size() != problem.spaces.size())
    return "the number of answers is not that of the spaces";
  for (std::uint32_t b = 0; b < problem.buffers.size(); ++b) {
    if (const auto fault = fault_of_offset(problem, plan, b)) return fault;
  }
  if (const auto fault = fault_of_groups(problem, plan)) return fault;
  if (const auto overlap = first_overlap(problem, plan.offsets)) {
    return id_of(problem, overlap->earlier) + " and " + id_of(problem, overlap->later) +
           " are live at the same time and overlap";
  }
  return fault_of_answers(problem, plan);
}

}  // namespace ashlar::inline v0::plan
