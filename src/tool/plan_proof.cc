#include "src/tool/plan_proof.h"

#include <algorithm>

namespace ashlar::tool {
namespace {

std::uint64_t multiples(Bytes size, Bytes alignment) {
  return (size + alignment - Bytes{1}) / alignment;
}

}  // namespace

std::optional<Bytes> one_alignment(const plan::Problem& problem, std::size_t space) {
  std::optional<Bytes> alignment;
  for (const plan::Buffer& buffer : problem.buffers) {
    if (buffer.space != space) continue;
    if (alignment && *alignment != buffer.alignment) return std::nullopt;
    alignment = buffer.alignment;
  }
  return alignment;
}

Proof proof_of(const plan::Problem& problem, const plan::Plan& plan, std::size_t space) {
  const plan::SpaceAnswer& answer = plan.spaces[space];
  if (answer.is_proved_optimal()) return Proof::kExact;
  const std::optional<Bytes> alignment = one_alignment(problem, space);
  const bool is_aligned =
      alignment && multiples(answer.peak, *alignment) == multiples(answer.lower_bound, *alignment);
  return is_aligned ? Proof::kAligned : Proof::kNone;
}

std::string proof_text(const plan::Problem& problem, const plan::Plan& plan, std::size_t space) {
  const Proof proof = proof_of(problem, plan, space);
  if (proof == Proof::kNone) return "";
  const auto buffers = std::count_if(problem.buffers.begin(), problem.buffers.end(),
                                     [&](const auto& buffer) { return buffer.space == space; });
  const std::string of = "of " + std::to_string(buffers) + (buffers == 1 ? " buffer" : " buffers");
  const std::optional<Bytes> alignment = one_alignment(problem, space);
  const std::string unit = std::to_string(alignment.value_or(Bytes{}).count()) + " B";
  if (proof == Proof::kAligned)
    return "proved least in multiples of " + unit + ", " + of + " at such offsets";
  if (!alignment) return "proved least " + of + (buffers == 0 ? "" : " at their alignments");
  if (*alignment == Bytes{1}) return "proved least " + of + " at any offset";
  return "proved least " + of + " at multiples of " + unit;
}

}  // namespace ashlar::tool
