// What is proved of a plan's peak, and of which problem: in words, for tables, JSON and pages.
//
// Thread safety: pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <ashlar/plan/plan.h>

namespace ashlar::tool {

/// How far a peak is proved least.
enum class Proof : std::uint8_t {
  kNone,
  kAligned,  ///< in whole multiples of the alignment: no plan needs fewer of them
  kExact     ///< to the byte
};

/// The alignment that all buffers of the space have; nothing if they differ, or there are none.
/// Cost: O(buffers).
std::optional<Bytes> one_alignment(const plan::Problem& problem, std::size_t space);

/// What is proved of the space's peak. Cost: O(buffers).
Proof proof_of(const plan::Problem& problem, const plan::Plan& plan, std::size_t space);

/// "proved least of 3 buffers at any offset", "proved least in multiples of 512 B, of 3 buffers at such
/// offsets"; empty if nothing is proved. Cost: O(buffers).
std::string proof_text(const plan::Problem& problem, const plan::Plan& plan, std::size_t space);

}  // namespace ashlar::tool
