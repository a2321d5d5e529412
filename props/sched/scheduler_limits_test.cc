// What a scheduler is given at its limits: backends of one memory with other alignments, weights of no bytes, too many places of
// copies, support that a weight's place would rule out.
//
// Imitates: a GPU and a library on it that wants pages; kernels that only the host has.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <ashlar/sched/graph_scheduler.h>

#include "props/graph/small_graphs.h"
#include "props/sched/recording_backend.h"

namespace ashlar {
namespace {

using graph::kExternal;
using graph::kOutput;
using graph::Operation;
using graph::TensorId;
using props::CallLog;
using props::RecordingBackend;
using props::RecordingTraits;
using props::SmallGraph;
using sched::GraphScheduler;
using sched::PlacedBy;

/// The processor with another buffer type.
class AlignedBackend final : public sched::Backend {
 public:
  AlignedBackend(std::shared_ptr<cpu::HostBuffers> buffers, graph::BufferType type)
      : processor_("aligned", std::move(buffers)), type_(type) {}
  std::string_view name() const noexcept override { return "aligned"; }
  sched::MemoryId memory() const noexcept override { return processor_.memory(); }
  graph::BufferType buffer_type() const noexcept override { return type_; }
  Result<Address> make_buffer(Bytes size) noexcept override {
    largest = std::max(largest, size);
    return processor_.make_buffer(size);
  }
  Status release_buffer(Address base) noexcept override { return processor_.release_buffer(base); }
  bool holds(Address at, Bytes size) const noexcept override { return processor_.holds(at, size); }
  Status set_async(Address to, std::span<const std::byte> from) noexcept override {
    return processor_.set_async(to, from);
  }
  Status get_async(std::span<std::byte> to, Address from) noexcept override {
    return processor_.get_async(to, from);
  }
  using Backend::synchronize;
  Status synchronize() noexcept override { return Status::ok(); }
  bool supports(const graph::Graph&, TensorId) const noexcept override { return true; }
  Status compute(const graph::Graph& graph, std::span<const TensorId> nodes,
                 std::span<const Address> at) noexcept override {
    for (const TensorId node : nodes) {
      is_aligned = is_aligned && at[node.value()].value() % type_.alignment.count() == 0;
    }
    return processor_.compute(graph, nodes, at);
  }

  bool is_aligned = true;
  Bytes largest;

