// Planted bugs of the bodies of conditionals, each reported by the clause that forbids it (row DEV-8).
//
// Imitates: an allocator that hands out to a body what its parents hold, that takes a body for a capture of its own,
// or that never sees its end. What a launch overwrites is judged of graphs made by hand: an allocator that breaks it
// is reported earlier, at the allocation.
#include "props/cache/planted_run.h"
#include "spec/model/graph_book.h"

namespace ashlar::props {
namespace {

/// What is freed in a body serves it at once, as the body were over and another began.
class ReusesWhatParentsHold final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_body(const Stream& stream, const Stream& parent) override {
    body_ = stream;
    parent_ = parent;
    return ForwardingSubject::begin_body(stream, parent);
  }
  Status free(Address address) override {
    const Status freed = ForwardingSubject::free(address);
    if (body_.id == StreamId{}) return freed;
    static_cast<void>(ForwardingSubject::end_capture(body_));
    static_cast<void>(ForwardingSubject::begin_body(body_, parent_));
    return freed;
  }
  Status end_capture(const Stream& stream) override {
    body_ = {};
    return ForwardingSubject::end_capture(stream);
  }

 private:
  Stream body_{};
  Stream parent_{};
};

/// A body is a capture like any other: what its stream allocates is not its parents'.
class TakesBodiesForCaptures final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_body(const Stream& stream, const Stream&) override {
    return ForwardingSubject::begin_capture(stream);
  }
};

/// The parent may allocate beside its body.
class ServesTheParentMeanwhile final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_body(const Stream&, const Stream&) override { return Status::ok(); }
  Status end_capture(const Stream& stream) override {
    const Status ended = ForwardingSubject::end_capture(stream);
    return ended.code() == Code::kNotFound ? Status::ok() : ended;
  }
};

/// The body's end is told to nobody before the graph's.
class EndsBodiesLate final : public ForwardingSubject {
 public:
  using ForwardingSubject::ForwardingSubject;
  Status begin_body(const Stream& stream, const Stream& parent) override {
    body_ = stream;
    return ForwardingSubject::begin_body(stream, parent);
  }
  Status end_capture(const Stream& stream) override {
    if (stream.id == body_.id) return Status::ok();
    if (body_.id != StreamId{}) static_cast<void>(ForwardingSubject::end_capture(body_));
    body_ = {};
    return ForwardingSubject::end_capture(stream);
  }

 private:
  Stream body_{};
};

constexpr const char* kFreedInABody =
    "stream s1 d0\nmempool-begin 0 s0\ncapture-begin s0 global\nalloc p1 4MiB s0\n"
    "capture-body s1 s0\nfree p1\nalloc p2 4MiB s1\ncapture-end s1\ncapture-end s0\n";

TEST(CheckersOfBodies, C8FiresOnABodyThatGetsWhatItsParentHeldAtTheBranch) {
  EXPECT_EQ(dense_clause<ReusesWhatParentsHold>(kFreedInABody), "C8");
}

TEST(CheckersOfBodies, C1FiresOnABodyThatAllocatesElsewhereThanItsParent) {
  EXPECT_EQ(dense_clause<TakesBodiesForCaptures>(kFreedInABody), "C1");
}

TEST(CheckersOfBodies, C16FiresOnAParentThatAllocatesBesideItsBody) {
  EXPECT_EQ(dense_clause<ServesTheParentMeanwhile>(
                "stream s1 d0\nmempool-begin 0 s0\ncapture-begin s0 global\n"
                "capture-body s1 s0\nalloc p1 4MiB s0\ncapture-end s1\ncapture-end s0\n"),
            "C16");
}

TEST(CheckersOfBodies, C16FiresOnABodyThatDoesNotEnd) {
  EXPECT_EQ(dense_clause<EndsBodiesLate>(
                "stream s1 d0\nmempool-begin 0 s0\ncapture-begin s0 global\ncapture-body s1 s0\n"
                "capture-end s1\nalloc p1 4MiB s0\ncapture-end s0\n"),
            "C16");
}

TEST(CheckersOfBodies, C16FiresOnABodyWithoutACapture) {
  EXPECT_EQ(dense_clause<ServesTheParentMeanwhile>("stream s1 d0\ncapture-body s1 s0\n"), "C16");
}

// Graphs made by hand: C8, of what a launch overwrites.

using Overwritten = std::optional<spec::GraphBook::Overwritten>;

