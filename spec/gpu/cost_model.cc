#include "spec/gpu/cost_model.h"

#include "spec/gpu/usual_costs.h"

namespace ashlar::spec {

std::array<CallCost, device::kCallKinds> CostModel::usual() {
  std::array<CallCost, device::kCallKinds> costs{};
  for (const UsualCost& each : kUsualCosts) costs[static_cast<unsigned>(each.kind)] = each.cost;
  return costs;
}

std::uint64_t CostModel::of(device::CallKind kind, Bytes size) const {
  const CallCost& cost = figures(kind);
  const std::uint64_t page = Bytes{2_MiB}.count();
  const std::uint64_t pages = size.count() / page + (size.count() % page != 0 ? 1 : 0);
  return cost.call_ns + cost.per_page_ns * pages;
}

std::uint64_t CallAccount::calls() const {
  std::uint64_t sum = 0;
  for (const CallCount& count : by_kind) sum += count.calls;
  return sum;
}

}  // namespace ashlar::spec