 private:
  cpu::CpuBackend processor_;
  const graph::BufferType type_;
};

TEST(SchedulerLimits, BackendsOfOneMemoryGetTheStricterOfTheirBufferTypes) {
  const auto buffers = std::make_shared<cpu::HostBuffers>(4096_B);
  AlignedBackend lax(buffers, {64_B, 40_KiB, nullptr}), strict(buffers, {4096_B, 1_MiB, nullptr});
  SmallGraph small;
  const TensorId in = small.input(20'000);
  const TensorId a = small.node(Operation::kSum, 4, {in}), b = small.same(Operation::kSqr, {in});
  const TensorId c = small.same(Operation::kSqr, {a}, kOutput);
  const TensorId d = small.same(Operation::kExp, {b}, kOutput);
  GraphScheduler scheduler({&lax, &strict});
  for (const TensorId node : {a, b, c, d}) EXPECT_TRUE(scheduler.assign(node, 1).is_ok());
  EXPECT_TRUE(scheduler.run(small.graph, std::vector<Address>(5)).is_ok())
      << scheduler.last_error();
  EXPECT_TRUE(strict.is_aligned);
  EXPECT_LE(lax.largest, 40_KiB);
}

TEST(SchedulerLimits, AWeightOfNoBytesNeedsNoBuffer) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  SmallGraph small;
  const TensorId none = small.leaf(0, kExternal);
  const TensorId sum = small.node(Operation::kSum, 4, {none}, kOutput);
  GraphScheduler scheduler({&a, &b});
  EXPECT_TRUE(scheduler.run(small.graph, std::vector<Address>(2)).is_ok())
      << scheduler.last_error();
  float got = 1;
  EXPECT_TRUE(scheduler.get(sum, std::as_writable_bytes(std::span(&got, 1))).is_ok());
  EXPECT_EQ(got, 0.0f);
}

TEST(SchedulerLimits, TooManyPlacesOfCopiesAreRefusedAndCostNothing) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  SmallGraph small;
  small.same(Operation::kSqr, {small.input(64)}, kOutput);
  sched::SchedulerOptions options;
  options.copy_places = 4'000'000'000;
  GraphScheduler scheduler({&a, &b}, options);
  EXPECT_LT(log.count("a.make_event"), 100u);
  EXPECT_EQ(scheduler.reserve(small.graph, std::vector<Address>(2)).code(), Code::kInvalidArgument);
  EXPECT_EQ(scheduler.last_error(), "the number of places of a copy is not from 1 to 64");
}

// A weight's place is a preference: the product could be beside its weight, but what writes into the product's
// memory has no kernel there.
TEST(SchedulerLimits, SupportOfALaterNodeMovesWhatAWeightWouldKeep) {
  CallLog log;
  RecordingTraits without_copies;
  without_copies.has = {Operation::kMul};
  RecordingBackend gpu(log, "gpu", without_copies), cpu(log, "cpu");
  SmallGraph small;
  const TensorId weight = small.leaf(64, kExternal), in = small.input(64);
  const TensorId product = small.same(Operation::kMul, {in, weight});
  small.copy_into(in, product, kOutput);
  sched::Backend* const backends[] = {&gpu, &cpu};
  sched::ScheduleRequest request;
  request.backend_of = {0, sched::kNoBackend, sched::kNoBackend, sched::kNoBackend};
  std::string error;
  const auto schedule = sched::make_schedule(small.graph, backends, request, &error);
  ASSERT_TRUE(schedule.is_ok()) << error;
  EXPECT_EQ(schedule.value().backend_of[product.value()], 1u);
  EXPECT_EQ(schedule.value().placed_by[product.value()], PlacedBy::kSupport);
  EXPECT_EQ(schedule.value().copies.size(), 1u) << "the weight";
}

TEST(SchedulerTensors, AreToldToTheBackendsOfTheirMemory) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  SmallGraph small;
  const TensorId weight = small.leaf(64, kExternal), in = small.input(64);
  const TensorId product = small.same(Operation::kMul, {in, weight});
  const TensorId half = small.view(product, 32);
  const TensorId sum = small.same(Operation::kSqr, {half}, kOutput);
  const Address at = a.make_buffer(64_B).value();
  GraphScheduler scheduler({&a, &b});
  EXPECT_TRUE(scheduler.assign(sum, 1).is_ok());
  std::vector<Address> external(5);
  external[weight.value()] = at;
  ASSERT_TRUE(scheduler.reserve(small.graph, external).is_ok()) << scheduler.last_error();
  // `in` is on b, the last one, and copied to a; `half` is copied to b. The weight and views are told to nobody.
  EXPECT_EQ(a.told().size(), 2u);
  EXPECT_EQ(b.told().size(), 3u);
  for (const auto& [tensor, address] : a.told()) EXPECT_TRUE(a.holds(address, 64_B));
  ASSERT_TRUE(scheduler.reserve(small.graph, external).is_ok());
  EXPECT_EQ(a.told().size(), 2u) << "nothing changed";
  EXPECT_TRUE(scheduler.assign(sum, 0).is_ok());
  ASSERT_TRUE(scheduler.reserve(small.graph, external).is_ok());
  EXPECT_EQ(a.told().size(), 3u);
  EXPECT_EQ(b.told().size(), 1u);
  scheduler.reset();
  EXPECT_EQ(a.told().size() + b.told().size(), 0u);
  a.tensors_max = 1;
  EXPECT_EQ(scheduler.reserve(small.graph, external).code(), Code::kUnsupported);
  EXPECT_EQ(a.told().size() + b.told().size(), 0u) << "what was told is taken back";
  EXPECT_EQ(a.untold + b.untold, 0u);
}

TEST(SchedulerLimits, SoManyBytesThatTheirSumWrapsAreRefused) {
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  sched::Backend* const backends[] = {&a, &b};
  // Two values of 2^58 bytes, to each of two backends: 2^60 in all, and not a byte more.
  for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{4}}) {
    SmallGraph small;
    TensorId last = small.input((std::uint64_t{1} << 58) + more);
    last = small.same(Operation::kExp, {last});
    small.node(Operation::kSum, 4, {last}, kOutput);
    sched::ScheduleRequest request;
    std::string error;
    const auto schedule = sched::make_schedule(small.graph, backends, request, &error);
    EXPECT_EQ(schedule.code(), more == 0 ? Code::kOk : Code::kSizeOverflow) << error;
  }
}

TEST(SchedulerLimits, ManySplitsAndReadersTakeTimeInProportion) {
  // Quadratic in both it took 6.6 s and 3.3 s for a quarter of this size each.
  CallLog log;
  RecordingBackend a(log, "a"), b(log, "b");
  sched::Backend* const backends[] = {&a, &b};
  constexpr std::uint32_t kNodes = 160'000;
  SmallGraph small;
  const TensorId in = small.input(64);
  TensorId last = in;
  for (std::uint32_t k = 0; k < kNodes; ++k) last = small.same(Operation::kAdd, {last, in});
  sched::ScheduleRequest request;
  request.backend_of.assign(small.graph.tensors().size(), sched::kNoBackend);
  for (std::uint32_t k = 1; k <= kNodes; ++k) request.backend_of[k] = k % 2;
  const auto begin = std::chrono::steady_clock::now();
  const auto schedule = sched::make_schedule(small.graph, backends, request);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15));
  ASSERT_TRUE(schedule.is_ok());
  EXPECT_EQ(schedule.value().splits.size(), kNodes);
}

}  // namespace
}  // namespace ashlar
