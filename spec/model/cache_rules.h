// CacheRules: what a configuration makes of a request (rows DEV-1..4), by the judge's own reading.
//
// Plain words throughout the judge: a subject's wrong number must be reported, not trip an
// assertion of Bytes.
// Thread safety: a plain value.
#pragma once

#include <cstdint>

#include <ashlar/base/pool_id.h>
#include <ashlar/cache/config.h>

namespace ashlar::spec {

class CacheRules {
 public:
  explicit CacheRules(const cache::Config& config) : config_(config) {}

  const cache::Config& config() const { return config_; }
  std::uint64_t granule() const { return config_.granule.count(); }
  std::uint64_t max_split_size() const { return config_.max_split_size.count(); }
  /// DEV-22: is freed memory kept for later requests?
  bool caches() const { return config_.caches; }
  /// DEV-22: does the driver's pool keep it? What that has is the device's, and in no segment of the subject's.
  bool has_driver_pool() const {
    return config_.backend == cache::AllocatorBackend::kCudaMallocAsync;
  }
  bool is_paged() const { return config_.backing == cache::Backing::kPages; }
  bool has_max_split_size() const { return config_.max_split_size != Bytes::max(); }

  /// DEV-1: the next of k equal divisions of the size's power of two, where they are coarser than
  /// the granule; else the next multiple of the granule. REQUIRES: size <= 1 EiB.
  std::uint64_t rounded(std::uint64_t size) const;
  /// DEV-2: the pool that serves a rounded size, and the segment that is taken for it. DEV-10: or the most
  /// that is mapped for it.
  PoolId pool_of(std::uint64_t rounded) const;
  std::uint64_t segment_size(std::uint64_t rounded) const;
  /// The segment, where memory does not come in pages.
  std::uint64_t plain_segment_size(std::uint64_t rounded) const;
  /// DEV-3's window: may a free block of that size serve the rounded size? Without a cache none may.
  bool fits(std::uint64_t block, std::uint64_t rounded) const;
  /// DEV-4: should a block with so many bytes to spare have been split?
  bool is_to_split(std::uint64_t spare, std::uint64_t rounded) const;

 private:
  cache::Config config_;
};

}  // namespace ashlar::spec
