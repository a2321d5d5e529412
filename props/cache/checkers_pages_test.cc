// The clauses about pages, each seen to fire on a subject with a planted bug.
//
// Imitates: a map that shows memory where no page is, pages that nobody gives back, a page shown at two
// addresses, a page lent while it is in use, an address taken away during a capture. Does not prove that every
// such bug is seen (the mutants do, ci/mutation).
#include <gtest/gtest.h>

#include "props/cache/planted_subjects.h"

namespace ashlar::props {
namespace {

using cache::Snapshot;

/// Changes the snapshot of a paged segment.
template <void (*kChange)(Snapshot*)>
struct LiesAboutPages : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    if (out->blocks.size() > 1) kChange(out);
    return got;
  }
};
void show_an_unmapped_page_as_free(Snapshot* map) {
  cache::SnapshotBlock& unmapped = map->blocks.back();
  cache::SnapshotBlock& before = map->blocks[map->blocks.size() - 2];
  before.size += 2_MiB;
  unmapped.address = unmapped.address + 2_MiB;
  unmapped.size -= 2_MiB;
}
void show_neighbours_unmapped(Snapshot* map) {
  cache::SnapshotBlock rest = map->blocks.back();
  map->blocks.back().size = 2_MiB;
  rest.address = rest.address + 2_MiB;
  rest.size -= 2_MiB;
  map->blocks.push_back(rest);
  map->segments[0].block_count += 1;
}

TEST(CheckersOfPages, C1FiresOnMemoryThatNoPageIsUnder) {
  const std::string ops = "conf backing:pages\nalloc p0 1MiB s0\n";
  EXPECT_EQ(failing_clause_of_both(broken<LiesAboutPages<show_an_unmapped_page_as_free>>(), ops),
            "C1");
}

TEST(CheckersOfPages, C4FiresOnUnmappedNeighbours) {
  const std::string ops = "conf backing:pages\nalloc p0 1MiB s0\n";
  EXPECT_EQ(failing_clause_of_both(broken<LiesAboutPages<show_neighbours_unmapped>>(), ops), "C4");
}

/// A page is created and never given back.
struct LeaksAPage : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId device) override {
    static_cast<void>(device_for(device::CallKind::kPageCreate).page_create(2_MiB));
    return inner_->trim(device);
  }
};
TEST(CheckersOfPages, C14FiresOnAPageThatNoAddressHas) {
  EXPECT_EQ(clause<LeaksAPage>("conf backing:pages\nalloc p0 1MiB s0\ntrim d0\n"), "C14");
}

/// A trim does nothing, and says that it is done.
struct TrimsNothing : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Status trim(DeviceId) override { return Status::ok(); }
};
TEST(CheckersOfPages, Dev19FiresOnATrimThatLeavesFreePages) {
  EXPECT_EQ(clause<TrimsNothing>(
                "conf backing:pages\nalloc p0 8MiB s0\nalloc p1 8MiB s0\nfree p1\ntrim d0\n"),
            "DEV-19");
}

/// Notes the page that was mapped last.
class NotingDevice final : public device::ForwardingDevice {
 public:
  using ForwardingDevice::ForwardingDevice;
  Address at;
  PageHandle page;
  Status page_map(Address where, Bytes size, PageHandle which) noexcept override {
    const Status mapped = ForwardingDevice::page_map(where, size, which);
    if (mapped.is_ok()) at = where;
    if (mapped.is_ok()) page = which;
    return mapped;
  }
};

