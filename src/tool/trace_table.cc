#include "src/tool/trace_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "src/tool/repeat.h"
#include "src/tool/sizes.h"

namespace ashlar::tool {
namespace {

constexpr std::size_t kNameMax = 30;

std::string rule(const std::vector<std::size_t>& widths) {
  std::string line;
  for (const std::size_t width : widths) line += std::string(width, '-') + "  ";
  return line.substr(0, line.size() - 2);
}

// A name that leaves room for the other columns.
std::string name_text(const std::string& name) {
  return name.size() <= kNameMax ? name : name.substr(0, kNameMax - 2) + "..";
}

std::size_t name_width(const std::vector<TraceRunResult>& results) {
  std::size_t width = 5;
  for (const TraceRunResult& result : results)
    width = std::max(width, std::min(result.trace.size(), kNameMax));
  return width;
}

std::string percent_text(double part) { return fmt::format("{:.1f}", 100 * part); }

// A count in at most `width` characters: in thousands (k), millions (M) or more where it has more digits.
std::string count_text(std::uint64_t count, std::size_t width) {
  std::string text = fmt::format("{}", count);
  for (const char* unit = "kMGTPE"; text.size() > width; ++unit) {
    count /= 1000;
    text = fmt::format("{}{}", count, *unit);
  }
  return text;
}

std::uint64_t calls_of(const Account& account) {
  std::uint64_t sum = 0;
  for (const std::uint64_t count : account.driver_calls) sum += count;
  return sum;
}

// On a device with a capacity, that stands in the place of the time, which does not depend on it.
void print_table(const std::vector<TraceRunResult>& results) {
  const std::size_t name = name_width(results);
  const bool is_limited = std::any_of(results.begin(), results.end(), [](const TraceRunResult& r) {
    return r.capacity != Bytes::max();
  });
  constexpr const char* kRow = "{:<{}}  {:>9}  {:>9}  {:>9}  {:>6}  {:>3}  {:>5}  {:>5}  {:>8}\n";
  fmt::print(fmt::runtime(kRow), "trace", name, is_limited ? "capacity" : "ns/event", "peak live",
             "reserved", "used %", "OOM", "waits", "calls", "diverged");
  fmt::print("{}\n", rule({name, 9, 9, 9, 6, 3, 5, 5, 8}));
  for (const TraceRunResult& r : results) {
    const std::string time = r.timing_passes == 0 ? "-" : fmt::format("{:.1f}", r.ns_per_event);
    const std::string capacity = r.capacity == Bytes::max() ? "-" : size_text(r.capacity);
    fmt::print(fmt::runtime(kRow), name_text(r.trace), name, is_limited ? capacity : time,
               size_text(r.account.peak_requested), size_text(r.account.peak_reserved),
               percent_text(r.utilisation()), count_text(r.ooms(), 3),
               count_text(r.account.waits, 5), count_text(calls_of(r.account), 5),
               count_text(r.divergences(), 8));
  }
}

// With --policy: a row for each.
void print_policies(const std::vector<TraceRunResult>& results) {
  if (results.empty() || results.front().policies.empty()) return;
  const std::size_t name = name_width(results);
  constexpr const char* kRow = "{:<{}}  {:<18}  {:>9}  {:>6}  {:>9}  {:>6}  {:>5}  {:>3}\n";
  fmt::print("\n");
  fmt::print(fmt::runtime(kRow), "trace", name, "policy", "reserved", "used %", "runs on", "calls",
             "waits", "OOM");
  fmt::print("{}\n", rule({name, 18, 9, 6, 9, 6, 5, 3}));
  for (const TraceRunResult& r : results) {
    for (const PolicyOutcome& policy : r.policies) {
      fmt::print(fmt::runtime(kRow), &policy == &r.policies.front() ? name_text(r.trace) : "", name,
                 policy.name, size_text(policy.peak_reserved), percent_text(policy.used),
                 policy.capacity ? size_text(*policy.capacity) : "-", count_text(policy.calls(), 6),
                 count_text(policy.waits, 5), count_text(policy.ooms, 3));
    }
  }
}

// For planned runs: what the plans serve, and what the replays counted.
void print_plans(const std::vector<TraceRunResult>& results) {
  for (const TraceRunResult& r : results) {
    if (!r.planned) continue;
    const replay::ReplayCounts& counts = r.account.planned.counts;
    // A plan that was read from a file has none.
    const std::string bound =
        r.planned->lower_bound == Bytes{}
            ? ""
            : fmt::format(" (lower bound {})", size_text(r.planned->lower_bound));
    fmt::print(
        "{}: plan of {} allocations, peak {}{}; {} served from the segment, {} not planned, {} "
        "fell back\n",
        r.trace, r.planned->managed, size_text(r.planned->peak), bound, counts.served,
        counts.unmanaged, counts.fallbacks());
    if (!r.planned->first_difference.empty())
      fmt::print("  altered: {}\n", r.planned->first_difference);
  }
}

// For repeated steps: what they do once they are settled.
void print_settled(const std::vector<TraceRunResult>& results) {
  for (const TraceRunResult& r : results) {
    if (!is_settled(r.account)) continue;
    const unsigned period = address_period(r.account);
    const std::string addresses = period == 0 ? "vary"
                                  : period == 1
                                      ? "stay the same"
                                      : fmt::format("come again every {} repetitions", period);
    fmt::print("{}: no driver call and no wait from repetition {} on; its addresses {}\n", r.trace,
               kSettledBy, addresses);
  }
}

}  // namespace

void print_results(const std::vector<TraceRunResult>& results) {
  print_table(results);
  print_plans(results);
  print_settled(results);
  print_policies(results);
}

}  // namespace ashlar::tool
