// Boost's polymorphic containers on the allocators, beside Boost's own pools.
//
// Imitates: a program whose containers are Boost's; its memory_resource is another class than the standard one.
// Does not prove: anything that memory_resource_test.cc does not.
#include <boost/container/pmr/deque.hpp>
#include <boost/container/pmr/list.hpp>
#include <boost/container/pmr/map.hpp>
#include <boost/container/pmr/memory_resource.hpp>
#include <boost/container/pmr/set.hpp>
#include <boost/container/pmr/string.hpp>
#include <boost/container/pmr/unsynchronized_pool_resource.hpp>
#include <boost/container/pmr/vector.hpp>

#include <ashlar/device/host_device.h>
#include <ashlar/interop/memory_resource.h>

#include "props/interop/random_containers.h"

namespace ashlar {
namespace {

namespace pmr = boost::container::pmr;

struct BoostContainers {
  template <class T>
  using Vector = pmr::vector<T>;
  template <class T>
  using Deque = pmr::deque<T>;
  template <class T>
  using List = pmr::list<T>;
  template <class T>
  using Set = pmr::set<T>;
  template <class K, class V>
  using Map = pmr::map<K, V>;
  using String = pmr::string;
  using Resource = pmr::memory_resource;
  using Pool = pmr::unsynchronized_pool_resource;
  // Boost 1.74 leaks the string that another is moved onto, on operator new as well.
  static constexpr bool kMovesStrings = false;
};

/// A standard resource as Boost's.
class AsBoosts final : public pmr::memory_resource {
 public:
  explicit AsBoosts(std::pmr::memory_resource& inner) : inner_(inner) {}

 private:
  void* do_allocate(std::size_t bytes, std::size_t alignment) override {
    return inner_.allocate(bytes, alignment);
  }
  void do_deallocate(void* memory, std::size_t bytes, std::size_t alignment) override {
    inner_.deallocate(memory, bytes, alignment);
  }
  bool do_is_equal(const pmr::memory_resource& other) const noexcept override {
    const auto* const same = dynamic_cast<const AsBoosts*>(&other);
    return same != nullptr && same->inner_.is_equal(inner_);
  }

  std::pmr::memory_resource& inner_;
};

TEST(BoostContainersTest, HoldWhatTheyHoldOnBoostsPools) {
  device::HostDevice host;
  device::Device* devices[] = {&host};
  {
    const auto allocator = pinned::PinnedAllocator::create(devices, {}).value();
    interop::PinnedResource resource(*allocator);
    AsBoosts boosts(resource);
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      props::expect_equal_contents<BoostContainers>(&boosts, seed, 1000);
      pmr::unsynchronized_pool_resource nodes(&boosts);
      props::expect_equal_contents<BoostContainers>(&nodes, seed, 1000);
    }
    EXPECT_EQ(resource.refused_frees(), 0u);
    EXPECT_EQ(allocator->caching().stats(allocator->device()).value().allocated_bytes[0].current,
              0u);
    EXPECT_EQ(allocator->caching().validate(), nullptr);
  }
  EXPECT_EQ(host.ledger(), device::HostLedger{});
}

}  // namespace
}  // namespace ashlar