/// The real allocator; the last page of its first allocation of pages has a second address in the same
/// range, until a trim.
class MapsAPageTwice : public ForwardingSubject {
 public:
  MapsAPageTwice(std::shared_ptr<spec::CacheSubject> inner,
                 std::span<device::Device* const> devices)
      : ForwardingSubject(std::move(inner), devices), noting_(*devices[0]) {
    std::vector<device::Device*> noted(devices.begin(), devices.end());
    noted[0] = &noting_;
    inner_ = caching_allocator_factory()(noted, kConf).value();
  }
  ~MapsAPageTwice() override { inner_.reset(); }  // before the device that it calls

  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    const Result<Address> got = inner_->allocate(size, stream, account);
    if (!alias_.is_null() || noting_.at.is_null()) return got;
    alias_ = noting_.at + 1_GiB;
    EXPECT_TRUE(device_for(CallKind::kPageMap).page_map(alias_, 2_MiB, noting_.page).is_ok());
    if (gives_access_) {
      EXPECT_TRUE(device_for(CallKind::kPageAccess).page_access(alias_, 2_MiB).is_ok());
    }
    return got;
  }
  Status trim(DeviceId device) override {
    if (!alias_.is_null() && takes_back_) {
      EXPECT_TRUE(device_for(CallKind::kPageUnmap).page_unmap(alias_, 2_MiB).is_ok());
      alias_ = Address{};
    }
    return inner_->trim(device);
  }

 protected:
  using CallKind = device::CallKind;
  static constexpr const char* kConf = "backing:pages,move:eager";
  PageHandle last_page() const { return noting_.page; }

  bool gives_access_ = true;
  bool takes_back_ = true;
  Address alias_;

 private:
  NotingDevice noting_;
};

// With eager moves a second address is no matter of DEV-10.
constexpr char kTwoAllocations[] =
    "conf backing:pages,move:eager\nalloc p0 8MiB s0\nalloc p1 8MiB s0\nfree p0\ntrim d0\n";

TEST(CheckersOfPages, ASecondAddressThatTheMapDoesNotShowIsNobodysMatter) {
  EXPECT_EQ(clause<MapsAPageTwice>(kTwoAllocations), "");
}

/// Shows the second address as free memory.
struct ShowsAPageTwice : MapsAPageTwice {
  using MapsAPageTwice::MapsAPageTwice;
  Status snapshot(DeviceId device, Snapshot* out) override {
    const Status got = inner_->snapshot(device, out);
    if (alias_.is_null() || out->blocks.empty()) return got;
    cache::SnapshotBlock& unmapped = out->blocks.back();
    cache::SnapshotBlock shown = unmapped;
    cache::SnapshotBlock rest = unmapped;
    rest.address = alias_ + 2_MiB;
    rest.size = (unmapped.address + unmapped.size) - rest.address;
    unmapped.size = alias_ - unmapped.address;
    shown.address = alias_;
    shown.size = 2_MiB;
    shown.state = BlockState::kFree;
    out->blocks.push_back(shown);
    out->blocks.push_back(rest);
    out->segments.back().block_count += 2;
    return got;
  }
};
/// The same, where that address may not be touched.
struct ShowsWhatHasNoAccess : ShowsAPageTwice {
  ShowsWhatHasNoAccess(std::shared_ptr<spec::CacheSubject> inner,
                       std::span<device::Device* const> devices)
      : ShowsAPageTwice(std::move(inner), devices) {
    gives_access_ = false;
  }
};
/// C1 is broken, in those words.
template <class Broken>
void expect_c1(const char* words) {
  const spec::LockstepResult found = run(broken<Broken>(), kTwoAllocations);
  EXPECT_EQ(found.divergence.clause, "C1");
  EXPECT_NE(found.divergence.text.find(words), std::string::npos) << found.divergence.text;
}

TEST(CheckersOfPages, C1FiresOnAPageThatIsShownAtTwoAddresses) {
  expect_c1<ShowsAPageTwice>("at two addresses");
  EXPECT_EQ(dense_clause<ShowsAPageTwice>(kTwoAllocations), "C1");
  expect_c1<ShowsWhatHasNoAccess>("than have pages");
}

/// Takes the second address away in the next allocation.
struct UnmapsInAnAllocation : MapsAPageTwice {
  using MapsAPageTwice::MapsAPageTwice;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    if (alias_.is_null()) return MapsAPageTwice::allocate(size, stream, account);
    EXPECT_TRUE(device_for(CallKind::kPageUnmap).page_unmap(alias_, 2_MiB).is_ok());
    takes_back_ = false;
    return inner_->allocate(size, stream, account);
  }
};
TEST(CheckersOfPages, C9FiresOnASecondAddressUnmappedWhileACaptureIsAnnounced) {
  EXPECT_EQ(clause<UnmapsInAnAllocation>(
                "conf backing:pages,move:eager\ndevice d0 64MiB\nstream s1 d0\nalloc p0 8MiB s0\n"
                "capture-begin s1 relaxed\nalloc p1 100MiB s0\ncapture-end s1\n"),
            "C9");
}

