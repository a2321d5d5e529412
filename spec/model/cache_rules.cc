// See cache_rules.h.
#include "spec/model/cache_rules.h"

#include <algorithm>
#include <bit>

#include "spec/model/settings.h"

namespace ashlar::spec {

std::uint64_t CacheRules::rounded(std::uint64_t size) const {
  std::uint64_t step = granule();
  const auto log2 = static_cast<unsigned>(std::bit_width(size | 1) - 1);
  const unsigned row = std::min(log2 < 20 ? 0u : log2 - 20, 15u);
  const std::uint64_t divisions = config_.roundup_divisions[row];
  if (divisions > 1 && caches()) step = std::max(step, (std::uint64_t{1} << log2) / divisions);
  return std::max((size + step - 1) / step * step, granule());
}

PoolId CacheRules::pool_of(std::uint64_t rounded) const {
  return rounded <= config_.small_request_max.count() ? PoolId::kSmall : PoolId::kLarge;
}

std::uint64_t CacheRules::segment_size(std::uint64_t rounded) const {
  return is_paged() ? (rounded + kPageBytes - 1) / kPageBytes * kPageBytes
                    : plain_segment_size(rounded);
}

std::uint64_t CacheRules::plain_segment_size(std::uint64_t rounded) const {
  if (!caches()) return rounded;
  if (pool_of(rounded) == PoolId::kSmall) return config_.small_segment.count();
  if (rounded < config_.large_request_min.count()) return config_.large_segment.count();
  const std::uint64_t step = config_.segment_round.count();
  const std::uint64_t segment = (rounded + step - 1) / step * step;
  // A block of max_split_size or more serves no request under it.
  if (rounded >= max_split_size() || segment < max_split_size()) return segment;
  return std::max(rounded, kPageBytes);
}

bool CacheRules::fits(std::uint64_t block, std::uint64_t rounded) const {
  if (block < rounded || !caches()) return false;
  if (rounded < max_split_size()) return block < max_split_size();
  return block - rounded < config_.max_non_split_rounding.count();
}

bool CacheRules::is_to_split(std::uint64_t spare, std::uint64_t rounded) const {
  if (spare == 0 || rounded >= max_split_size()) return false;
  return is_paged() || pool_of(rounded) == PoolId::kSmall
             ? spare >= granule()
             : spare > config_.small_request_max.count();
}

}  // namespace ashlar::spec