constexpr Address kHere{std::uint64_t{1} << 30};
constexpr Address kThere{std::uint64_t{1} << 31};

struct MadeGraph {
  spec::GraphBook::Graph graph;
  std::vector<std::vector<spec::ByteRange>> bytes;

  void kernel(std::uint32_t body, Address at, spec::Access access, spec::AllocationTag tag) {
    graph.contents.touches.push_back({at, 4_KiB, access, tag});
    graph.contents.body_of.push_back(body);
    bytes.push_back({{at.value(), at.value() + (4_KiB).count()}});
  }
  void write(std::uint32_t body, Address at, spec::AllocationTag tag) {
    kernel(body, at, spec::Access::kWrite, tag);
  }
  void read(std::uint32_t body, Address at, spec::AllocationTag tag) {
    kernel(body, at, spec::Access::kRead, tag);
  }
  void begin_body(std::uint32_t parent = 0) {
    graph.contents.bodies.push_back({parent, graph.contents.touches.size()});
  }
  Overwritten judge(spec::BodyRuns runs) const {
    return spec::GraphBook::find_overwritten(graph, spec::run_order(graph.contents, runs), bytes);
  }
};

/// The body reads its parent's 1, frees it, and writes 2 to the same bytes.
MadeGraph reuse_in_a_body() {
  MadeGraph made;
  made.write(0, kHere, 1);
  made.begin_body();
  made.read(1, kHere, 1);
  made.write(1, kHere, 2);
  return made;
}

TEST(CheckersOfBodies, C8FiresOnABodyWhoseSecondRunReadsWhatItsFirstOverwrote) {
  const MadeGraph made = reuse_in_a_body();
  EXPECT_FALSE(made.judge(spec::BodyRuns::never()).has_value());
  EXPECT_FALSE(made.judge(spec::BodyRuns::once()).has_value());
  const Overwritten found = made.judge(spec::BodyRuns::twice());
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->tag, 1u);
  EXPECT_EQ(found->by, 2u);
}

TEST(CheckersOfBodies, C8FiresOnAnInnerBodyThatTheOuterRunsAgain) {
  MadeGraph made;
  made.begin_body();
  made.write(1, kHere, 1);
  made.begin_body(1);
  made.read(2, kHere, 1);
  made.write(2, kHere, 2);
  EXPECT_FALSE(made.judge(spec::BodyRuns(1 | 1 << 2)).has_value());
  EXPECT_FALSE(made.judge(spec::BodyRuns(2 | 1 << 2)).has_value());
  EXPECT_TRUE(made.judge(spec::BodyRuns(1 | 2 << 2)).has_value());
}

TEST(CheckersOfBodies, C8FiresOnAnOutputThatABodyOverwrites) {
  MadeGraph made;
  made.write(0, kHere, 1);
  made.begin_body();
  made.write(1, kHere, 2);
  EXPECT_FALSE(made.judge(spec::BodyRuns::once()).has_value());
  made.graph.outputs = {1};
  EXPECT_TRUE(made.judge(spec::BodyRuns::once()).has_value());
  EXPECT_FALSE(made.judge(spec::BodyRuns::never()).has_value());
}

TEST(CheckersOfBodies, C8IsSilentOnWhatABodyThatDoesNotRunWouldHaveWritten) {
  MadeGraph made;
  made.write(0, kHere, 1);
  made.begin_body();
  made.write(1, kHere, 2);
  made.read(0, kHere, 2);
  EXPECT_FALSE(made.judge(spec::BodyRuns::never()).has_value());
  EXPECT_FALSE(made.judge(spec::BodyRuns::twice()).has_value());
}

TEST(CheckersOfBodies, C8IsSilentOnSiblingsThatShareMemory) {
  MadeGraph made;
  made.write(0, kThere, 1);
  for (spec::AllocationTag tag = 2; tag <= 3; ++tag) {
    made.begin_body();
    made.write(static_cast<std::uint32_t>(made.graph.contents.bodies.size()), kHere, tag);
    made.read(static_cast<std::uint32_t>(made.graph.contents.bodies.size()), kHere, tag);
  }
  made.read(0, kThere, 1);
  for (std::uint64_t runs = 0; runs < 16; ++runs)
    EXPECT_FALSE(made.judge(spec::BodyRuns(runs)).has_value()) << runs;
}

}  // namespace
}  // namespace ashlar::props