/// A page goes back to the driver, and stays taken by the address that is forgotten.
struct ForgetsASecondAddress : MapsAPageTwice {
  ForgetsASecondAddress(std::shared_ptr<spec::CacheSubject> inner,
                        std::span<device::Device* const> devices)
      : MapsAPageTwice(std::move(inner), devices) {
    takes_back_ = false;
  }
};
TEST(CheckersOfPages, C14FiresOnAPageThatAForgottenAddressHolds) {
  EXPECT_EQ(clause<ForgetsASecondAddress>(kTwoAllocations), "C14");
}

/// The real allocator; its first page has `kAddresses` addresses besides its own.
template <unsigned kAddresses>
struct MapsAPageOften : MapsAPageTwice {
  using MapsAPageTwice::MapsAPageTwice;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    const bool is_first = alias_.is_null();
    const Result<Address> got = MapsAPageTwice::allocate(size, stream, account);
    for (unsigned i = 1; is_first && i < kAddresses; ++i) {
      EXPECT_TRUE(
          device_for(CallKind::kPageMap).page_map(alias_ + 2_MiB * i, 2_MiB, last_page()).is_ok());
    }
    return got;
  }
  Status trim(DeviceId device) override {
    for (unsigned i = 1; !alias_.is_null() && i < kAddresses; ++i) {
      EXPECT_TRUE(device_for(CallKind::kPageUnmap).page_unmap(alias_ + 2_MiB * i, 2_MiB).is_ok());
    }
    return MapsAPageTwice::trim(device);
  }
};
TEST(CheckersOfPages, Dev10FiresOnAPageWithMoreThanFiveAddresses) {
  EXPECT_EQ(dense_clause<MapsAPageOften<4>>(kTwoAllocations), "");
  EXPECT_EQ(dense_clause<MapsAPageOften<5>>(kTwoAllocations), "DEV-10");
}

/// Gives its second allocation the second address of the first one's page, in place of its own.
class LendsTheSecondAddress : public MapsAPageTwice {
 public:
  using MapsAPageTwice::MapsAPageTwice;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    if (alias_.is_null()) return MapsAPageTwice::allocate(size, stream, account);
    prepare();
    own_ = inner_->allocate(size, stream, account).value();
    return alias_;
  }
  Result<spec::CacheInfo> info(Address address) override { return inner_->info(own(address)); }
  Status free(Address address) override { return inner_->free(own(address)); }

 protected:
  virtual void prepare() {}

 private:
  Address own(Address address) const { return address == alias_ ? own_ : address; }

  Address own_;
};
/// The same, where that address lost its page.
class LendsAnAddressWithoutAPage final : public LendsTheSecondAddress {
 public:
  using LendsTheSecondAddress::LendsTheSecondAddress;

 private:
  void prepare() override {
    EXPECT_TRUE(device_for(CallKind::kPageUnmap).page_unmap(alias_, 2_MiB).is_ok());
  }
};

/// What the machine says by itself: no map is walked before the last op.
template <class Broken>
std::string machine_finding(const std::string& ops) {
  spec::CacheLockstep::Options options = broken<Broken>();
  options.walk_every = options.stats_every = 1000;
  options.defers_last_walks = true;
  const spec::LockstepResult result =
      run(options, "conf backing:pages,move:eager\nstream s1 d0\n" + ops);
  return result.divergence.clause + ": " + result.divergence.text;
}

TEST(CheckersOfPages, C2FiresOnTwoOwnersOfOnePage) {
  const std::string found = machine_finding<LendsTheSecondAddress>(
      "alloc p0 2MiB s0\nkernel s0 p0 w\nalloc p1 2MiB s0\nkernel s0 p1 w\n");
  EXPECT_TRUE(found.starts_with("C2: overlap")) << found;
}

