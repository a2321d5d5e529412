// The library's block pool as the specification's PoolSubject.
// Thread safety: none. Once its buffers have grown, only grow() and allocate() may allocate.
#pragma once

#include <ashlar/block/block_pool.h>

#include "spec/model/pool_subject.h"

namespace ashlar::props {

class BlockPoolSubject final : public spec::PoolSubject {
 public:
  explicit BlockPoolSubject(Bytes granule) : pool_(granule) {}

  Status grow(Address base, Bytes size, std::uint64_t ordinal, std::uint64_t stamp) override;
  Status shrink(Address base) override;
  Result<Address> allocate(const spec::PoolRequest& request) override;
  Status release(Address address, std::uint64_t stamp) override;
  Status defer(Address address) override;
  Status complete(Address address, std::uint64_t stamp) override;
  Status lift(Address address) override;
  Status lower(Address address, std::uint64_t stamp) override;
  Status divide(Address address, Bytes size) override;
  Status take_lifted(Address address, Bytes requested, std::uint64_t user) override;
  Status reserve(Address base, Bytes size, std::uint64_t ordinal) override;
  Status unmap(Address address) override;
  Status lift_unmapped(Address address) override;
  bool owns(Address address) const override;
  void map(spec::PoolMap* map) const override;
  spec::PoolBooks books() const override;
  void free_order(std::vector<Address>* order) const override;
  void unmapped_order(std::vector<Address>* order) const override;
  const char* validate() const override { return pool_.validate(); }

  block::BlockPool& pool() { return pool_; }

 private:
  block::BlockIndex block_at(Address address, BlockState state) const;
  block::SegmentIndex segment_at(Address base) const;

  mutable block::BlockPool pool_;  // UnmappedRanges asks for a pool that it may change
  Bytes grown_;                    // of all segments so far: where the next one's position is
  mutable std::vector<std::pair<Address, block::SegmentIndex>> segments_;  // map()'s buffer
};

}  // namespace ashlar::props
