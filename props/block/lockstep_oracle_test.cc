// The oracle tested: the lockstep driver must catch a pool with one planted fault, and each clause
// checker must fire on a map that breaks its clause.
//
// Imitates: faults that allocators have had. Does not prove that every other fault is caught.
#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include <gtest/gtest.h>

#include "props/adapters/block_pool_subject.h"
#include "props/block/pool_ops.h"
#include "spec/lockstep/pool_lockstep.h"
#include "spec/model/pool_clauses.h"

namespace ashlar::props {
namespace {

using spec::BlockPoolModel;
using spec::PoolBlock;
using spec::PoolBooks;
using spec::PoolMap;
using spec::PoolRequest;
using spec::PoolState;

/// One fault: how it changes the requests to a correct pool (the model itself), or its answers.
struct Fault {
  const char* name;
  std::function<void(PoolRequest&)> request = [](PoolRequest&) {};
  std::function<bool(Address)> forget_release = [](Address) { return false; };
  std::function<void(PoolMap&)> map = [](PoolMap&) {};
  std::function<void(PoolBooks&)> books = [](PoolBooks&) {};
  std::function<void(std::vector<Address>&)> order = [](std::vector<Address>&) {};
  std::function<void(std::vector<Address>&)> unmapped_order = [](std::vector<Address>&) {};
  bool double_free_is_ok = false;
  bool owns_freed = false;
  Bytes divides_later{};
  bool forgets_unmapping = false;
  std::uint64_t changes_users = 0;
  bool orders_by_address = false;
  const char* broken = nullptr;
};

class FaultyPool final : public spec::PoolSubject {
 public:
  explicit FaultyPool(const Fault& fault) : fault_(fault) {}
  Status grow(Address base, Bytes size, std::uint64_t ordinal, std::uint64_t stamp) override {
    ordinals_[base] = ordinal;
    return model_.grow(base, size, fault_.orders_by_address ? base.value() : ordinal, stamp);
  }
  Status shrink(Address base) override { return model_.shrink(base); }
  Result<Address> allocate(const PoolRequest& request) override {
    PoolRequest changed = request;
    fault_.request(changed);
    return model_.allocate(changed);
  }
  Status release(Address a, std::uint64_t stamp) override {
    if (fault_.forget_release(a)) return Status::ok();
    const Status status = model_.release(a, stamp);
    return fault_.double_free_is_ok ? Status::ok() : status;
  }
  Status defer(Address a) override { return model_.defer(a); }
  Status complete(Address a, std::uint64_t stamp) override { return model_.complete(a, stamp); }
  Status lift(Address a) override { return model_.lift(a); }
  Status lower(Address a, std::uint64_t stamp) override { return model_.lower(a, stamp); }
  Status divide(Address a, Bytes size) override {
    return model_.divide(a, size + fault_.divides_later);
  }
  Status take_lifted(Address a, Bytes requested, std::uint64_t user) override {
    return model_.take_lifted(a, requested, user + fault_.changes_users);
  }
  Status reserve(Address base, Bytes size, std::uint64_t ordinal) override {
    ordinals_[base] = ordinal;
    return model_.reserve(base, size, ordinal);
  }
  Status unmap(Address a) override {
    return fault_.forgets_unmapping ? model_.lower(a, 0) : model_.unmap(a);
  }
  Status lift_unmapped(Address a) override { return model_.lift_unmapped(a); }
  bool owns(Address a) const override { return fault_.owns_freed || model_.owns(a); }
  void map(PoolMap* map) const override {
    *map = model_.map();
    for (spec::PoolSegment& segment : map->segments) segment.ordinal = ordinals_.at(segment.base);
    fault_.map(*map);
  }
  PoolBooks books() const override {
    PoolBooks books = spec::recount(model_.map());
    fault_.books(books);
    return books;
  }
  void free_order(std::vector<Address>* order) const override {
    write_order(PoolState::kFree, order);
    fault_.order(*order);
  }
  void unmapped_order(std::vector<Address>* order) const override {
    write_order(PoolState::kUnmapped, order);
    fault_.unmapped_order(*order);
  }
  const char* validate() const override { return fault_.broken; }

 private:
  void write_order(PoolState state, std::vector<Address>* order) const {
    std::vector<const PoolBlock*> blocks;
    for (const PoolBlock& b : model_.map().blocks) {
      if (b.state == state) blocks.push_back(&b);
    }
    const auto place_of = [this](const PoolBlock* b) {
      return std::tuple{b->size, ordinals_.at(b->segment), b->address};
    };
    std::sort(blocks.begin(), blocks.end(), [&place_of](const PoolBlock* a, const PoolBlock* b) {
      return place_of(a) < place_of(b);
    });
    order->clear();
    for (const PoolBlock* b : blocks) order->push_back(b->address);
  }