TEST(CheckersOfPages, C6FiresOnAPageLentWhileAnotherStreamUsesIt) {
  const std::string found = machine_finding<LendsTheSecondAddress>(
      "alloc p0 2MiB s0\nkernel s1 p0 w\nuse p0 s1\nfree p0\nalloc p1 2MiB s0\n"
      "kernel s0 p1 w\n");
  EXPECT_TRUE(found.starts_with("C6: early-reuse")) << found;
}

TEST(CheckersOfPages, C1FiresOnAPlaceHandedOutWithoutMemory) {
  const std::string found = machine_finding<LendsAnAddressWithoutAPage>(
      "alloc p0 2MiB s0\nfree p0\nalloc p1 2MiB s0\nkernel s0 p1 w\ndrain d0\n");
  EXPECT_TRUE(found.starts_with("C1: touch-unmapped")) << found;
}

/// Shows the second address as memory though its mapping was taken back.
struct RemembersAMappingTooLong : ShowsAPageTwice {
  using ShowsAPageTwice::ShowsAPageTwice;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    const bool is_first = alias_.is_null();
    const Result<Address> got = ShowsAPageTwice::allocate(size, stream, account);
    if (is_first) {
      EXPECT_TRUE(device_for(CallKind::kPageUnmap).page_unmap(alias_, 2_MiB).is_ok());
      takes_back_ = false;
    }
    return got;
  }
};
TEST(CheckersOfPages, C1FiresOnAMappingThatIsRememberedAfterItWasTakenBack) {
  expect_c1<RemembersAMappingTooLong>("than have pages");
}

/// Maps another page where a mapping stays.
struct IgnoresAMappingInTheWay : MapsAPageTwice {
  using MapsAPageTwice::MapsAPageTwice;
  Status trim(DeviceId device) override {
    if (alias_.is_null()) return inner_->trim(device);
    const PageHandle other = device_for(CallKind::kPageCreate).page_create(2_MiB).value();
    EXPECT_FALSE(device_for(CallKind::kPageMap).page_map(alias_, 2_MiB, other).is_ok());
    EXPECT_TRUE(device_for(CallKind::kPageRelease).page_release(other).is_ok());
    return MapsAPageTwice::trim(device);
  }
};
TEST(CheckersOfPages, TheMachineSeesAPageMappedWhereAMappingStays) {
  EXPECT_EQ(clause<IgnoresAMappingInTheWay>(kTwoAllocations), "bad-mapping");
}

/// Asks for a range of addresses of its own for 777 bytes, and gives up where there is none.
struct GivesUpWithoutAddresses : ForwardingSubject {
  using ForwardingSubject::ForwardingSubject;
  Result<Address> allocate(Bytes size, const Stream& stream, cache::OutOfMemory* account) override {
    if (size.count() != 777) return inner_->allocate(size, stream, account);
    return device_for(device::CallKind::kAddressReserve).address_reserve(1024_GiB, 2_MiB).status();
  }
};
TEST(CheckersOfPages, C12FiresOnAddressesThatARangeWithoutUseStillHas) {
  const std::string ops =
      "conf backing:pages\naddresses d0 64MiB\nstream s1 d0\nalloc p0 8MiB s1\nkernel s1 p0 w\n";
  EXPECT_EQ(clause<GivesUpWithoutAddresses>(ops + "free p0\nalloc p1 777 s0\n"), "C12");
  EXPECT_EQ(clause<GivesUpWithoutAddresses>(ops + "free p0\ndrain d0\ntrim d0\nalloc p1 777 s0\n"),
            "");
  EXPECT_EQ(clause<GivesUpWithoutAddresses>(ops + "alloc p1 777 s0\n"), "");  // in use
  EXPECT_EQ(clause<GivesUpWithoutAddresses>(ops + "pin p0 0\nfree p0\nalloc p1 777 s0\n"), "");
}

}  // namespace
}  // namespace ashlar::props
