// Fuzz target: the planner, compared with the independent checker, with itself (less work, more
// threads, an earlier plan to keep), and on small problems with brute force. Seven bytes are a
// buffer. Every byte string is a problem: a pin or group that makes it unsound is removed.
//
// Imitates: unforeseen problems with every feature.
// Does not prove: that answers are good where brute force is too slow.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include <ashlar/plan/planner.h>
#include <ashlar/plan/problem_csv.h>
#include <ashlar/plan/replan.h>

#include "spec/plan/brute_force.h"
#include "spec/plan/check.h"

namespace {

using namespace ashlar;

constexpr std::size_t kBufferBytes = 7;
constexpr std::size_t kBuffersMax = 40;
constexpr std::size_t kBruteMax = 6;
constexpr std::uint64_t kWorkLittle = 3'000;
constexpr std::uint64_t kWork = 50'000;
constexpr std::uint64_t kWorkEnough = 50'000'000;  // for kBruteMax buffers

plan::Buffer read_buffer(std::span<const std::uint8_t, kBufferBytes> in, plan::Problem* problem) {
  plan::Buffer buffer;
  buffer.life.lower = in[0] % 24;
  buffer.life.upper = buffer.life.lower + 1 + in[1] % 12;
  buffer.size = Bytes{(1u + in[2] % 32) << (in[6] % 2 * 6)};
  buffer.alignment = Bytes{std::uint64_t{1} << (in[3] % 4)};
  const bool has_gap = (in[4] & 1) != 0 && buffer.life.upper - buffer.life.lower > 2;
  buffer.gaps_begin = static_cast<std::uint32_t>(problem->gaps.size());
  if (has_gap) problem->gaps.push_back({buffer.life.lower + 1, buffer.life.upper - 1});
  buffer.gaps_end = static_cast<std::uint32_t>(problem->gaps.size());
  if ((in[4] & 2) != 0) buffer.pinned = buffer.alignment * (in[5] % 64);
  if ((in[4] & 12) != 0) buffer.group = (in[4] >> 2 & 3u) - 1;
  if ((in[4] & 16) != 0) buffer.space = 1;
  if ((in[4] & 32) != 0) buffer.hint = Bytes{std::uint64_t{in[5]} * 2};
  return buffer;
}

/// The first byte chooses the capacities; bits of it also choose the number of threads.
plan::Problem read_problem(std::span<const std::uint8_t> in) {
  plan::Problem problem;
  problem.spaces.resize(2);
  problem.groups.resize(3);
  if (in.empty()) return problem;
  if ((in[0] & 1) != 0) problem.spaces[0].capacity = Bytes{in[0]};
  if ((in[0] & 2) != 0) problem.spaces[1].capacity = Bytes{in[0] / 2u};
  in = in.subspan(1);
  for (; in.size() >= kBufferBytes && problem.buffers.size() < kBuffersMax;
       in = in.subspan(kBufferBytes)) {
    problem.buffers.push_back(read_buffer(in.first<kBufferBytes>(), &problem));
  }
  // Each fault removes a pin or a group, so the loop ends.
  for (;;) {
    const plan::ProblemFault fault = plan::check_problem(problem);
    if (fault.status.is_ok()) return problem;
    plan::Buffer& buffer = problem.buffers[fault.buffer];
    if (buffer.pinned == plan::kNowhere && buffer.group == plan::kNoGroup) std::abort();
    buffer.pinned = plan::kNowhere;
    buffer.group = plan::kNoGroup;
  }
}

[[noreturn]] void fail(const plan::Problem& problem, const char* what) {
  const Result<std::string> text = plan::format_problem_csv(problem, {});
  std::fprintf(stderr, "%s\n%s\n", what, text.is_ok() ? text.value().c_str() : text.status().why());
  std::abort();
}

plan::Plan plan_with(const plan::Problem& problem, std::uint64_t work, unsigned threads = 1) {
  plan::PlanOptions options;
  options.work = work;
  options.threads = threads;
  plan::Plan answer = plan::make_plan(problem, options);
  if (const auto found = spec::check_answer(problem, answer)) fail(problem, found->text.c_str());
  return answer;
}

bool is_solved(const plan::Problem& problem, const plan::Plan& answer) {
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    const plan::SpaceAnswer& space = answer.spaces[s];
    if (!space.is_proved_optimal() && space.peak > problem.spaces[s].capacity) return false;
    if (!space.is_proved_optimal() && problem.spaces[s].capacity == plan::kNowhere) return false;
  }
  return true;
}

void check_related(const plan::Problem& problem, const plan::Plan& answer, unsigned threads) {
  const plan::Plan less = plan_with(problem, kWorkLittle);
  bool all_fit = true;
  for (std::size_t s = 0; s < problem.spaces.size(); ++s) {
    if (less.spaces[s].peak < answer.spaces[s].peak) fail(problem, "more work gives a worse plan");
    if (less.spaces[s].lower_bound > answer.spaces[s].lower_bound)
      fail(problem, "more work gives a worse bound");
    all_fit = all_fit && answer.spaces[s].peak <= problem.spaces[s].capacity;
  }
  if (threads > 1) {
    const plan::Plan other = plan_with(problem, kWork, threads);
    if (other.offsets != answer.offsets || other.spaces != answer.spaces)
      fail(problem, "more threads give another plan");
  }
  plan::PlanOptions options;
  options.work = kWorkLittle;
  const plan::Replanned again = plan::replan(problem, answer.offsets, options);
  if (const auto found = spec::check_answer(problem, again.plan))
    fail(problem, found->text.c_str());
  if (all_fit && again.moved > 0) fail(problem, "a replan of an unchanged problem moves a buffer");
}

void check_by_brute_force(const plan::Problem& problem, const plan::Plan& answer) {
  const plan::Plan solved = is_solved(problem, answer) ? answer : plan_with(problem, kWorkEnough);
  if (!is_solved(problem, solved)) fail(problem, "a small problem is not solved");
  const spec::LeastPeaks least = spec::brute_force(problem);
  for (std::uint32_t s = 0; s < problem.spaces.size(); ++s) {
    if (solved.spaces[s].lower_bound > least.peaks[s])
      fail(problem, "a lower bound is above the least peak");
    if (solved.spaces[s].peak < least.peaks[s]) fail(problem, "a peak is below the least one");
    std::vector<std::uint32_t> misfits;
    for (const std::uint32_t b : solved.cannot_fit) {
      if (problem.buffers[b].space == s) misfits.push_back(b);
    }
    if (!misfits.empty() && !spec::cannot_fit(problem, misfits))
      fail(problem, "buffers listed as misfit do fit");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const plan::Problem problem = read_problem({data, size});
  const plan::Plan answer = plan_with(problem, kWork);
  check_related(problem, answer, size > 0 && (data[0] & 12) == 12 ? 2 : 1);
  if (problem.buffers.size() <= kBruteMax) check_by_brute_force(problem, answer);
  return 0;
}
