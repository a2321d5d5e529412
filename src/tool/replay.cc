#include "src/tool/replay.h"

#include <algorithm>



namespace ashlar::tool {
namespace {

constexpr Bytes kCapacityStep = 2_MiB;

double ratio(Bytes part, Bytes whole) {
  return whole == 0_B ? 1.0 : static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

}  // namespace

double ReplayResult::utilisation() const {
  return ratio(account.peak_requested, capacity_was_found ? capacity : account.peak_reserved);
}

Bytes find_capacity(const Trace& trace, const ReplayOptions& options, Bytes peak_reserved) {
  ReplayOptions plain = options;
  plain.wants_picture = false;
  // In steps: it cannot run on `low`, it can on `high`.
  std::uint64_t low = (trace.peak_live.count() + kCapacityStep.count() - 1) / kCapacityStep.count();
  low = std::max<std::uint64_t>(low, 1) - 1;
  std::uint64_t high = std::max<std::uint64_t>((peak_reserved.count() + kCapacityStep.count() - 1) / kCapacityStep.count(), 1);
  high = std::max(high, low + 1);
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    const Account account = account_pass(trace, plain, kCapacityStep * middle, true);
    (account.ooms == 0 ? high : low) = middle;
  }
  return kCapacityStep * high;
}

ReplayResult replay(const Trace& trace, const std::string& file, const ReplayOptions& options) {
  ReplayResult result;
  result.trace = trace.name;
  result.file = file;
  result.allocations = trace.allocations;
  result.events = std::uint64_t{trace.allocations} + trace.frees;
  result.stated_peak_live = trace.stated_peak_live;
  result.capacity = options.capacity;
  if (options.find_capacity) {
    ReplayOptions plain = options;
    plain.wants_picture = false;
    const Account unlimited = account_pass(trace, plain, Bytes::max());
    result.capacity = find_capacity(trace, options, unlimited.peak_reserved);
    result.capacity_was_found = true;
  }
  result.account = account_pass(trace, options, result.capacity);
  if (options.check) result.check = check_pass(trace, options, result.capacity);
  const Timing timing = timing_pass(trace, options.config);
  result.ns_per_event = timing.ns_per_event;
  result.timing_passes = timing.passes;
  return result;
}

}  // namespace ashlar::tool
