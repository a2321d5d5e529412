// The clauses about pages, each seen to fire on a subject with a planted bug.
//
// Imitates: a map that shows memory where no page is, pages that nobody gives back, a page taken away
// during a capture. Does not prove that every such bug is seen (the mutants do, ci/mutation).
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

}  // namespace
}  // namespace ashlar::props