  const Fault& fault_;
  std::map<Address, std::uint64_t> ordinals_;  // of the segments, by their bases
  BlockPoolModel model_;
};

std::string run(const Fault& fault) {
  FaultyPool pool(fault);
  spec::PoolLockstep lockstep(pool, 512_B, 16);
  for (const spec::Op& op : dice_ops(3, 3000)) {
    if (!lockstep.step(op)) return lockstep.report();
  }
  lockstep.finish();
  return lockstep.report();
}

TEST(LockstepOracle, APoolWithoutAFaultPasses) { EXPECT_EQ(run(Fault{"none"}), ""); }

TEST(LockstepOracle, EveryPlantedFaultIsCaught) {
  std::vector<Fault> faults(17);
  unsigned n = 0;
  faults[n] = {"H24: the rounding wraps, a small block is handed out"};
  faults[n++].request = [](PoolRequest& r) { r.size = 512_B; };
  faults[n] = {"never splits"};
  faults[n++].request = [](PoolRequest& r) { r.split = false; };
  faults[n] = {"ignores the size limit"};
  faults[n++].request = [](PoolRequest& r) { r.size_end = Bytes::max(); };
  faults[n] = {"H36: reports out of memory though a block fits"};
  faults[n++].request = [](PoolRequest& r) { r.size_end = std::min(r.size_end, 1_MiB); };
  faults[n] = {"a free is forgotten"};
  faults[n++].forget_release = [](Address a) { return a.value() / 512 % 16 == 5; };
  faults[n] = {"H33: a double free is accepted"};
  faults[n++].double_free_is_ok = true;
  faults[n] = {"a counter is off by one"};
  faults[n++].books = [](PoolBooks& b) { b.requested_bytes += 1_B; };
  faults[n] = {"H32: a block's neighbour begins too early"};
  faults[n++].map = [](PoolMap& m) {
    if (m.blocks.size() > 3) m.blocks[2].address = m.blocks[2].address - 512_B;
  };
  faults[n] = {"a stamp is lost"};
  faults[n++].map = [](PoolMap& m) {
    if (!m.blocks.empty()) m.blocks.back().stamp = 0;
  };
  faults[n] = {"a block in transfer is divided at another place"};
  faults[n++].divides_later = 512_B;
  faults[n] = {"a block that was in transfer has another user word"};
  faults[n++].changes_users = 1;
  faults[n] = {"an unmapped block becomes free"};
  faults[n++].forgets_unmapping = true;
  faults[n] = {"the index of the unmapped blocks forgot one"};
  faults[n++].unmapped_order = [](std::vector<Address>& o) {
    if (!o.empty()) o.pop_back();
  };
  faults[n] = {"the index forgot a block"};
  faults[n++].order = [](std::vector<Address>& o) {
    if (o.size() > 4) o.erase(o.begin() + 2);
  };
  faults[n] = {"a freed address is still owned"};
  faults[n++].owns_freed = true;
  faults[n] = {"C10: of equal blocks that with the lowest address is handed out"};
  faults[n++].orders_by_address = true;
  faults[n] = {"its own validate() fails"};
  faults[n++].broken = "block(1) C3: planted";
  ASSERT_EQ(n, faults.size());
  for (const Fault& fault : faults) {
    const std::string report = run(fault);
    EXPECT_NE(report, "") << fault.name;
    EXPECT_NE(report.find("| pool"), std::string::npos) << "the report shows both maps: " << report;
  }
}

TEST(PoolClauses, EachFiresOnAMapThatBreaksIt) {
  BlockPoolModel model;
  EXPECT_TRUE(model.grow(Address{0x10000}, 8_KiB, 0, 0).is_ok());
  EXPECT_TRUE(model.grow(Address{0x12000}, 8_KiB, 1, 0).is_ok());
  const Result<Address> a = model.allocate({512_B, Bytes::max(), true, 500_B, 1});
  ASSERT_TRUE(a.is_ok());
  const PoolMap good = model.map();
  const auto broken = [&good](const std::function<void(PoolMap&)>& damage) {
    PoolMap map = good;
    damage(map);
    return map;
  };
  EXPECT_EQ(spec::check_usable(good, a.value(), 500_B, 512_B), "");
  EXPECT_EQ(spec::check_usable(good, a.value(), 513_B, 512_B).substr(0, 3), "C1:");
  EXPECT_EQ(spec::check_usable(good, a.value(), 500_B, 1_MiB).substr(0, 3), "C1:");
  EXPECT_EQ(spec::check_usable(good, Address{0x99}, 1_B, 512_B).substr(0, 3), "C1:");
  EXPECT_EQ(spec::check_usable(good, good.blocks[1].address, 1_B, 512_B).substr(0, 3), "C1:");
  const PoolMap outside = broken([](PoolMap& m) { m.segments[0].size = 256_B; });
  EXPECT_EQ(spec::check_usable(outside, a.value(), 500_B, 512_B).substr(0, 3), "C1:");

  EXPECT_EQ(spec::check_disjoint(good), "");
  EXPECT_EQ(spec::check_disjoint(broken([](PoolMap& m) { m.blocks[0].size += 1_B; })).substr(0, 3),
            "C2:");
  EXPECT_EQ(spec::check_tiling(good), "");
  EXPECT_EQ(spec::check_tiling(broken([](PoolMap& m) {
              m.blocks[1].address = m.blocks[1].address + 1_B;
            })).substr(0, 3),
            "C3:");
  EXPECT_EQ(spec::check_tiling(broken([](PoolMap& m) { m.blocks[1].size = Bytes{}; })).substr(0, 3),
            "C3:");
  EXPECT_EQ(spec::check_tiling(broken([](PoolMap& m) { m.blocks.pop_back(); })).substr(0, 3),
            "C3:");
  EXPECT_EQ(spec::check_tiling(broken([](PoolMap& m) { m.segments.pop_back(); })).substr(0, 3),
            "C3:");
  EXPECT_EQ(spec::check_coalesced(good), "") << "adjacent segments do not merge";
  EXPECT_EQ(spec::check_coalesced(broken([](PoolMap& m) {
              m.blocks[0].state = PoolState::kFree;
            })).substr(0, 3),
            "C4:");

  const std::vector<Address> order{good.blocks[1].address, good.blocks[2].address};
  EXPECT_EQ(spec::check_index(good, PoolState::kFree, order), "");
  EXPECT_EQ(spec::check_index(good, PoolState::kFree, {order[1], order[0]}).substr(0, 3), "C5:");
  EXPECT_EQ(spec::check_index(good, PoolState::kFree, {order[0]}).substr(0, 3), "C5:");
  const PoolMap equals = broken([](PoolMap& m) { m.blocks[2].size = m.blocks[1].size; });
  EXPECT_EQ(spec::check_index(equals, PoolState::kFree, order), "");
  const PoolMap older_above = broken([](PoolMap& m) {
    m.blocks[2].size = m.blocks[1].size;
    std::swap(m.segments[0].ordinal, m.segments[1].ordinal);
  });
  EXPECT_EQ(spec::check_index(older_above, PoolState::kFree, order).substr(0, 3), "C5:");
  EXPECT_EQ(spec::check_index(older_above, PoolState::kFree, {order[1], order[0]}), "");
  EXPECT_EQ(spec::check_conserved(good, spec::recount(good)), "");
  EXPECT_EQ(spec::check_conserved(good, PoolBooks{}).substr(0, 4), "C14:");
}

TEST(LockstepOracle, StaleAndUnknownPointersAreTypedErrorsAndChangeNothing) {
  BlockPoolSubject subject{512_B};
  spec::PoolLockstep lockstep(subject, 512_B, 1);
  const auto outcome = [&lockstep](const spec::Op& op) {
    EXPECT_TRUE(lockstep.step(op)) << lockstep.report();
    return lockstep.outcome();
  };
  EXPECT_EQ(outcome(grow(0)), Code::kInvalidArgument);
  EXPECT_EQ(outcome(grow(~std::uint64_t{0})), Code::kSizeOverflow);
  EXPECT_EQ(outcome(grow(std::uint64_t{1} << 58)), Code::kSizeOverflow);
  EXPECT_EQ(outcome(grow(1 << 20)), Code::kOk);
  EXPECT_EQ(outcome(alloc(1, 0)), Code::kInvalidArgument);
  EXPECT_EQ(outcome(alloc(1, ~std::uint64_t{0} - 100)), Code::kSizeOverflow);
  EXPECT_EQ(outcome(alloc(1, 2 << 20)), Code::kOutOfMemory);
  EXPECT_EQ(outcome(alloc(1, 512)), Code::kOk);
  EXPECT_EQ(outcome(complete(1)), Code::kBusy);
  EXPECT_EQ(outcome(defer(1)), Code::kOk);
  EXPECT_EQ(outcome(defer(1)), Code::kDoubleFree);
  EXPECT_EQ(outcome(free_of(1)), Code::kDoubleFree);
  EXPECT_EQ(outcome(complete(1)), Code::kOk);
  EXPECT_EQ(outcome(free_of(1)), Code::kUnknownPointer);
  EXPECT_EQ(outcome(shrink(0)), Code::kOk);
  EXPECT_EQ(outcome(free_of(1)), Code::kUnknownPointer);
  EXPECT_EQ(outcome(lift(0)), Code::kNotFound);
}

}  // namespace
}  // namespace ashlar::props
